"""Result folders as a page reads them: run.json, result files, and the table of the run."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from vlscore.core import RECORD, Signature, end_decided_run, file_digest, finished_run, from_cell
from vlscore.data import BadRow, ColumnNames, Study, StudyTable, TextPolicy, open_studies
from vlscore.errors import InvalidSetting, InvalidTable, VLScoreError
from vlscore.stats import FAILURES

#: A file that only one command writes -> name of the command.
_WRITTEN_BY: Mapping[str, str] = {
    "validation.csv": "train",
    "judgements.jsonl": "judge",
    "findings.csv": "findings",
    "findings.jsonl": "findings",
    "hits.parquet": "oracle",
    "perturbations.jsonl": "perturb",
}
# Parts in which reasons of one kind differ: quoted text, paths, numbers.
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\S*/\S+|\d+(?:\.\d+)?")
_REPR = re.compile(r"(\w*section)='([\w+]+)'")


@dataclass(frozen=True)
class OpenedRun:
    """A finished run.

    Attributes:
        path: of the folder.
        record: content of run.json.
    """

    path: Path
    record: Mapping[str, Any]

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Read a folder and check that its results are as the run wrote them.

        Raises: InvalidSetting where the folder holds no finished run; ChecksumMismatch.
        """
        folder = Path(path)
        if folder.is_dir():
            end_decided_run(folder)
        run = finished_run(folder) if folder.is_dir() else None
        if run is None:
            raise InvalidSetting(
                f"{folder} has no {RECORD}: name the folder that a finished command wrote "
                "(its --out)"
            )
        run.check()
        return cls(folder, run.record)

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.path.resolve().name

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the results."""
        return tuple(self.record.get("results", ()))

    @property
    def key(self) -> Mapping[str, Any]:
        """Settings and inputs of the run."""
        found: Mapping[str, Any] = self.record["key"]
        return found

    @property
    def command(self) -> str:
        """Name of the command that wrote the folder."""
        if "command" in self.key:
            return str(self.key["command"])
        if self.scores is not None:
            return "evaluate"
        for name, command in _WRITTEN_BY.items():
            if name in self.files:
                return command
        words = self.record.get("command") or []
        return str(words[1]) if len(words) > 1 else "results"

    @property
    def scores(self) -> str | None:
        """Name of the table that `vlscore evaluate` writes."""
        return next((name for name in self.files if name.startswith("scores.")), None)

    @cached_property
    def content(self) -> Mapping[str, Any]:
        """Content of the json file of the results, or of run.json."""
        names = [name for name in self.files if name.endswith(".json")]
        first = next((n for n in names if n in _WRITTEN_BY), None) or next(
            (n for n in names if n not in ("card.json", "composite.json", "vocabulary.json")), None
        )
        found: Mapping[str, Any] = self.json(first) if first else self.record
        return found if isinstance(found, Mapping) else self.record

    def json(self, name: str) -> Any:
        """Return the content of a json file."""
        return json.loads((self.path / name).read_text(encoding="utf-8"))

    def columns(self, name: str, texts: Sequence[str] = ()) -> dict[str, list[Any]]:
        """Return the columns of a csv, jsonl or parquet file of the results.

        Args: texts: columns of a csv that are no numbers although they may look like some.
        """
        path = self.path / name
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            found: dict[str, list[Any]] = pq.read_table(path).to_pydict()
            return found
        if path.suffix == ".jsonl":
            rows = list(self.lines(name))
            names = list(dict.fromkeys(column for row in rows for column in row))
            return {column: [row.get(column) for row in rows] for column in names}
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.reader(stream)
            names = next(reader, [])
            cells = list(reader)
        columns = {n: [row[k] for row in cells if row] for k, n in enumerate(names)}
        return {n: _typed(values, n in texts) for n, values in columns.items()}

    def lines(self, name: str) -> Iterator[Mapping[str, Any]]:
        """Yield the records of a jsonl file."""
        with (self.path / name).open(encoding="utf-8") as stream:
            for line in stream:
                yield json.loads(line)

    @property
    def signatures(self) -> dict[str, str]:
        """Signature of each metric."""
        found = self.key.get("metrics") or self.content.get("signatures") or {}
        if isinstance(found, Mapping) and found:
            return {str(name): _written(value) for name, value in found.items()}
        single = self.key.get("signature") or self.record.get("signature")
        return {"": _written(single)} if single else {}

    def failures(self, particular: bool = True) -> list[tuple[int, str]]:
        """Return how many rows failed for each reason, the most frequent first.

        Args: particular: whether the first reason of its kind is written out; without, what
            reasons quote (paths, ids, numbers) is replaced by dots.
        """
        if FAILURES not in self.files:
            return []
        columns = self.columns(FAILURES, texts=("error", "reason", "id"))
        counts: Counter[str] = Counter()
        first: dict[str, str] = {}
        for reason in columns.get("reason", columns.get("error", [])):
            kind = _PARTICULAR.sub("…", reason or "")
            counts[kind] += 1
            first.setdefault(kind, reason or "")
        return [(n, first[k] if particular else k) for k, n in counts.most_common()]

    def text_policy(self) -> TextPolicy:
        """Return which section of the reports was scored."""
        for signature in self.signatures.values():
            if (section := Signature.parse(signature).get("txt")) is not None:
                return _policy(section)
        written = dict(_REPR.findall(str(self.key.get("text_policy"))))
        return TextPolicy(**written) if written else TextPolicy()

    def studies(
        self, needs: Sequence[str], table: Path | None = None, image_root: Path | None = None
    ) -> StudyTable:
        """Open the table of the run.

        Args:
            needs: "reference", "candidate", "image": what its rows must have.
            table: where it is now; default: where run.json says.
            image_root: folder that image paths start from; default: as in the run.

        Raises: InvalidTable where it is not there, or is another one.
        """
        root = image_root or self.key.get("image_root")
        columns = self.key.get("columns")
        return open_table(
            table or self.record.get("table") or self.record.get("studies"),
            self.key.get("table_sha256") or self.key.get("studies_sha256"),
            columns if isinstance(columns, Mapping) else {},
            needs,
            root,
        )


def open_table(
    path: str | Path | None,
    sha256: str | None,
    columns: Mapping[str, Any],
    needs: Sequence[str],
    image_root: str | Path | None = None,
) -> StudyTable:
    """Open a table whose content has this digest; the arguments are entries of run.json.

    Raises: InvalidTable where the file is absent, or its content is another one.
    """
    if path is None:
        raise InvalidTable("run.json does not name a table of reports")
    if not Path(path).is_file():
        raise InvalidTable(f"the table {path} does not exist")
    if sha256 is not None and file_digest(Path(path)) != sha256:
        raise InvalidTable(f"the table {path} is not the one that the run read")
    root = image_root if image_root and Path(image_root).is_dir() else None
    wants = {"image", "reference", "candidate"} - set(needs)
    names = ColumnNames(**columns)
    return open_studies(path, needs=needs, wants=wants, columns=names, image_root=root)


def studies_by_row(table: StudyTable, policy: TextPolicy) -> dict[int, Study]:
    """Return the studies of a table by row number, with the sections that the policy scores.

    A row that cannot be read is absent; one that lacks the section has its whole text.
    """
    found = {}
    for row in table:
        if isinstance(row, BadRow):
            continue
        try:
            found[row.row] = row.selected(policy)
        except VLScoreError:
            found[row.row] = row
    return found


def _typed(values: list[str], is_text: bool) -> list[Any]:
    if not is_text:
        try:
            return [float(value) if value else None for value in values]
        except ValueError:
            if set(values) <= {"true", "false", "True", "False", ""}:
                return [value.lower() == "true" if value else None for value in values]
    return [from_cell(value) for value in values]


def _written(signature: Any) -> str:
    if isinstance(signature, Mapping):
        return str(signature.get("signature", ""))
    return str(signature)


def _policy(section: str) -> TextPolicy:
    """Return the policy of a signature's text, such as "findings" or "ref=findings,cand=all"."""
    parts = dict(part.split("=", 1) for part in section.split(",") if "=" in part)
    if not parts:
        return TextPolicy(section)
    return TextPolicy(reference_section=parts.get("ref"), candidate_section=parts.get("cand"))
