"""GREEN: matched findings / (matched findings + significant errors), by a language model here."""

from pathlib import Path
from typing import Any

import numpy as np

from vlscore.errors import VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.library.file_metric import FileMetric, path_parameter
from vlscore.metrics.memo import name_and_digest
from vlscore.metrics.metric import Output
from vlscore.metrics.networks.categories import CATEGORIES
from vlscore.metrics.networks.model_files import (
    check_model_folder,
    device_of_annotators,
    files_of_model,
    read_template,
)

MODEL_VARIABLE = "VLSCORE_GREEN"


def _counts(kind: str) -> list[Output]:
    outputs = {kind: f"clinically {kind} errors"}
    outputs |= {f"{kind}-{name}": f"{kind}: {what}" for name, what in CATEGORIES.items()}
    return [Output(name, what, False, (0.0, None)) for name, what in outputs.items()]


class Green(FileMetric):
    """Judges each distinct pair once; an unreadable answer is a failure."""

    name = "green"
    title = "GREEN"
    description = (
        "share of matched findings among matched findings and clinically significant errors, as a "
        "language model counts them"
    )
    citation = "Ostmeier et al. 2024, GREEN, EMNLP Findings"
    bounds = (0.0, 1.0)
    further = (
        Output("matched", "findings that both reports have", bounds=(0.0, None)),
        *_counts("significant"),
        *_counts("insignificant"),
    )
    library = "transformers"

    model: str | None = path_parameter(
        "folder of the language model, such as GREEN-radllama2-7b, with the released question "
        f"as green_prompt.txt next to it; default: {MODEL_VARIABLE}, else what `vlscore weights "
        "fetch green` downloads"
    )

    def compute(self, batch: Batch) -> Computed:
        from vlscore.metrics.networks.green_model import (
            UnreadableAnswer,
            known_answers,
            read_green_answer,
        )

        found = np.full((len(self.columns), len(batch)), np.nan)
        failures: dict[int, VLScoreError] = {}
        for row, text in enumerate(known_answers(batch.memo, self.files()[0], batch.pairs())):
            if isinstance(text, VLScoreError):
                failures[row] = text
                continue
            try:
                answer = read_green_answer(text)
            except UnreadableAnswer as error:
                failures[row] = UnreadableAnswer(f"GREEN's answer cannot be read: {error}")
                continue
            counts = [answer.significant, answer.insignificant or (np.nan,) * len(CATEGORIES)]
            numbers = [number for each in counts for number in (sum(each), *each)]
            found[:, row] = [answer.score, answer.matched, *numbers]
        return Computed(list(found), failures=failures)

    def facts(self) -> dict[str, Any]:
        from vlscore.metrics.networks.green_model import LONGEST, precision_on

        (model,) = self.present_files()
        return {
            "model": name_and_digest(model, files_of_model(model)),
            "prompt": read_template(model)[1],
            "longest": str(LONGEST),
            "precision": precision_on(device_of_annotators()),
            **super().facts(),
        }

    def files(self) -> tuple[Path, ...]:
        folder = check_model_folder(self.path_of("model", MODEL_VARIABLE, "GREEN-radllama2-7b"))
        read_template(folder)
        return (folder,)
