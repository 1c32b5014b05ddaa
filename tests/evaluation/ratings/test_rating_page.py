"""The page of a rater, driven in a real browser: filled in, closed, opened again, saved, read."""

import csv
import json
import re
import shutil
import time

import numpy as np
import pytest
from PIL import Image

from tests.evaluation.ratings.samples import make_sheets
from vlscore.evaluation import ratings_read, read_ratings
from vlscore.evaluation.ratings.questions import COUNTS

HOSTILE = '</script><img src=x onerror="document.title=1">=1+1 & <b>bold</b>'
REPORTS = {
    "ours": ["Small left effusion.", HOSTILE, "Clear lungs."],
    "theirs": ["No effusion.", "=HYPERLINK(1)", ""],
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Two systems for three studies with films; a text of theirs attacks the page."""
    folder = tmp_path_factory.mktemp("page")
    rng = np.random.default_rng(0)
    for k in range(3):
        Image.fromarray(rng.integers(0, 256, (900, 1000), dtype=np.uint8)).save(folder / f"{k}.png")
    for name, texts in REPORTS.items():
        rows = [
            {
                "id": f"s{k}",
                "image": f"{k}.png",
                "reference": f"Reference {k} {HOSTILE}",
                "candidate": t,
            }
            for k, t in enumerate(texts)
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines)
    return [folder / f"{name}.jsonl" for name in REPORTS]


def _made(tables, out, ask, **options):
    return make_sheets(tables, out, ask=ask, format=["html"], **options)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """Open a browser with a profile of its own; the same profile remembers, as a user's does."""
    pytest.importorskip("selenium", reason="needs selenium: pip install 'vlscore[dev]'")
    binary = shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chrome")
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with its driver: apt-get install chromium chromium-driver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    profile, saved = tmp_path_factory.mktemp("profile"), tmp_path_factory.mktemp("saved")

    def opened():
        options = webdriver.ChromeOptions()
        options.binary_location = binary
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--disable-gpu",
            "--window-size=1400,1000",
            f"--user-data-dir={profile}",
        ):
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"download.default_directory": str(saved)})
        return webdriver.Chrome(options=options, service=Service(driver))

    return opened, saved


def _saved_file(folder, name):
    """Return a file when it is whole: a browser holds its name with an empty file before."""
    path = folder / name
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if path.exists() and path.stat().st_size and not list(folder.glob("*.crdownload")):
            break
        time.sleep(0.1)
    return path


def test_a_page_is_filled_in_closed_opened_again_and_saved(tables, browser, tmp_path):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    opened, saved = browser
    asks = ["errors", "dimensions"]
    sheets = _made(tables, tmp_path / "s", asks, raters=["ann"], images=True)
    page = (sheets.folder / "sheet-ann.html").as_uri()
    driver = opened()
    try:
        driver.get(page)
        assert driver.title == "Reading study, ann"
        assert "patients' data: images and reports" in driver.find_element(By.ID, "privacy").text
        assert driver.find_element(By.ID, "status").text == "0 of 6 answered"
        # The image is there, shrunk, and grows by a click.
        image = driver.find_element(By.CSS_SELECTOR, "#images img")
        assert driver.execute_script("return arguments[0].naturalWidth", image) == 768
        image.click()
        assert "large" in image.get_attribute("class")
        ActionChains(driver).send_keys(Keys.ESCAPE).perform()
        assert "large" not in image.get_attribute("class")
        # By mouse: two errors of the first category, and a rating.
        more = driver.find_element(By.CSS_SELECTOR, "#questions td button:last-child")
        more.click()
        more.click()
        name = "correctness"
        driver.find_element(By.CSS_SELECTOR, f"label:has(input[name={name}][value='4'])").click()
        # By keyboard: the three other dimensions, then the next item.
        ActionChains(driver).send_keys("5").send_keys("3").send_keys("1").perform()
        assert driver.find_element(By.ID, "status").text == "1 of 6 answered"
        ActionChains(driver).send_keys("n").perform()
        assert driver.find_element(By.ID, "where").text == "Item 2 of 6"
        driver.find_element(By.ID, "none").click()
        assert driver.find_element(By.ID, "status").text == "1 of 6 answered"
    finally:
        driver.quit()
    driver = opened()
    try:
        driver.get(page)
        # Where the rater was, and what he or she answered.
        assert driver.find_element(By.ID, "where").text == "Item 2 of 6"
        driver.find_element(By.ID, "back").click()
        counted = driver.find_element(By.CSS_SELECTOR, "#questions td input")
        assert counted.get_attribute("value") == "2"
        checked = driver.find_elements(By.CSS_SELECTOR, "#questions input:checked")
        assert [each.get_attribute("value") for each in checked] == ["4", "5", "3", "1"]
        driver.find_element(By.ID, "next").click()
        for digit in "2345":
            ActionChains(driver).send_keys(digit).perform()
        driver.find_element(By.ID, "save").click()
        path = _saved_file(saved, "sheet-ann.csv")
        assert not driver.get_log("browser")
    finally:
        driver.quit()
    shutil.move(path, tmp_path / "s" / "sheet-ann.csv")
    with (tmp_path / "s" / "sheet-ann.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 6
    assert [rows[0][column] for column in list(COUNTS)[:2]] == ["2", ""]
    pairs = read_ratings(tmp_path / "s")
    assert len(pairs) == 2
    assert sorted(pairs.ratings["total errors"][0]) == [0, 2]
    assert sorted(pairs.ratings["fluency"][0]) == [1, 5]
    assert not pairs.bad


def test_preferences_are_given_by_keys(tables, browser, tmp_path):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.by import By

    opened, saved = browser
    sheets = _made(tables, tmp_path / "s", ["preferences"], raters=["bob"])
    driver = opened()
    try:
        driver.get((sheets.folder / "sheet-bob.html").as_uri())
        assert not driver.find_element(By.ID, "images").is_displayed()
        for key in "at":
            ActionChains(driver).send_keys(key).send_keys("n").perform()
        driver.find_element(By.ID, "open").click()
        ActionChains(driver).send_keys("b").perform()
        assert driver.find_element(By.ID, "status").text == "3 of 3 answered"
        # Texts are shown as they are, and do nothing.
        assert driver.title == "Reading study, bob"
        assert HOSTILE in driver.find_element(By.ID, "reports").text
        driver.find_element(By.ID, "save").click()
        shutil.move(_saved_file(saved, "sheet-bob.csv"), tmp_path / "s" / "sheet-bob.csv")
    finally:
        driver.quit()
    with (tmp_path / "s" / "sheet-bob.csv").open(newline="") as stream:
        assert [row["preferred"] for row in csv.DictReader(stream)] == ["A", "tie", "B"]
    run = ratings_read(tmp_path / "s", tmp_path / "o", resamples=20)
    assert {each["comparisons"] for each in run.content["frames"]["systems"]} == {3}


def test_a_page_names_no_system_study_or_file_and_loads_nothing(tables, tmp_path):
    for ask in (["errors"], ["preferences"]):
        sheets = _made(tables, tmp_path / ask[0], ask, images=True)
        text = (sheets.folder / "sheet-rater-1.html").read_text(encoding="utf-8")
        found = json.loads(re.search(r'id="study">(.*?)</script>', text).group(1))
        said = json.dumps({key: found[key] for key in found if key != "images"})
        assert not re.search(r"ours|theirs|\bs0\b|\.png|\.jsonl", said)
        assert "default-src 'none'" in text
        addresses = re.findall(r"""(?:src|href)=["']?([^"'>\s]*)""", text.split("<script")[0])
        assert addresses == []
        assert not re.search(r"https?://", text)
        # The texts of the reports cannot end the element that holds them.
        assert text.count("</script>") == 2
        assert all(
            each["src"].startswith("data:image/jpeg")
            for f in found["images"].values()
            for each in f
        )
    without = _made(tables, tmp_path / "without", ["errors"])
    text = (without.folder / "sheet-rater-1.html").read_text(encoding="utf-8")
    assert "data:image" not in text
