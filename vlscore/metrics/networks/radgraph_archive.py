"""Reader of a published RadGraph model: config.json, weights.th and vocabulary/*_labels.txt.

It reads a folder, or the .tar.gz of AllenNLP, of which it unpacks only those files.
Everything in it is data: no code is run, and nothing that the configuration names is fetched.
"""

import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from torch import Tensor

from vlscore.encoders import load_checkpoint, read_json, refuse_code
from vlscore.errors import IncompatibleCheckpoint, UnsafeCheckpoint, WeightsNotFound
from vlscore.metrics.networks.model_files import CONFIG, WEIGHTS, check_place

_ENTITIES, _RELATIONS = "__ner_labels.txt", "__relation_labels.txt"
# Larger than any file of a RadGraph archive; the limit is needed because a small archive may unpack
# to any size.
_LARGEST_WEIGHTS = 8 << 30
_LARGEST_TEXT = 1 << 20


@dataclass(frozen=True, eq=False)
class RadGraphFiles:
    """Content of an archive.

    Attributes:
        source: the archive or folder, for messages.
        dataset: the name before "__ner_labels" in the vocabulary.
        tensors: by name, as DyGIE names them.
        entity_labels: in the order of the scores; the first is "", no entity.
        relation_labels: in the order of the scores, without "no relation".
        max_span_width: words of the longest span that is looked at.
        max_pieces: word pieces that are read at a time, [CLS] and [SEP] included; None for as many
            as the model has positions.
        spans_per_word: how many spans per word can be partners of relations.
    """

    source: Path
    dataset: str
    tensors: Mapping[str, Tensor]
    entity_labels: tuple[str, ...]
    relation_labels: tuple[str, ...]
    max_span_width: int
    max_pieces: int | None
    spans_per_word: float


def read_radgraph(path: Path, dataset: str | None = None) -> RadGraphFiles:
    """Read a model's files.

    Args:
        dataset: which labels to use, if the vocabulary holds those of several data sets.

    Raises: WeightsNotFound, UnsafeCheckpoint, IncompatibleCheckpoint.
    """
    check_place(path)
    if path.is_dir():
        return _read_folder(path, path, dataset)
    with tempfile.TemporaryDirectory(prefix="vlscore-radgraph-") as folder:
        _unpack(path, Path(folder))
        check_place_of_archive(Path(folder), path)
        found = _read_folder(Path(folder), path, dataset)
        # The tensors are copied, because their temporary file is about to be deleted.
        copies = {key: tensor.clone() for key, tensor in found.tensors.items()}
        return RadGraphFiles(**{**vars(found), "tensors": copies})


def check_place_of_archive(folder: Path, archive: Path) -> None:
    """Check an unpacked folder as `check_place` does, with the archive's name in the message."""
    try:
        check_place(folder)
    except WeightsNotFound as error:
        missing = str(error).rsplit("no ", 1)[-1]
        raise IncompatibleCheckpoint(
            f"{archive} has no RadGraph model: it lacks {missing}"
        ) from None


def _unpack(archive: Path, folder: Path) -> None:
    """Copy the wanted files, and only regular ones of a sane size, out of an archive."""
    (folder / "vocabulary").mkdir()
    try:
        with tarfile.open(archive, "r|gz") as tar:
            for member in tar:
                name = _wanted(member.name)
                if name is None:
                    continue
                limit = _LARGEST_WEIGHTS if name == WEIGHTS else _LARGEST_TEXT
                content = tar.extractfile(member) if member.isreg() else None
                if content is None or member.size > limit or (folder / name).exists():
                    raise UnsafeCheckpoint(
                        f"{archive} was not loaded: its {name} is not an ordinary file, is too "
                        "large, or is contained twice"
                    )
                with (folder / name).open("wb") as target:
                    while block := content.read(1 << 24):
                        target.write(block)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise UnsafeCheckpoint(f"{archive} is damaged: {error}; download it again") from None


def _wanted(name: str) -> str | None:
    """Return the name for the unpacked copy of an archive's file; None if it is not needed."""
    path = PurePosixPath(name)
    if ".." in path.parts:
        return None
    if path.name in (CONFIG, WEIGHTS):
        return path.name if len(path.parts) <= 2 else None
    is_label_file = path.name.endswith((_ENTITIES, _RELATIONS)) and path.parent.name == "vocabulary"
    return f"vocabulary/{path.name}" if is_label_file else None


def _read_folder(folder: Path, source: Path, dataset: str | None) -> RadGraphFiles:
    config = read_json(folder / CONFIG, "configuration of a RadGraph model")
    refuse_code(config, f"the {CONFIG} of {source}")
    name = _dataset_in(folder / "vocabulary", source, dataset)
    entities = _labels(folder / "vocabulary" / f"{name}{_ENTITIES}", source)
    relations = _labels(folder / "vocabulary" / f"{name}{_RELATIONS}", source)
    if not entities or entities[0] != "":
        raise IncompatibleCheckpoint(
            f"{source}: the first entity label must be empty; it means that words are no entity"
        )
    try:
        reader, model = config["dataset_reader"], config["model"]
        indexer = reader["token_indexers"]["bert"]
        max_pieces = indexer.get("max_length")
        _refuse_what_is_not_read(model, str(indexer["model_name"]), source)
        return RadGraphFiles(
            source=source,
            dataset=name,
            tensors=load_checkpoint(folder / WEIGHTS),
            entity_labels=entities,
            relation_labels=relations,
            max_span_width=_positive(int(reader["max_span_width"])),
            max_pieces=None if max_pieces is None else _positive(int(max_pieces) - 2) + 2,
            spans_per_word=_positive(float(model["modules"]["relation"]["spans_per_word"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IncompatibleCheckpoint(
            f"the {CONFIG} of {source} does not describe a RadGraph model: {error!r}"
        ) from None


def _refuse_what_is_not_read(model: Mapping[str, Any], name: str, source: Path) -> None:
    """Raise IncompatibleCheckpoint for an option that changes numbers and is not supported."""
    if float(model["modules"].get("coref", {}).get("coref_prop", 0)) > 0:
        raise IncompatibleCheckpoint(f"{source} propagates coreference, which is not supported")
    weights = model["loss_weights"]
    if not (float(weights["ner"]) > 0 and float(weights["relation"]) > 0):
        raise IncompatibleCheckpoint(f"{source} was not trained for entities and relations")
    plain = name.lower()
    if "modernbert" in plain or ("cased" in plain and "uncased" not in plain):
        raise IncompatibleCheckpoint(
            f"{source} uses the BERT {name}; only BERTs that read lower-case text are supported"
        )


def _dataset_in(folder: Path, source: Path, dataset: str | None) -> str:
    known = {path.name.removesuffix(_ENTITIES) for path in folder.glob(f"*{_ENTITIES}")}
    known &= {path.name.removesuffix(_RELATIONS) for path in folder.glob(f"*{_RELATIONS}")}
    if dataset is None and len(known) == 1:
        return known.pop()
    if dataset in known:
        return str(dataset)
    listed = ", ".join(sorted(known)) or "none"
    raise IncompatibleCheckpoint(
        f"{source} has labels of these data sets: {listed}; name one as dataset="
    )


def _labels(path: Path, source: Path) -> tuple[str, ...]:
    try:
        lines = path.read_bytes()[:_LARGEST_TEXT].decode("utf-8").replace("\r\n", "\n").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise IncompatibleCheckpoint(
            f"{source}: {path.name} is not a list of labels: {error}"
        ) from None
    return tuple(lines[:-1] if lines[-1] == "" else lines)


def _positive(value: Any) -> Any:
    if not value > 0:
        raise ValueError(f"{value} must be positive")
    return value
