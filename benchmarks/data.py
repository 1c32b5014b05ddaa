"""Where the data of real people that some benchmarks need come from; the project carries none.

A script names its file's entry here, hands the path that the user gave to `DataFile.check`, and
prints the line that comes back, so that every result says what it was measured on.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataFile:
    """A file of others that a benchmark reads.

    Attributes:
        title: what it holds, and whose it is.
        url: where to get it, or what it is made of.
        licence: as stated by its owners.
        sha256: of the file behind the committed result.
        obtain: what to do in order to have it, in words.
    """

    title: str
    url: str
    licence: str
    sha256: str
    obtain: str

    def check(self, path: Path) -> str:
        """A line for the report: the file, its origin, and whether it is the recorded one.

        Raises: SystemExit that says what to get, and where, if there is no such file.
        """
        if not path.is_file():
            raise SystemExit(f"{path} is no file. Needed: {self.title} ({self.url}). {self.obtain}")
        other = "" if _sha256(path) == self.sha256 else "; not the file of the committed result"
        return f"Data: {describe_file(path)}{other}: {self.title}, {self.url}, {self.licence}."


def describe_file(path: Path) -> str:
    """Name and digest of a table that the user gave, whatever it holds.

    Raises: SystemExit where there is no such file.
    """
    if not path.is_file():
        raise SystemExit(f"{path} is no file; give the path of a table")
    return f"`{path.name}` (sha256 {_sha256(path)[:16]})"


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


INDIANA_REPORTS = DataFile(
    title="reports of the Indiana University chest X-ray collection with their manual codings "
    "(Demner-Fushman et al. 2016)",
    url="https://openi.nlm.nih.gov/imgs/collections/NLMCXR_reports.tgz",
    licence="CC BY-NC-ND 4.0",
    sha256="247a7d9103a7ea4289104e1d71dbe34915b6f0b2952cd8ad1469464aaf27b32e",
    obtain="Write one JSON object a line for each report of that archive: `id` (its number), "
    "`findings` and `impression` (their texts), `mesh` (the major MeSH terms, joined by ';'). The "
    "committed results are of 2,708 of the 3,826 reports that have a text.",
)
NEGEX_TEST_SET = DataFile(
    title="NegEx's published test set, Annotations-1-120.txt (Chapman et al. 2001)",
    url="https://raw.githubusercontent.com/chapmanbe/negex/"
    "d136b972b5d214959807ad5de1881a3225541fe7/negex.python/Annotations-1-120.txt",
    licence="Apache-2.0",
    sha256="7e844c5ea0a0ef0d16f1308fa1074c00e0fb31cfbe38a61999d34a56a2d98dc7",
    obtain="Download it and give its path.",
)


def _generated(name: str, what: str, sha256: str) -> DataFile:
    return DataFile(
        title=f"{what}, for 273 test studies of the Indiana collection",
        url=f"https://github.com/WangXuanmin/MRG_RL (results folders), as {name}.jsonl",
        licence="MIT; the references are of the Indiana collection, CC BY-NC-ND 4.0",
        sha256=sha256,
        obtain="Write one JSON object a line for each study of those results: `id`, `reference`, "
        "`candidate`, lower-cased with tokens apart, as they stand there.",
    )


GENERATED = {
    "template_fusion": _generated(
        "template_fusion",
        "a template fusion's reports",
        "1b80ace162ae33d6af0d22674e729b0eb01ff8cb3d3d6900b38dd2120d28ce4b",
    ),
    "template_refine": _generated(
        "template_refine",
        "a template refinement's reports",
        "e39455e671448517f64445a1783977aa7b0f431a0f5d4cea5e9cac7cdf1d65b0",
    ),
    "retrieval_copy": _generated(
        "retrieval_copy",
        "a retrieval copy's reports",
        "dd57eec9dd193279959263706fb2f67ab7b9badb1b34b53fdcd1b2ca73f7113d",
    ),
    "vlm_epoch0": _generated(
        "vlm_epoch0",
        "a vision-language model's reports after its first epoch",
        "229fee19a1a5fdb4f0a5d070eecca109ef6a7764af3be644afa830fa68c2a1d9",
    ),
    "vlm_final": _generated(
        "vlm_final",
        "the same model's reports at the end",
        "f11d2f74f62e5e6a122f45dbc8cf4d116686f4cb5cb763bab3058ab8de3f551d",
    ),
}


def _radpref(name: str, what: str, sha256: str) -> DataFile:
    return DataFile(
        title=what,
        url=f"https://github.com/rajpurkarlab/CRIMSON (RadPref/, RadJudge/), as {name}",
        licence="MIT",
        sha256=sha256,
        obtain="Download the repository; the committed results are of 50 of its 100 cases.",
    )


RADPREF = {
    "preference_data.json": _radpref(
        "preference_data.json",
        "RadPref's references and two candidates each",
        "692bd2735d773ae6cdc3308b3005adecfcc90fbe41a9d8b5a5b58e7082c8d43d",
    ),
    "user_1.json": _radpref(
        "user_1.json",
        "errors and ratings of RadPref's first radiologist",
        "e7c8d72eb814a34ace1548bed4f42179a1fc511e34db29e47456fc8801021f45",
    ),
    "user_2.json": _radpref(
        "user_2.json",
        "errors and ratings of RadPref's second radiologist",
        "f455e57a00ebdc68700bb785e1db60c3a13ba59ff7f3b4202b02d2fae951f694",
    ),
    "user_3.json": _radpref(
        "user_3.json",
        "errors and ratings of RadPref's third radiologist",
        "b1fcbf541569d4b3fa9067f178ccde23579c02f18c80445042806433734bd026",
    ),
    "radjudge.json": _radpref(
        "radjudge.json",
        "RadJudge's 30 small cases with the order of their candidates",
        "c3a33618fda4098a46a44aa14a74bf2ad8320d27fa791fc4620770a7aca0204f",
    ),
}

CVT2DISTILGPT2 = DataFile(
    title="reports of CvT2DistilGPT2 (Nicolson et al. 2023) for 336 studies of the Indiana "
    "collection",
    url="https://github.com/aehrc/cvt2distilgpt2",
    licence="GPL-3.0",
    sha256="ebceb4bb760b84782438c15686f829ae826f31a20a0287c58bba8e5450f81ab5",
    obtain="Write one JSON object a line for each report under experiment/iu_x_ray_chen: `id`, "
    "`reference`, `candidate`.",
)
SQUARED_IMAGES = DataFile(
    title="2,513 studies of the Indiana collection with images squeezed to 256 x 256 pixels",
    url="https://openi.nlm.nih.gov",
    licence="CC BY-NC-ND 4.0",
    sha256="d189347a72ff6f9ca88a97b61673f4324ac029045d563b9b14038634164bbd76",
    obtain="Write one JSON object a line for each study, in the layout `squeezed-images` of "
    "docs/datasets.md.",
)
NIH_FILMS = DataFile(
    title="489 frontal films of NIH ChestX-ray14 (Wang et al. 2017) at 256 x 256 pixels, 24 of "
    "them with boxes",
    url="https://nihcc.app.box.com/v/ChestXray-NIHCC",
    licence="free use with attribution (NIH Clinical Center)",
    sha256="d8268340925d10f9a955821eee16ad1eaf7acc0d87f76430f3b194f20091c954",
    obtain="Write one JSON object a line for each film: `id`, `image` (its path), and `boxes`, a "
    "list of finding, x, y, width, height in pixels of the film, as BBox_List_2017.csv has them.",
)
