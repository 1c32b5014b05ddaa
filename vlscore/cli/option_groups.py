"""Groups of options: a dataclass whose fields are the options of a command.

A command names a group once, and `grouped` shows each field of it as an option of its own.
"""

import dataclasses
import functools
import inspect
import typing
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from vlscore.cli import options as opt
from vlscore.cli.output import print_precision_note
from vlscore.core import setting_of, split_names

if TYPE_CHECKING:
    from vlscore.data import ColumnNames, StudyTable, TextPolicy
    from vlscore.embedding import StudyEmbedder
    from vlscore.metrics import Scorer
    from vlscore.retrieval import Index

_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def grouped(
    *left_out: str, after: Mapping[str, str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that shows the fields of a command's groups as options.

    A group is a parameter whose type is a dataclass. The command receives the dataclass; typer
    sees one parameter for each field, in the order of the parameters and of the fields. Of a
    dataclass of settings, these are the fields that `setting` made. Names of a field that takes
    several are written with commas between them.

    Args:
        left_out: fields that this command does not offer. They have their defaults.
        after: option -> option that it follows in the help, where the order is to be another.

    Raises:
        TypeError: a name in `left_out` is no field, or two parameters have the same name.
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        groups: dict[str, tuple[type[Any], list[str]]] = {}
        flat: list[inspect.Parameter] = []
        unknown = set(left_out)
        hints = typing.get_type_hints(function, include_extras=True)
        for parameter in inspect.signature(function).parameters.values():
            kind = hints[parameter.name]
            if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
                flat.append(parameter.replace(annotation=kind, kind=_KEYWORD))
                continue
            every = _fields(kind)
            shown = [each for each in every if each.name not in left_out]
            unknown -= {each.name for each in every}
            flat += shown
            groups[parameter.name] = kind, [each.name for each in shown]
        if unknown:
            raise TypeError(f"{function.__name__}: no group has {', '.join(sorted(unknown))}")
        names = [parameter.name for parameter in flat]
        if twice := {name for name in names if names.count(name) > 1}:
            raise TypeError(f"{function.__name__}: {', '.join(sorted(twice))} is there twice")
        for name, before in (after or {}).items():
            moved = flat.pop([each.name for each in flat].index(name))
            flat.insert([each.name for each in flat].index(before) + 1, moved)

        @functools.wraps(function)
        def command(**values: Any) -> None:
            made = {
                name: kind(**{field: _value(kind, field, values.pop(field)) for field in fields})
                for name, (kind, fields) in groups.items()
            }
            function(**values, **made)

        # What typer reads: `inspect.signature` and the annotations.
        command.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in flat}
        return command

    return decorate


def _fields(kind: type[Any]) -> list[inspect.Parameter]:
    """Return a parameter for each field of a dataclass; a `setting` becomes its option."""
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = dataclasses.fields(kind)
    described = [field for field in fields if setting_of(field) is not None]
    return [_parameter(field, hints[field.name]) for field in described or fields]


def _parameter(field: "dataclasses.Field[Any]", hint: Any) -> inspect.Parameter:
    default: Any = field.default
    if default is dataclasses.MISSING:
        default = inspect.Parameter.empty
    if (described := setting_of(field)) is not None:
        hint = described.typed or hint
        if _takes_names(hint):
            hint = str | None if default is None else str
            default = None if default is None else ",".join(default)
        names = described.option or f"--{field.name.replace('_', '-')}"
        bounds = {"min": described.least} if hint in (int, int | None) else {}
        shown = opt.option(names, described.help, described.metavar, described.panel, **bounds)
        hint = typing.Annotated[hint, shown]
    return inspect.Parameter(field.name, _KEYWORD, annotation=hint, default=default)


def _value(kind: type[Any], name: str, value: Any) -> Any:
    """Return the value of a field from that of its option."""
    field = next(each for each in dataclasses.fields(kind) if each.name == name)
    described = setting_of(field)
    if described is None or not _takes_names(described.typed or field.type):
        return value
    return None if value is None else tuple(split_names(value))


def _takes_names(hint: Any) -> bool:
    return hint in (tuple[str, ...], tuple[str, ...] | None)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Where the images of a table lie, and which columns it has."""

    image_root: opt.ImageRootOption = None
    id_column: opt.IdColumnOption = "id"
    image_column: opt.ImageColumnOption = "image"
    reference_column: opt.ReferenceColumnOption = "reference"
    candidate_column: opt.CandidateColumnOption = "candidate"
    view_column: opt.ViewColumnOption = "view"

    def columns(self, *roles: str) -> "ColumnNames":
        """Return the columns of these roles, such as "image"; of all five without roles."""
        wanted = roles or ("id", "image", "reference", "candidate", "view")
        return opt.column_names(**{role: getattr(self, f"{role}_column") for role in wanted})

    def studies(self, path: Path, needs: Collection[str], *roles: str) -> "StudyTable":
        """Return the table at `path`.

        Args:
            needs: roles that each row must have, such as "image".
            roles: as of `columns`.
        """
        from vlscore.data import open_studies

        return open_studies(
            path, needs=needs, image_root=self.image_root, columns=self.columns(*roles)
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class SectionOptions:
    """Which section of a report counts."""

    section: opt.SectionOption = "all"
    reference_section: opt.ReferenceSectionOption = None
    candidate_section: opt.CandidateSectionOption = None

    def policy(self) -> "TextPolicy":
        """Return the policy that selects these sections."""
        from vlscore.data import TextPolicy

        return TextPolicy(
            self.section,
            candidate_section=self.candidate_section,
            reference_section=self.reference_section,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """An encoder, how much of the machine it uses, and how it reads images."""

    encoder: opt.EncoderOption = None
    weights: opt.WeightsOption = None
    tokenizer: opt.TokenizerOption = None
    C: opt.ConstantOption = None
    device: opt.DeviceOption = None
    precision: opt.PrecisionOption = "fp32"
    batch_size: opt.BatchSizeOption = None
    no_cache: opt.NoCacheOption = False
    workers: opt.WorkersOption = None
    image_policy: opt.ImagePolicyOption = "auto"
    views: opt.ViewsOption = "first-frontal"

    def embedder(self) -> "StudyEmbedder":
        """Return the embedder of these options; see `print_encoder_warning` for its warning."""
        from vlscore.embedding import StudyEmbedder

        with opt.without_warnings():
            embedder = StudyEmbedder(self.encoder, **self._settings(), **self._reading())
        print_precision_note(embedder)
        return embedder

    def decoders(self, sharing: int = 1) -> int:
        """Return the number of processes that decode images; see `worker_count`."""
        return opt.worker_count(self.workers, sharing)

    def absolute(self) -> Self:
        """Return the same options with absolute paths, for processes in another folder."""
        return dataclasses.replace(
            self,
            weights=None if self.weights is None else self.weights.absolute(),
            tokenizer=None if self.tokenizer is None else self.tokenizer.absolute(),
        )

    def _settings(self) -> dict[str, Any]:
        return {
            "weights": None if self.weights is None else str(self.weights),
            "tokenizer": None if self.tokenizer is None else str(self.tokenizer),
            "device": self.device,
            "precision": self.precision,
            "batch_size": self.batch_size,
            "cache": not self.no_cache,
        }

    def _reading(self) -> dict[str, Any]:
        return {"image_policy": self.image_policy, "views": self.views}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ScorerOptions(SectionOptions, EncoderOptions):
    """What a scorer needs besides its metrics: an encoder, and which section of reports counts."""

    def scorer(self, metrics: Any, *, quiet: bool = False) -> "Scorer":
        """Return the scorer of these options.

        Args:
            metrics: names of metrics, as `Scorer` takes them.
            quiet: print no note on a precision that is no gain.
        """
        return self._scorer(metrics, quiet, **self._reading(), text_policy=self.policy())

    def scorer_of_sentences(self, metrics: Any) -> "Scorer":
        """Return the scorer of sentences, which have no sections and no images."""
        return self._scorer(metrics, False)

    def _scorer(self, metrics: Any, quiet: bool, **read: Any) -> "Scorer":
        from vlscore.metrics import Scorer

        settings = {"metrics": metrics, "C": self.C, **self._settings(), **read}
        with opt.without_warnings():
            scorer = Scorer(self.encoder, **settings)
        if not quiet:
            print_precision_note(scorer.embedder)
        return scorer


@dataclasses.dataclass(frozen=True, kw_only=True)
class IndexEncoderOptions(ScorerOptions):
    """The encoder of an index, and which section of reports counts."""

    encoder: opt.IndexEncoderOption = None

    def of_index(self, index: "Index") -> Self:
        """Return the same options with the encoder that the index names, unless one was chosen."""
        return dataclasses.replace(self, encoder=self.encoder or index.encoder_name())


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run treats earlier results and failed rows, and whether it ends with a page.

    `GroupedCommand` writes the page.
    """

    overwrite: opt.OverwriteOption = False
    keep_going: opt.KeepGoingOption = False
    report: opt.ReportOption = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrintOptions:
    """What a command prints."""

    quiet: opt.QuietOption = False
    as_json: opt.JsonOption = False

    @property
    def is_silent(self) -> bool:
        """Whether neither progress nor tables are printed."""
        return self.quiet or self.as_json


@dataclasses.dataclass(frozen=True, kw_only=True)
class BootstrapOptions:
    """Resamples of the bootstrap, and their seed."""

    resamples: opt.ResamplesOption = 1000
    seed: opt.SeedOption = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class RatingOptions:
    """Columns of a table of ratings."""

    rating_columns: opt.RatingColumnsOption = "rating"
    rater_columns: opt.RaterColumnsOption = ""
    rename: opt.RenameRatingsOption = ""

    def named(self) -> dict[str, Any]:
        """Return the columns as `read_ratings` takes them."""
        pairs = [each.partition("=") for each in opt.names_of(self.rename)]
        return {
            "ratings": opt.names_of(self.rating_columns),
            "by_rater": opt.names_of(self.rater_columns),
            "rename": {name.strip(): column.strip() for name, _, column in pairs},
        }
