"""Every registered data set keeps the contract, and the contract catches those that do not."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.data.datasets.samples import SAMPLES, film
from vlscore.data import (
    DATASETS,
    Dataset,
    DatasetFiles,
    DatasetStudy,
    Film,
    Omission,
    OmissionReason,
    check_dataset,
    find_dataset,
)
from vlscore.data.datasets.registry import dataset_checks
from vlscore.errors import BrokenContract, InvalidSetting, InvalidTable, UnknownName


def test_every_data_set_has_a_sample():
    assert list(SAMPLES) == DATASETS.names(), "write a function of its name in samples.py"


@pytest.mark.parametrize("name", SAMPLES)
def test_every_registered_data_set_keeps_the_contract(name, tmp_path):
    sample = SAMPLES[name](tmp_path / "data")
    check_dataset(name, sample.folder, **sample.arguments)


class Sound(Dataset):
    """One study in a folder with the file `there`."""

    name = "sound"
    description, source, licence, needs = "d", "s", "l", "n"
    made = DatasetStudy("1", "p", (Film("a.png", "PA"),), {"findings": "Clear."})
    omission = Omission("there", 1, None, "film", OmissionReason("a reason"))

    def studies(self, files: DatasetFiles) -> Iterator[DatasetStudy | Omission]:
        if not (files.folder / "there").exists():
            raise InvalidTable(f"{files.folder}: has no file there")
        yield self.made
        yield self.omission


def _study(**changes: object) -> DatasetStudy:
    facts = {
        "id": "1",
        "patient": "p",
        "films": (Film("a.png"),),
        "sections": {"findings": "Clear."},
    }
    return DatasetStudy(**{**facts, **changes})  # type: ignore[arg-type]


def _with(**attributes: object) -> Dataset:
    return type("Changed", (Sound,), attributes)()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "there").touch()
    film(tmp_path / "a.png")
    return tmp_path


def test_a_sound_data_set_of_ones_own_passes(folder):
    check_dataset(Sound, folder)
    check_dataset(Sound(), folder)


class Forgetful(Sound):
    def studies(self, files):
        if (files.folder / "there").exists():
            yield self.made


class Moody(Sound):
    calls = 0

    def studies(self, files):
        Moody.calls += 1
        yield from super().studies(files)
        yield _study(id=f"call {Moody.calls}")


@pytest.mark.parametrize(
    ("dataset", "problem"),
    [
        (_with(licence=" "), "states no licence"),
        (_with(sections=("findings", "opinion")), "not among"),
        (_with(sections=("comparison",)), "has no report"),
        (_with(made=_study(id=7)), "an id is no text"),
        (_with(made=_study(id=" 7")), "an id is no text"),
        (_with(made=_study(patient=7)), "patient's id is no text"),
        (_with(made=_study(split="valid")), "not named as here"),
        (_with(made=_study(sections={"findings": "a", "history": "b"})), "section is no column"),
        (_with(made=_study(sections={"findings": "a", "impression": " "})), "section is blank"),
        (_with(made=_study(extra={"mesh": "x"})), "further fact is no column"),
        (_with(made=_study(report="Whole.")), "whole report is no column"),
        (_with(made=_study(films=(Film("a.png", rows=3),))), "sizes of films"),
        (_with(made=_study(films=(Film("a.png", " "),))), "view is blank"),
        (_with(made=_study(films=(Film("gone.png"),))), "no study of the folder can be used"),
        (
            _with(omission=Omission("there", 1, "1", "study", OmissionReason("r"), "so: Clear.")),
            "quotes a report",
        ),
        (_with(omission=Omission("", 1, "1", "study", OmissionReason("r"))), "names no file"),
        (
            _with(omission=Omission("f", 1, "1", "row", OmissionReason("r"))),
            "neither study nor film",
        ),
        (Forgetful(), "taken for an empty data set"),
        (Moody(), "differ when they are read again"),
    ],
)
def test_a_broken_data_set_is_caught_by_name(dataset, problem, folder):
    with pytest.raises(BrokenContract, match=problem) as caught:
        check_dataset(dataset, folder)
    assert str(caught.value).startswith("sound: ")


def test_every_check_is_run():
    names = [check.__name__ for check in dataset_checks()]
    assert names == [
        "check_facts",
        "check_studies",
        "check_columns",
        "check_films",
        "check_repeats",
        "check_omissions",
        "check_wrong_folder",
    ]


def test_names_are_found_in_any_spelling_and_others_are_refused():
    assert find_dataset("Open_I").name == "iu-openi"
    assert find_dataset("tests.data.datasets.test_contract:Sound").name == "sound"
    with pytest.raises(UnknownName, match="did you mean mimic-cxr"):
        find_dataset("mimic-cxt")
    with pytest.raises(InvalidSetting, match="no data set"):
        find_dataset(7)
