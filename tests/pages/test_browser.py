"""A result page in a real browser, from a file: sort, filter, search, open a case, keyboard."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.pages.conftest import COUNT, command
from vlscore.pages import report

pytest.importorskip(
    "selenium", reason="the tests in a browser need selenium: make test installs it"
)
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None,
        reason="no Chromium with chromedriver: apt-get install chromium chromium-driver",
    ),
]


class Browser:
    """A page that a browser shows, and what it reported."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, fragment: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(page.as_uri() + fragment)
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 30).until(
            lambda d: d.execute_script("return document.documentElement.dataset.ready") == "yes"
        )

    def run(self, program: str, *arguments: Any) -> Any:
        return self.driver.execute_script(program, *arguments)

    def texts(self, selector: str) -> list[str]:
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)",
            selector,
        )

    def column(self, place: int) -> list[str]:
        return self.texts(f".row > :nth-child({place})")

    def press(self, *keys: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def search(self, words: str) -> None:
        self.run(
            "const box = document.querySelector('input[type=search]'); box.value = arguments[0];"
            "box.dispatchEvent(new Event('input'))",
            words,
        )
        self.driver.execute_async_script("setTimeout(arguments[arguments.length - 1], 250)")

    @property
    def count(self) -> str:
        return self.texts(".tools .count")[0]


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.add_argument("--window-size=1400,1000")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture
def browser(driver: Any, page: Path) -> Browser:
    shown = Browser(driver)
    driver.get_log("browser")
    driver.get_log("performance")
    shown.open(page)
    return shown


def test_no_console_error_no_request_and_no_foreign_code(browser, driver):
    browser.click(".row")
    browser.search("study-005")
    browser.click(".row")
    assert driver.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    requested = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    assert [url for url in requested if not url.startswith(("file:", "data:", "about:"))] == []
    assert browser.run("return window.hacked") is None
    assert "<script>window.hacked=1</script>" in "".join(browser.texts(".case .text p"))
    assert browser.run("return document.querySelectorAll('.case img').length") == 0


def test_the_worst_study_comes_first_and_a_header_sorts(browser):
    values = [float(value) for value in browser.column(2) if value != "–"]
    assert values == sorted(values)
    browser.click("[data-sort='rouge-l']")
    values = [float(value) for value in browser.column(2) if value != "–"]
    assert values == sorted(values, reverse=True)
    assert browser.texts("[aria-sort='descending']")[0].startswith("rouge-l")
    browser.click("[data-sort='id']")
    names = browser.column(1)
    assert names[:3] == ["study-000", "study-001", "study-002"]


def test_only_visible_rows_are_in_the_document(browser):
    assert len(browser.column(1)) < COUNT
    browser.click("[data-sort='id']")
    browser.run("document.querySelector('.grid').scrollTop = 1e6")
    browser.driver.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 50))")
    assert browser.column(1)[-2:] == ["study-047", "x" + browser.column(1)[-1][1:]]


def test_searches_texts_ids_and_numbers(browser):
    browser.search("pacemaker")
    assert browser.count == f"12 of {COUNT} studies"
    browser.search("study-01 Pacemaker")
    assert set(browser.column(1)) == {"study-011", "study-015", "study-019"}
    browser.search("rouge-l<0.1")
    assert {float(value) for value in browser.column(2)} == {0.0}


def test_a_bar_filters_by_kind_and_a_chip_takes_it_back(browser):
    browser.run(
        "[...document.querySelectorAll('.bars button')]"
        ".find((bar) => bar.textContent.startsWith('wrong place')).click()"
    )
    assert browser.count == f"12 of {COUNT} studies"
    assert all("wrong place" in text for text in browser.column(3))
    browser.click(".chips button")
    assert browser.count == f"{COUNT} studies"


def test_a_case_opens_by_keyboard_and_closes(browser):
    from selenium.webdriver.common.keys import Keys

    browser.run("document.querySelector('.grid').focus()")
    browser.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
    name = browser.column(1)[2]
    assert browser.texts(".case h3")[0].startswith(name)
    assert browser.run("return location.hash").startswith("#case=0/")
    browser.press("j")
    assert browser.texts(".case h3")[0].startswith(browser.column(1)[3])
    browser.press("k")
    assert browser.texts(".case h3")[0].startswith(name)
    browser.press(Keys.ESCAPE)
    assert browser.run("return document.querySelector('.case').hidden")
    assert browser.run("return document.activeElement.className") == "grid"
    browser.press("/")
    assert browser.run("return document.activeElement.type") == "search"


def test_an_address_opens_its_case(browser, page):
    browser.open(page, "#case=0/2")
    assert browser.texts(".case h3")[0].startswith("study-002")
    assert browser.texts(".case .errors li b + .tag") == ["wrong place"]
    marks = browser.texts(".case .mark.place")
    assert any("Left pleural effusion" in mark for mark in marks)


@pytest.mark.parametrize("width", [1400, 390])
def test_nothing_is_wider_than_the_window(browser, page, width):
    size = {"width": width, "height": 850, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.open(page, "#case=0/5")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_prints_the_list_and_the_tables(browser):
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert len(browser.column(1)) == COUNT
    assert browser.run("return [...document.querySelectorAll('details')].every((d) => d.open)")
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert len(browser.column(1)) < COUNT


def test_a_sentence_costs_the_same_on_the_page_and_in_the_terminal(driver, tmp_path):
    """The wrong sentence costs, the right one helps; both places print one sign."""
    from vlscore.metrics import Scorer
    from vlscore.pages import explain_study

    scorer = Scorer(metrics="rouge-l")
    reference = "Large effusion. No edema."
    found = explain_study(scorer, (), "Large effusion. The heart is big.", reference)
    wrong = next(each for each in found.explanation.candidate if "heart" in each.text)
    right = next(each for each in found.explanation.candidate if "effusion" in each.text)
    without = scorer.score(None, "Large effusion.", reference).values["rouge-l"]
    assert wrong.share == pytest.approx(without - found.score.values["rouge-l"])
    assert wrong.share > 0 > right.share
    shown = Browser(driver)
    shown.open(found.write(tmp_path / "page.html").path)
    printed = str(found)
    for each, number in zip(
        (*found.explanation.candidate, *found.explanation.reference),
        shown.texts(".shares .number"),
        strict=True,
    ):
        assert float(number.replace("−", "-")) == pytest.approx(each.share, abs=6e-4)
        assert f"{each.share:+.4f}  {each.text}" in printed


def test_the_search_of_a_comparison_knows_its_columns(driver, tmp_path):
    """What a keyboard can type: a metric of any system, of one, their difference; else a hint."""
    for name, answers in {"ours": ["Edema.", "Clear lungs."], "theirs": ["No.", "Clear."]}.items():
        rows = [
            {"id": f"s{k}", "reference": r, "candidate": answers[k]}
            for k, r in enumerate(["Edema.", "Clear lungs."])
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    tables = [tmp_path / "ours.jsonl", tmp_path / "theirs.jsonl"]
    command("compare", *tables, "-m", "rouge-l", "-o", tmp_path / "c")
    shown = Browser(driver)
    shown.open(report(tmp_path / "c").path)
    # ours: 1 and 1; theirs: 0 and 2/3.
    for words, count in (
        ("rouge-l<0.2", "1 of 2 studies"),
        ("rouge-l>0.9", "2 studies"),
        ("rouge-l ours<0.9", "0 of 2 studies"),
        ("rouge-l difference>0.5", "1 of 2 studies"),
        ("edema rouge-l theirs<0.7", "1 of 2 studies"),
    ):
        shown.search(words)
        assert shown.count == count, words
    shown.search("foo<0.2")
    assert "no column foo; there are rouge-l, rouge-l difference, rouge-l ours" in shown.count
