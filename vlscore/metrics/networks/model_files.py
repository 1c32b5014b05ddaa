"""Files of networks that read reports: weights, vocabularies, GREEN's question.

They are found on this machine, and transformers models are loaded from their folders. Nothing is
downloaded, no code of a model is run, and torch is not imported, so that a list of metrics can say
what is missing.
"""

import hashlib
import re
from pathlib import Path
from typing import Any

from vlscore.encoders import VOCABULARY_FILES, checkpoint_in, network_cards, vocabulary_file
from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound
from vlscore.metrics.memo import content_digest

CONFIG, WEIGHTS = "config.json", "weights.th"


def chexbert_files(weights: str | Path, vocabulary: str | Path | None) -> tuple[Path, Path]:
    """Return checkpoint and vocabulary; load and download nothing. Raises WeightsNotFound."""
    path = checkpoint_in(Path(weights).expanduser(), ("chexbert.pth",))
    advice = (
        f"no vocab.txt is next to {path}: `vlscore weights fetch chexbert` downloads that of "
        "bert-base-uncased; or write its path as vocabulary=PATH"
    )
    return path, _vocabulary(vocabulary, path, "bert-base-uncased", advice)


def radgraph_files(weights: str | Path, vocabulary: str | Path | None) -> tuple[Path, Path]:
    """Return archive and vocabulary; load and download nothing. Raises WeightsNotFound."""
    path = Path(weights).expanduser()
    check_place(path)
    # What `vlscore weights fetch` downloads with an archive lies elsewhere in the hub's cache.
    known = [card.weights for card in network_cards().values()]
    hubs = [each.vocabulary for each in known if path.name in {file.name for file in each.files}]
    folder = vocabulary or (path if path.is_dir() else path.parent)
    advice = (
        f"{folder} has no {' or '.join(VOCABULARY_FILES)}, because the archive "
        "does not contain it: its config.json names a BERT; write the path of that BERT's "
        "vocabulary as vocabulary=PATH, or fetch archive and vocabulary with `vlscore weights "
        "fetch radgraph`"
    )
    return path, _vocabulary(vocabulary, path, next(filter(None, hubs), ""), advice)


def _vocabulary(given: str | Path | None, next_to: Path, hub_id: str, advice: str) -> Path:
    """Return a vocabulary: as given, else next to the weights, else in the hub's cache."""
    place = None if given is None else Path(given).expanduser()
    if place is not None and not place.exists():
        # Any other text would be taken for the name of a repository to download.
        raise WeightsNotFound(f"{place}: there is no such vocabulary file or folder")
    try:
        return vocabulary_file(place, next_to=next_to, hub_id=hub_id)
    except WeightsNotFound:
        raise WeightsNotFound(advice) from None


# New names of repositories on the hub -> names that archives of the time before contain.
_RENAMED = {
    "microsoft/BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext": (
        "microsoft/BiomedNLP-PubMedBERT-base-uncased-abstract-fulltext"
    )
}


def check_vocabulary_of(bert: str, vocabulary: Path, source: Path) -> None:
    """Compare the BERT that a model names with the repository of its vocabulary.

    Only a vocabulary in the hub's cache tells its repository. Vocabularies of different BERTs may
    have the same number of pieces, and then nothing else would tell that they were confused.

    Raises: IncompatibleCheckpoint.
    """
    folder = next((part for part in vocabulary.parts if part.startswith("models--")), None)
    if folder is None:
        return
    repository = folder.removeprefix("models--").replace("--", "/")
    if bert not in (repository, _RENAMED.get(repository)):
        raise IncompatibleCheckpoint(
            f"{source} uses the BERT {bert}, but {vocabulary} is the vocabulary of {repository}: "
            "write the path of the right one as vocabulary=PATH"
        )


def check_place(path: Path) -> None:
    """Raise WeightsNotFound if there is neither an archive nor its folder; read nothing."""
    if path.is_dir():
        absent = [name for name in (CONFIG, WEIGHTS, "vocabulary") if not (path / name).exists()]
        if absent:
            raise WeightsNotFound(f"{path} has no RadGraph model: it lacks {', '.join(absent)}")
    elif not path.is_file():
        raise WeightsNotFound(f"{path}: there is no such RadGraph archive or folder")
    elif not path.name.endswith((".tar.gz", ".tgz")):
        raise WeightsNotFound(
            f"{path} is not a RadGraph archive: name the .tar.gz as its authors publish it, or the "
            f"unpacked folder with {CONFIG}, {WEIGHTS} and vocabulary"
        )


_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spm.model", "vocab.txt", "vocab.json")
_PARTS = (CONFIG, *_WEIGHTS, *_TOKENIZERS, "*.json", "merges.txt")


def check_model_folder(place: str | Path) -> Path:
    """Return the folder if it has the files of a model and its tokenizer; load nothing.

    Raises: WeightsNotFound that names the missing file.
    """
    folder = Path(place).expanduser()
    if not folder.is_dir():
        raise WeightsNotFound(f"{folder}: there is no such folder of a transformers model")
    if not (folder / CONFIG).is_file():
        raise WeightsNotFound(f"{folder} has no {CONFIG}: name the folder of a model")
    for what, names in (("weights", _WEIGHTS), ("tokenizer", _TOKENIZERS)):
        if not any(next(folder.glob(name), None) for name in names):
            raise WeightsNotFound(f"{folder} has no {what}: it must contain {' or '.join(names)}")
    return folder


def files_of_model(folder: Path) -> list[Path]:
    """Return the files of a folder from which model and tokenizer are loaded, in order."""
    return sorted({path for name in _PARTS for path in folder.glob(name) if path.is_file()})


def device_of_annotators() -> str:
    """Return the device on which annotators run: a GPU if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def facts_of_network(name: str, weights: Path, vocabulary: Path) -> dict[str, str]:
    """Return what the annotation of a report by a network depends on, for the cache."""
    return {
        "holds": name,
        "weights": content_digest(weights, excluded=(vocabulary.name,)),
        "vocabulary": content_digest(vocabulary),
        "device": device_of_annotators(),
    }


def load_model(kind: str, folder: Path, **settings: Any) -> Any:
    """Load a model for inference.

    Args:
        kind: transformers' class of automatic models, such as "AutoModelForTokenClassification".
        settings: for its `from_pretrained`.

    Raises: IncompatibleCheckpoint if transformers cannot load it.
    """
    import transformers

    # Of pickled weights only tensors are read. A tensor that a checkpoint lacks would be random.
    model, report = _loaded(
        getattr(transformers, kind), folder, weights_only=True, output_loading_info=True, **settings
    )
    absent = sorted(str(key) for key in report["missing_keys"])
    unused = [key for key in absent if "pooler" not in key and "position_ids" not in key]
    if unused:
        raise IncompatibleCheckpoint(
            f"{folder} has no weights for {', '.join(unused[:3])}: it is not a checkpoint for "
            f"{kind.removeprefix('AutoModelFor') if 'For' in kind else 'this model'}"
        )
    return model.eval()


def load_tokenizer(folder: Path, **settings: Any) -> Any:
    """Load the tokenizer of a model; raise IncompatibleCheckpoint if transformers cannot."""
    import transformers

    return _loaded(transformers.AutoTokenizer, folder, **settings)


def _loaded(kind: Any, folder: Path, **settings: Any) -> Any:
    from transformers import utils

    logging: Any = utils.logging  # its functions are not annotated
    level, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        return kind.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, **settings
        )
    except Exception as error:  # transformers and the libraries below it raise errors of many kinds
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise IncompatibleCheckpoint(
            f"transformers cannot load {folder} as {kind.__name__}: {reason}"
        ) from error
    finally:
        logging.set_verbosity(level)
        if has_bars:
            logging.enable_progress_bar()


# The question that GREEN's model is asked: the user's own file in the model's folder.
QUESTION = "green_prompt.txt"
_RELEASED = "62ff3675597dd0994584f5b08cd33076bc5d74c72de27cf0124b0a9dac8aad0f"
# Number of words of each report that the released code reads.
_WORDS = 300


def green_question(template: str, candidate: str, reference: str) -> str:
    """Return the question about a pair, with the first words of each report, as released."""
    texts = {"{candidate}": candidate, "{reference}": reference}
    parts = re.split(r"(\{reference\}|\{candidate\})", template)
    return "".join(" ".join(texts[p].split()[:_WORDS]) if p in texts else p for p in parts)


def read_template(model: Path) -> tuple[str, str]:
    """Read the question from a model's folder; return it and its digest for signatures.

    Raises: WeightsNotFound; IncompatibleCheckpoint if it has no placeholder for a report.
    """
    path = model / QUESTION
    try:
        content = path.read_bytes()
    except OSError:
        raise WeightsNotFound(
            f"{model} has no {QUESTION}, the question that the model was trained on. Write it with "
            "a clone of github.com/Stanford-AIMI/GREEN: from green_score.utils import make_prompt; "
            f"open('{QUESTION}', 'w').write(make_prompt('{{reference}}', '{{candidate}}'))"
        ) from None
    template = content.decode("utf-8", "replace")
    if re.findall(r"\{reference\}|\{candidate\}", template) != ["{reference}", "{candidate}"]:
        raise IncompatibleCheckpoint(
            f"{path} must contain {{reference}} once, and after it {{candidate}} once"
        )
    digest = hashlib.sha256(content).hexdigest()
    return template, "green@d72c195" if digest == _RELEASED else digest[:12]
