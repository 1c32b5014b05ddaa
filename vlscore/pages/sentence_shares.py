"""What each sentence costs: shares of a run's worst studies, computed with the run's encoder."""

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vlscore.core import RECORD, Signature
from vlscore.data import Study
from vlscore.encoders import encoder_from_file
from vlscore.errors import DemonstrationEncoderWarning, VLScoreError
from vlscore.metrics import Scorer, explain_with, metric_from_file
from vlscore.pages.page_parts import RunView, worst_first
from vlscore.pages.result_folder import ResultFolder

# A score computed again may differ by this much from that of the run: batches are of other sizes.
_TOLERANCE = 1e-3


def add_shares(
    view: RunView,
    folder: ResultFolder,
    studies: Sequence[Study | None],
    count: int,
    weights: str | Path | None = None,
    *,
    maps: bool = False,
) -> None:
    """Add the shares of the sentences to the first `count` cases of the list.

    A note says why shares are absent: the encoder cannot be loaded, or is not the run's.

    Args: maps: also add where each sentence looks on the first film.
    """
    if view.cases is None or view.cases.cases is None or folder.scores is None:
        return
    name, recorded = next(iter(folder.signatures.items()))
    try:
        scorer = _scorer_of(name, recorded, folder, weights)
        here = str(_without_text(scorer.signature))
        if here != str(_without_text(Signature.parse(recorded))):
            raise VLScoreError(f"the signature is {here} here, but {recorded} in the run")
    except VLScoreError as error:
        view.notes.append(f"No shares of sentences: {error}.")
        return
    failed = 0
    for row in worst_first(view.cases)[:count]:
        study, blocks = studies[row], view.cases.cases[row]
        value = view.cases.values[name][row]
        if study is None or not blocks or value is None:
            continue
        try:
            found = explain_with(scorer, study.images, study.candidate or "", study.reference or "")
        except VLScoreError:
            failed += 1
            continue
        if abs(found.score - value) > _TOLERANCE * max(1.0, abs(value)):
            failed += 1
            continue
        blocks[0].shares = {**found.to_dict(), "metric": name}
        if maps:
            from vlscore.pages.sentence_maps import maps_of

            # The film was read for the score; an encoder without local vectors has no maps.
            blocks[0].maps = maps_of(scorer, study.images, found)
    if failed:
        view.notes.append(
            f"No shares of sentences for {failed:,} studies: their score could not be computed "
            "again, or is different now."
        )


def _scorer_of(
    name: str, recorded: str, folder: ResultFolder, weights: str | Path | None
) -> Scorer:
    """Return a scorer with the settings that a signature names; the texts are selected already."""
    facts, source = Signature.parse(recorded), folder.path / RECORD
    encoder = folder.record.get("encoder")
    named = encoder.get("name") if isinstance(encoder, Mapping) else None
    # The folder may be somebody else's: its names choose registered members alone, never code.
    metric = metric_from_file(name, source)
    if named is not None:
        named = encoder_from_file(str(named), source, "--encoder")
    settings: dict[str, Any] = {}
    if facts.get("img") is not None:
        settings["image_policy"] = facts.get("img")
    if facts.get("views") is not None:
        settings["views"] = facts.get("views")
    if facts.get("C") is not None and facts.subject == "vlscore":
        settings["C"] = float(facts.get("C") or 0)
    if weights is not None:
        settings["weights"] = str(weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonstrationEncoderWarning)
        return Scorer(named, metrics=metric, **settings)


def _without_text(signature: Signature) -> Signature:
    return signature.without("txt")
