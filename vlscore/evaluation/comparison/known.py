"""Values of an earlier comparison in the same folder, which an extended one does not compute again.

A value is used again where nothing that it depends on has changed: the system's table, the metric's
signature, the studies with their references, and the images where the metric looks at them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import FinishedRun, Signature, Stamps, atomic_write, difference, first_replaced
from vlscore.data import Study
from vlscore.errors import InvalidSetting
from vlscore.evaluation.baselines.training_reports import CONSTANT, NORMAL, RANDOM
from vlscore.evaluation.comparison.system_values import NumberLayout, SystemValues
from vlscore.metrics import Metric

NUMBERS = "numbers.npz"
#: Entries of a comparison's key in which a finished one may differ and be extended.
EXTENDS = frozenset(
    {
        *("metrics", "systems", "baselines", "values", "images_sha256", "image_root"),
        *("patient_column", "against"),
    }
)
_INDEX = "index"


@dataclass(eq=False)
class _KnownBlock:
    """Numbers of one system in one metric: (n, columns + statistics), and why some are missing."""

    numbers: NDArray[np.float64]
    failures: dict[int, str]


@dataclass(eq=False)
class KnownValues:
    """Values by system and metric.

    Attributes:
        blocks: (system, metric) -> its numbers.
        truncated: system -> (n,) whether the encoder did not read the candidate's end.
    """

    blocks: dict[tuple[str, str], _KnownBlock] = field(default_factory=dict)
    truncated: dict[str, NDArray[np.bool_]] = field(default_factory=dict)

    def missing(self, system: str, metrics: Sequence[Metric]) -> list[Metric]:
        """Return the metrics of which the system's values are not known."""
        return [metric for metric in metrics if (system, str(metric)) not in self.blocks]

    def joined(
        self, system: str, layout: NumberLayout, rows: slice, computed: SystemValues | None
    ) -> SystemValues:
        """Return a stretch of a system's values: those computed, and the known ones.

        Args:
            layout: of all metrics.
            rows: the stretch.
            computed: of the metrics that are missing, in the order of the layout.
        """
        new = NumberLayout(tuple(self.missing(system, layout.metrics)))
        numbers = np.full((rows.stop - rows.start, layout.width), np.nan)
        reasons: dict[int, dict[str, str]] = {}
        for metric in layout.metrics:
            block = self.blocks.get((system, str(metric)))
            width = len(metric.columns)
            if block is not None:
                numbers[:, layout.columns(metric)] = block.numbers[rows, :width]
                numbers[:, layout.statistics(metric)] = block.numbers[rows, width:]
                own = {k - rows.start: why for k, why in block.failures.items()}
                failures = {k: why for k, why in own.items() if 0 <= k < len(numbers)}
            else:
                assert computed is not None
                numbers[:, layout.columns(metric)] = computed.numbers[:, new.columns(metric)]
                numbers[:, layout.statistics(metric)] = computed.numbers[:, new.statistics(metric)]
                name = str(metric)
                failures = {k: why[name] for k, why in computed.failures.items() if name in why}
            for k, why in failures.items():
                reasons.setdefault(k, {})[str(metric)] = why
        flags = computed.truncated if computed is not None else None
        if flags is None and system in self.truncated:
            flags = self.truncated[system][rows]
        return SystemValues(numbers, flags, dict(sorted(reasons.items())))


def check_extension(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to extend a comparison whose own systems, metrics or images have changed.

    Raises: InvalidSetting saying what differs.
    """
    changed = []
    for name in sorted(set(before["systems"]) & set(now["systems"])):
        if before["systems"][name] != now["systems"][name]:
            changed.append(f"the table of {name} has changed")
    for name in sorted(set(before["metrics"]) & set(now["metrics"])):
        old, new = (Signature.parse(key["metrics"][name]) for key in (before, now))
        if old != new:
            changed.append(f"{name} is computed in another way: {difference(old, new)}")
    images = [(key["images_sha256"], key["image_root"]) for key in (before, now)]
    if images[0] != images[1] and None not in (images[0][0], images[1][0]):
        changed.append("the images are read from another table or folder")
    if before.get("values") and now.get("values") and before["values"] != now["values"]:
        changed.append("the table of values has changed")
    if changed:
        raise InvalidSetting(
            f"{folder} holds the results of another run, which differs: {'; '.join(changed)}. "
            "Choose another output folder, or give --overwrite to replace them"
        )


def write_numbers(
    path: Path,
    values: Mapping[str, SystemValues],
    signatures: Mapping[Metric, Signature],
    studies: Sequence[Study],
    images: Stamps,
) -> None:
    """Write the values that a later, extended comparison uses again; the bytes repeat.

    Args: images: what the image files were like that the values were computed from.
    """
    layout = NumberLayout(tuple(signatures))
    index = {
        "ids": [study.id for study in studies],
        "metrics": [[str(metric), len(metric.columns)] for metric in layout.metrics],
        "systems": list(values),
        "images": images,
        "failures": {name: each.written_failures() for name, each in values.items()},
    }
    content: dict[str, Any] = {_INDEX: np.frombuffer(json.dumps(index).encode(), dtype=np.uint8)}
    for s, each in enumerate(values.values()):
        for m, metric in enumerate(layout.metrics):
            columns, sums = layout.columns(metric), layout.statistics(metric)
            content[f"{s}.{m}"] = np.hstack([each.numbers[:, columns], each.numbers[:, sums]])
        if each.truncated is not None:
            content[f"{s}.truncated"] = each.truncated
    packed = BytesIO()
    np.savez_compressed(packed, **content)
    with atomic_write(path, "wb") as stream:
        stream.write(packed.getvalue())


def read_numbers(
    run: FinishedRun | None,
    key: Mapping[str, Any],
    signatures: Mapping[Metric, Signature],
    studies: Sequence[Study],
) -> KnownValues:
    """Return the values of a finished comparison that hold for this one.

    Args:
        run: the finished comparison; None where there is none.
        key: of this comparison.
    """
    known = KnownValues()
    if run is None or NUMBERS not in run.digests:
        return known
    same = {name for name, entry in run.key["systems"].items() if key["systems"].get(name) == entry}
    with np.load(run.file(NUMBERS), allow_pickle=False) as content:
        index = json.loads(content[_INDEX].tobytes())
        # If one table is unchanged, so are all references: tables with others are refused.
        if not same or index["ids"] != [study.id for study in studies]:
            return known
        if run.key["baselines"] and key["baselines"]:
            # "nearest-image" is left out: its reports depend on the encoder, which no signature of
            # a text metric names.
            same |= {CONSTANT, NORMAL, RANDOM}
        has_same_images = all(run.key[n] == key[n] for n in ("images_sha256", "image_root"))
        # Where a file was replaced, all numbers of images are computed anew: no row may hold
        # numbers of two images.
        has_same_images = has_same_images and first_replaced(index["images"]) is None
        usable = {
            str(metric): len(metric.columns) + metric.statistics
            for metric, signature in signatures.items()
            if run.key["metrics"].get(str(metric)) == str(signature)
            and (has_same_images or not metric.uses_image)
        }
        for s, system in enumerate(index["systems"]):
            if system not in same:
                continue
            if f"{s}.truncated" in content:
                known.truncated[system] = content[f"{s}.truncated"]
            for m, (name, _) in enumerate(index["metrics"]):
                numbers = content[f"{s}.{m}"]
                if usable.get(name) == numbers.shape[1]:
                    reasons = index["failures"][system]
                    failures = {int(k): why[name] for k, why in reasons.items() if name in why}
                    known.blocks[system, name] = _KnownBlock(numbers, failures)
    return known
