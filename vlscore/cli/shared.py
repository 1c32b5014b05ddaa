"""Settings that several commands share, and how parameters become options.

A keyword parameter of a command is an option: `text_only` is `--text-only`. A parameter of a type
with `options(...)`, a dataclass, has one option for each attribute. The help of an option is what
the docstring says of the parameter or attribute, or `help` of its type. A tuple of texts takes
names with commas between them, and may be repeated.
"""

import contextlib
import dataclasses
import os
import re
import typing
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

import cyclopts
from cyclopts import Group, Parameter
from cyclopts.types import NonNegativeInt, PositiveInt
from cyclopts.validators import Number

from vlscore.cli.output import RESULTS, print_left_out, print_precision_note
from vlscore.core import split_names, usable_cores
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.data import ReportTable, StudyTable, TextPolicy
    from vlscore.embedding import StudyEmbedder
    from vlscore.metrics import Scorer

# Roles of columns of a table of studies.
STUDY = ("id", "image", "reference", "candidate", "view")
TABLE = Group("Table", sort_key=2)
ENCODER = Group("Encoder", sort_key=3)
READING = Group("Images and reports", sort_key=4)


def options(group: Group | None = None, *, without: Collection[str] = ()) -> Parameter:
    """Return the annotation of a dataclass whose attributes are options.

    Args:
        group: heading in the help; default: that of the command's own options.
        without: attributes that are no options; they have their defaults.
    """
    chosen: dict[str, Any] = {} if group is None else {"group": group}
    if without:
        chosen["parse"] = re.compile(f"^(?!({'|'.join(without)})$)")
    return Parameter(name="*", **chosen)


def parameter_value(kind: Any, tokens: Sequence[Any]) -> Any:
    """Return the value of a parameter: names with commas as a tuple, else as cyclopts reads it."""
    kinds = [kind, *typing.get_args(kind)]
    if tuple[str, ...] in kinds:
        names = (name for token in tokens for name in split_names(token.value))
        return tuple(dict.fromkeys(names))
    return cyclopts.convert(kind, tokens)


_Value = TypeVar("_Value")
# Of a parameter *names: at least one.
Several = Annotated[_Value, Parameter(required=True)]
Table = Annotated[Path, Parameter(help="Table: .jsonl, .json, .csv, .tsv or .parquet.")]
Names = tuple[str, ...]
# A text of this form is taken for the path of a file, also of one that is absent.
_IS_FILE = re.compile(r"\S+\.(txt|tok|md|csv|tsv|jsonl?|parquet|xlsx?|gz|dcm|png|jpe?g)", re.I)


def _check_figure(kind: Any, format: str | None) -> None:
    """Refuse figures that cannot be drawn, before anything is computed."""
    from vlscore.stats import check_drawable

    if format is not None:
        check_drawable(format)


def _refuse_path(kind: Any, text: str | None) -> None:
    """Raise InvalidSetting for the path of a file in place of a report."""
    path = (text or "").strip().removeprefix("@")
    with contextlib.suppress(OSError, ValueError):
        if _IS_FILE.fullmatch(path) or (os.path.exists(path) and any(map(str.isalnum, path))):
            raise InvalidSetting(
                f"{path} is a path; write the text of the report, or "
                '"$(cat FILE)" for the text of a file. `vlscore evaluate` scores tables; `vlscore '
                "pair` joins a file of references and a file of candidates to a table"
            )


# A report may begin with a hyphen.
Text = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_refuse_path)]
ImageRoot = Annotated[
    Path | None,
    Parameter(
        help="Folder from which image paths of every table start. Default: the table's own folder.",
        group=TABLE,
    ),
]
Rename = Annotated[
    Names,
    Parameter(help="Columns with other names, as in id=study_id,reference=gt.", group=TABLE),
]
Limit = Annotated[
    PositiveInt | None,
    Parameter(help="Read only the first N rows.", group=TABLE),
]
Ratings = Annotated[
    Path,
    Parameter(
        help="Table of ratings; or folder of a published set (ReXVal, RadEvalX, RadPref), or of "
        "filled-in sheets of `vlscore ratings make`."
    ),
]
_SECTIONS = (
    "Section of a report: all, findings, impression, findings+impression, auto; or "
    "reference=findings,candidate=all."
)
Section = Annotated[str, Parameter(help=_SECTIONS, group=READING)]
Out = Annotated[Path, Parameter(help="Folder for the results.", group=RESULTS)]
OptionalOut = Annotated[
    Path | None,
    Parameter(help="Folder for the results. Default: results are only printed.", group=RESULTS),
]
Figure = Annotated[
    str | None,
    Parameter(
        help="Also draw figures: png, svg or pdf. Needs 'vlscore[plots]'.",
        group=RESULTS,
        validator=_check_figure,
    ),
]
Format = Annotated[str, Parameter(help="Format of tables: parquet or csv.", group=RESULTS)]
Metrics = Annotated[
    Names | None,
    Parameter(
        help="Metrics with commas between them, as in bleu-4,rouge-l; `vlscore metrics` lists all "
        "metrics, groups and presets (rexrank, r2gen). Default: vlscore."
    ),
]
Seed = Annotated[int, Parameter(help="Seed of the bootstrap.")]
Resamples = Annotated[int, Parameter(help="Resamples of the bootstrap.", validator=Number(gte=10))]
Device = Annotated[
    str | None, Parameter(help="cpu, cuda, cuda:1. Default: a GPU if there is one.", group=ENCODER)
]
Workers = Annotated[
    NonNegativeInt | None,
    Parameter(
        help="Processes that decode images. Default: one per core, at most 16.", group=ENCODER
    ),
]
GreyLevels = Annotated[
    str,
    Parameter(
        help="Grey levels: auto, header, minmax, percentile, full, or authors (as the code of the "
        "encoder's authors reads files); further settings after commas.",
        group=READING,
    ),
]
Comparisons = Annotated[Literal["ignored"] | None, Parameter(group=READING)]
Views = Annotated[
    str,
    Parameter(
        help="Images of one study: first-frontal, mean, frontal+lateral, first-frontal+prior.",
        group=READING,
    ),
]


@options(TABLE)
@dataclasses.dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Where the images of a table lie, and which columns it has."""

    image_root: ImageRoot = None
    rename: Rename = ()
    limit: Limit = None

    def columns(self, *roles: str) -> dict[str, str]:
        """Return the columns of these roles, such as "image"; of all five without roles."""
        return renamed(self.rename, *(roles or STUDY))

    def opened(
        self, path: Path, *roles: str, needs: Collection[str] = (), limited: bool = True
    ) -> "StudyTable":
        """Return the table at `path`; the function that reads it asks for the roles it needs.

        Args:
            roles: as of `columns`.
            needs: roles that each row must have, such as "image".
            limited: whether --limit applies to this table.
        """
        from vlscore.data import open_studies

        columns, limit = self.columns(*roles), self.limit if limited else None
        # Another column than a study's own, which the command reads apart.
        columns.pop("patient", None)
        return open_studies(
            path, needs=needs, image_root=self.image_root, columns=columns, limit=limit
        )

    def reports(self, path: Path) -> "ReportTable":
        """Return the table of reports at `path`."""
        from vlscore.data import open_reports

        names = self.columns("id", "report")
        return open_reports(
            path,
            id_column=names.get("id", "id"),
            text_column=names.get("report"),
            limit=self.limit,
        )


def rows_of(*tables: "StudyTable | None") -> int | None:
    """Return the number of rows of all these tables; None where one is expensive to count."""
    counts = [each.count() for each in tables if each is not None]
    return None if None in counts else sum(filter(None, counts))


@options(ENCODER)
@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """An encoder, how much of the machine it uses, and how it reads images and reports.

    Attributes:
        encoder: Encoder (`vlscore encoders` lists all), or package.module:Class. Default:
            VLSCORE_ENCODER, else the demonstration encoder.
        weights: Checkpoint file or folder of the encoder.
        tokenizer: Folder or vocabulary file of its tokenizer.
        C: Area that scores 0 under vlscore. Default: the encoder's.
        precision: fp32; bf16, if the hardware supports it; fp16, on GPUs.
        batch_size: Images in one forward pass. Default: 16 on a CPU, by its memory on a GPU.
        comparisons: ignored: leave comparisons with earlier examinations out of both reports.
        no_cache: Neither read nor write the cache; `vlscore cache info` shows it.
    """

    encoder: Annotated[str | None, Parameter(env_var="VLSCORE_ENCODER", show_env_var=False)] = None
    weights: Path | None = None
    tokenizer: Path | None = None
    C: float | None = None
    device: Device = None
    precision: str = "fp32"
    batch_size: PositiveInt | None = None
    comparisons: Comparisons = None
    no_cache: bool = False
    workers: Workers = None
    image_policy: GreyLevels = "auto"
    views: Views = "first-frontal"
    section: Annotated[
        str | None,
        Parameter(help=f"{_SECTIONS} Default: all, or that of a preset.", group=READING),
    ] = None

    def embedder(self) -> "StudyEmbedder":
        """Return the embedder of these options; see `print_encoder_warning` for its warning."""
        from vlscore.embedding import StudyEmbedder

        with without_warnings():
            embedder = StudyEmbedder(self.encoder, **self._settings())
        print_precision_note(embedder)
        return embedder

    def scorer(
        self,
        metrics: Any,
        *,
        quiet: bool = False,
        vectors: Path | None = None,
        of_sentences: bool = False,
    ) -> "Scorer":
        """Return the scorer of these options.

        Args:
            metrics: names of metrics, as `Scorer` takes them.
            quiet: print no note on a precision that is no gain.
            vectors: folder with vectors that were computed elsewhere, instead of an encoder.
            of_sentences: sentences are scored, which have no sections and no images.
        """
        from vlscore.metrics import Scorer, open_embeddings

        source: Any = self.encoder
        settings = self._settings(images=vectors is None and not of_sentences)
        if vectors is not None:
            source, settings["cache"] = open_embeddings(vectors, encoder=self.encoder), True
        if not of_sentences:
            settings["text_policy"] = self.section
        with without_warnings():
            scorer = Scorer(
                source, metrics=metrics, C=self.C, comparisons=self.comparisons, **settings
            )
        if scorer.embedder is not None and not quiet:
            print_precision_note(scorer.embedder)
        return scorer

    def every_metric(
        self, embedder: "StudyEmbedder | None", *, images: bool = True, quiet: bool = False
    ) -> "Scorer":
        """Return the scorer of every free metric that can run here; print which are left out.

        Args: embedder: None for metrics of texts alone. images: whether there are images.
        Raises: InvalidSetting where no metric can run.
        """
        from vlscore.metrics import Scorer, usable_metrics

        found, left_out = usable_metrics(embedder, self.comparisons, images=images, C=self.C)
        if not found:
            raise InvalidSetting("no metric can be computed here: name an encoder or the studies")
        if left_out and not quiet:
            print_left_out(left_out)
        C_used = None if embedder is None else self.C
        return Scorer(embedder, metrics=found, text_policy=self.policy(), C=C_used)

    def policy(self) -> "TextPolicy":
        """Return the policy that selects the section."""
        from vlscore.data import TextPolicy

        return TextPolicy.named(self.section)

    def absolute(self) -> Self:
        """Return the same options with absolute paths, for processes in another folder."""
        return dataclasses.replace(
            self,
            weights=None if self.weights is None else self.weights.absolute(),
            tokenizer=None if self.tokenizer is None else self.tokenizer.absolute(),
        )

    def _settings(self, *, images: bool = True) -> dict[str, Any]:
        """Return the options of a `StudyEmbedder`, with or without how it reads images."""
        reading = {"image_policy": self.image_policy, "views": self.views} if images else {}
        return {
            "weights": None if self.weights is None else str(self.weights),
            "tokenizer": None if self.tokenizer is None else str(self.tokenizer),
            "device": self.device,
            "precision": self.precision,
            "batch_size": self.batch_size,
            "cache": not self.no_cache,
            **reading,
        }


def named_values(texts: Iterable[str], example: str) -> list[tuple[str, str]]:
    """Return (name, value) of each text such as "ours=reports.jsonl".

    Args: example: a text as it should be, for the error.
    Raises: InvalidSetting for a text without name or value.
    """
    pairs = [(text, *text.partition("=")) for text in texts]
    for text, name, equals, value in pairs:
        if not (equals and name.strip() and value.strip()):
            raise InvalidSetting(f"write {example}, not {text!r}")
    return [(name.strip(), value.strip()) for _, name, _, value in pairs]


def renamed(rename: Sequence[str], *roles: str) -> dict[str, str]:
    """Return role -> column of --rename; raise InvalidSetting for a role that is not read."""
    found = dict(named_values(rename, "--rename id=study_id"))
    for role, column in found.items():
        if role not in roles:
            hint = f". Write it the other way round: {column}={role}" if column in roles else ""
            raise InvalidSetting(
                f"--rename: this command reads no column {role!r}; it reads {', '.join(roles)}"
                + hint
            )
    return found


def worker_count(workers: int | None) -> int:
    """Return the processes that decode: `workers`, else one for each usable core, at most 16."""
    return min(usable_cores(), 16) if workers is None else workers


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Ignore warnings that the command prints in its own words, once."""
    import warnings

    from vlscore.errors import DemonstrationEncoderWarning, SlowPrecisionWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonstrationEncoderWarning)
        warnings.simplefilter("ignore", SlowPrecisionWarning)
        yield
