"""Result of a training run: the encoder, its card, its logs and its settings."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.encoders import JointEncoder
from vlscore.evaluation import Calibration
from vlscore.stats import (
    Content,
    Presentation,
    Result,
    TextTable,
    curves,
    text_table,
)
from vlscore.training.loop import Training, measure_constant
from vlscore.training.settings import OF_SMALL, Start, TrainingSettings, write_config
from vlscore.training.state import LOG, LOGS, VALIDATIONS
from vlscore.training.step import Towers
from vlscore.training.training_pairs import Preparation

if TYPE_CHECKING:
    import pandas

CONFIG = "training.toml"


class TrainingRun(Result):
    """Result of a finished training run: a folder that `load_encoder` reads, with the logs.

    `failures` are the rows that gave no pair.
    """

    @property
    def encoder(self) -> str:
        """Return the name of the encoder for `load_encoder`."""
        return str(self.record["start"]["encoder"])

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a step: loss, parts of the loss, rates."""
        import pandas

        return pandas.read_csv(self.folder / "log.csv")


def write_result(
    folder: Path,
    training: Training,
    preparation: Preparation,
    config: Mapping[str, Any],
    facts: Mapping[str, Any],
    call: Mapping[str, Any],
    key: Mapping[str, Any],
) -> dict[str, Any]:
    """Write all files of a result, and return the entries of run.json.

    Args:
        preparation: of the validation pairs.
        config: content of training.toml.
        facts: entries of the encoder's card and of run.json.
        call: entries of run.json that differ from call to call.
        key: what the result depends on.
    """
    import pandas

    encoder, held = training.encoder, training.validation
    calibration = None
    if held is not None:
        towers = Towers(encoder, local=False, precision="fp32")
        calibration = measure_constant(held, towers, preparation, training.settings.seed)
    write_config(folder / CONFIG, config)
    encoder.save(folder, _card(encoder, facts, calibration))  # type: ignore[operator]
    logs = {name: pandas.DataFrame(training.rows[name]) for name in LOGS}
    content = Content(
        frames={VALIDATIONS: logs[VALIDATIONS]},
        rows={f"{name}.csv": rows for name, rows in logs.items() if len(rows)},
        failures=training.source.pairs.failed,
        facts={**facts, **call},
    )
    return Result.written(folder, key, content).record


def _card(
    encoder: JointEncoder, facts: Mapping[str, Any], calibration: Calibration | None
) -> dict[str, Any]:
    """Return the entries of a trained encoder's card that its layout does not determine."""
    measured: dict[str, Any] = {"C_source": "not measured: vlscore calibrate"}
    if calibration is not None:
        measured = {
            "C": calibration.C,
            "C_source": f"{calibration.source}, of images as stored for training",
            "calibration": calibration.to_dict(),
        }
    title = encoder.card.title.removesuffix(", own training")
    return {
        "title": f"{title}, trained by {facts['objective']} on {Path(facts['table']).name}",
        **measured,
        "training": dict(facts),
    }


def config_of(
    preparation: Preparation, validation: Path | None, start: Start, settings: TrainingSettings
) -> dict[str, Any]:
    """Return every setting of a run by the name of its option.

    Args: validation: table of the validation pairs; None if they are a share of the studies.
    """
    columns = asdict(preparation.table.columns) | {"patient": preparation.group_column}
    renamed = [f"{role}={name}" for role, name in columns.items() if name not in (role, None)]
    if columns["patient"] == "patient":
        renamed.append("patient=patient")
    paths = {
        "studies": preparation.table.path,
        "image_root": preparation.table.root,
        "validation": validation,
        "weights": start.weights,
        "tokenizer": start.tokenizer,
        "image_weights": start.image_weights,
    }
    return {
        **{name: path and Path(path).resolve() for name, path in paths.items()},
        "rename": ",".join(renamed) or None,
        "image_policy": preparation.image_policy.signature(),
        "section": preparation.text_policy.section_of("reference"),
        "views": preparation.views,
        "encoder": start.name,
        **{name: getattr(start, name) for name in OF_SMALL},
        **asdict(settings),
    }


def _tables(run: Result) -> list[TextTable]:
    best = run.record["best_validation"]
    title = f"best of {run.record['validation_pairs']} validation pairs"
    return [] if best is None else [text_table(title, [best])]


def draw_training(run: Result, format: str, columns: Sequence[str] = ()) -> list[Path]:
    """Draw loss and retrieval by step."""
    log, checked = run.rows(f"{LOG}.csv"), run.frames[VALIDATIONS]
    panels = {"Loss": {"training": (log["step"].tolist(), log["loss"].tolist())}}
    if len(checked):
        series = {n: (checked["step"].tolist(), checked[n].tolist()) for n in checked}
        recalls = [name for name in series if "R@" in name][:3]
        panels["Loss"]["validation"] = series["loss"]
        panels["Validation: recall"] = {n: series[n] for n in ("mean recall", *recalls)}
    path = run.folder / f"curves.{format}"
    curves(panels, path, title="Training", label="step")
    return [path]


PRESENTATION = Presentation(_tables, draw_training, page="vlscore.pages.run_views:train_view")
