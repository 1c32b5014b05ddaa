"""Data sets by name; a new one is one file with a subclass of Dataset and one line here."""

from typing import Any

from vlscore.core import Registry
from vlscore.data.datasets.dataset_base import Dataset
from vlscore.errors import InvalidSetting

AnyDataset = str | Dataset | type[Dataset]


def _check(member: Any) -> None:
    is_class = isinstance(member, type) and issubclass(member, Dataset)
    if not is_class and not isinstance(member, Dataset):
        raise InvalidSetting(
            f"{member!r} is no data set: it must be of a class derived from vlscore.data.Dataset"
        )


DATASETS: Registry[Any] = Registry("data set", group="vlscore.datasets", check=_check)

for _name, _target, _aliases in (
    ("mimic-cxr-jpg", "mimic_cxr_jpg:MimicCxrJpg", ()),
    ("mimic-cxr", "mimic_cxr:MimicCxr", ()),
    ("iu-openi", "iu_openi:IuOpenI", ("open-i", "openi")),
    ("iu-kaggle", "iu_kaggle:IuKaggle", ()),
    ("r2gen", "r2gen:R2Gen", ("iu-r2gen",)),
    ("squared-films", "squared_films:SquaredFilms", ()),
    ("chexpert-plus", "chexpert_plus:CheXpertPlus", ()),
    ("padchest", "padchest:PadChest", ()),
    ("rexgradient-160k", "rexgradient:ReXGradient", ("rexgradient",)),
    ("rexrank", "rexrank:ReXrankManifest", ()),
):
    DATASETS.register(f"vlscore.data.datasets.{_target}", _name, aliases=_aliases)


def find_dataset(name: AnyDataset) -> Dataset:
    """Return the data set of that name, or the object itself; a class is instantiated.

    Raises: UnknownName with similar names; InvalidSetting for an object that is no data set.

    >>> find_dataset("Open-I").name
    'iu-openi'
    """
    found = DATASETS.find(name)
    made: Dataset = found() if isinstance(found, type) else found
    return made
