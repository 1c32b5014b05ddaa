"""The best and the worst retrievals of a training, on its validation pairs."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import RECORD
from vlscore.data import Study
from vlscore.encoders import encoder_from_file, load_encoder
from vlscore.errors import DemonstrationEncoderWarning, VLScoreError
from vlscore.pages.marked_texts import judged_block
from vlscore.pages.page_parts import CaseList, Column, RunView
from vlscore.pages.result_folder import ResultFolder
from vlscore.pages.view_parts import PageOptions

if TYPE_CHECKING:
    from vlscore.training import Pairs

#: Validation pairs that are embedded for a page; the others are left out.
MOST_PAIRS = 500


def add_retrievals(folder: ResultFolder, options: PageOptions, view: RunView) -> list[Study | None]:
    """List the validation pairs by the rank of their report, and return their studies.

    The pairs that the training decoded into its folder are embedded with the trained weights. A
    note says why there is no list, or that it has only the first pairs.

    Args: view: gets a list of cases: each with the report that is nearest to the film.
    """
    try:
        pairs, is_own = _pairs(folder)
        from vlscore.training import split

        settings = folder.record["settings"]
        rows = np.arange(len(pairs))
        if not is_own:
            rows = split(pairs, settings["validation_share"], settings["seed"])[1]
        if not len(rows):
            raise VLScoreError("the run has no validation pairs")
        texts = [pairs.texts[row] for row in rows[:MOST_PAIRS]]
        # Arrays, which the page shows as it does files.
        films: list[Any] = [pairs.frontal(int(row)) for row in rows[:MOST_PAIRS]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DemonstrationEncoderWarning)
            # The folder may be somebody else's: its name of an encoder chooses registered ones.
            name = encoder_from_file(folder.record["start"]["encoder"], folder.path / RECORD)
            encoder = load_encoder(name, weights=folder.path)
            images, reports = encoder.encode_images(films), encoder.encode_reports(texts)
    except (VLScoreError, OSError, KeyError) as error:
        view.notes.append(f"The best and the worst retrievals are not shown: {error}.")
        return []
    ids = [pairs.ids[row] for row in rows[:MOST_PAIRS]]
    scores = _cosines(images.numpy(), reports.numpy())
    ranks, nearest = ranks_of(scores, texts)
    values = {
        "id": ids,
        "rank": ranks,
        "cosine of own report": [float(scores[k, k]) for k in range(len(ids))],
        "cosine of nearest report": [float(scores[k, n]) for k, n in enumerate(nearest)],
    }
    columns = [Column("id", is_text=True), Column("rank", -1, is_main=True)]
    columns += [Column(name, is_main=True) for name in list(values)[2:]]
    view.cases = CaseList("validation films", columns, values, "rank", True)
    view.lead += (
        f" The list has {len(ids):,} of {len(rows):,} validation films: rank of a film's own "
        f"report among {len(set(texts)):,} different ones, and the report nearest to the film."
    )
    if options.texts:
        view.cases.cases = [
            [judged_block(texts[near], texts[k], title="report nearest to the film")]
            for k, near in enumerate(nearest)
        ]
    # `add_films` takes arrays, too.
    shown: list[Any] = [(film,) for film in films]
    return [
        Study(id, shown[k], texts[k], texts[near], row=k + 1)
        for k, (id, near) in enumerate(zip(ids, nearest, strict=True))
    ]


def ranks_of(scores: np.ndarray, texts: list[str]) -> tuple[list[int], list[int]]:
    """Return the rank of each film's own report, 1 the best, and the place of the nearest report.

    Equal texts are one report.

    Args: scores: (n, n), similarity of film i and report j; texts: n reports.

    >>> ranks_of(np.array([[0.2, 0.9, 0.9], [0.1, 0.5, 0.5], [0, 1, 1]]), ["a", "b", "b"])
    ([2, 1, 1], [1, 1, 1])
    """
    first = {text: k for k, text in reversed(list(enumerate(texts)))}
    columns = np.array(sorted(first.values()))
    different = scores[:, columns]
    own = scores[np.arange(len(texts)), [first[text] for text in texts]]
    ranks = 1 + (different > own[:, None]).sum(axis=1)
    return ranks.tolist(), columns[different.argmax(axis=1)].tolist()


def _pairs(folder: ResultFolder) -> "tuple[Pairs, bool]":
    """Return the decoded pairs, and whether all of them are for validation.

    Raises: VLScoreError where they are not in the folder, or are not those of the run.
    """
    is_own = folder.key.get("validation") is not None
    place: Path = folder.path / ("pairs-validation" if is_own else "pairs")
    pairs = None
    if place.is_dir():
        from vlscore.training import decoded_pairs

        pairs = decoded_pairs(place)
    if pairs is None:
        raise VLScoreError(
            f"the folder has no decoded pairs in {place.name}; a run with --pairs stored them "
            "elsewhere"
        )
    if pairs.sha256 != folder.record.get("validation_sha256" if is_own else "data_sha256"):
        raise VLScoreError(f"the pairs in {place.name} are not those of the run")
    return pairs, is_own


def _cosines(images: np.ndarray, reports: np.ndarray) -> np.ndarray:
    units = [
        x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12) for x in (images, reports)
    ]
    found: np.ndarray = np.round(units[0] @ units[1].T, 12)
    return found
