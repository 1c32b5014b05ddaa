"""Folders of transformers models on this machine. Nothing is fetched, and no code is run."""

from pathlib import Path
from typing import Any

from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound

_CONFIG = "config.json"
_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "spm.model", "vocab.txt", "vocab.json")
_PARTS = (_CONFIG, *_WEIGHTS, *_TOKENIZERS, "*.json", "merges.txt")


def check_model_folder(place: str | Path) -> Path:
    """The folder, which has what a model and its tokenizer are loaded from; nothing is loaded.

    Raises: WeightsNotFound, naming what is not there.
    """
    folder = Path(place).expanduser()
    if not folder.is_dir():
        raise WeightsNotFound(f"{folder}: no such folder of a transformers model")
    if not (folder / _CONFIG).is_file():
        raise WeightsNotFound(f"{folder} holds no {_CONFIG}: name the folder of a model")
    for what, names in (("weights", _WEIGHTS), ("tokenizer", _TOKENIZERS)):
        if not any(next(folder.glob(name), None) for name in names):
            raise WeightsNotFound(f"{folder} holds no {what}: none of {', '.join(names)}")
    return folder


def files_of_model(folder: Path) -> list[Path]:
    """The files of a folder from which the model and its tokenizer are made, in order."""
    return sorted({path for name in _PARTS for path in folder.glob(name) if path.is_file()})


def load_model(kind: str, folder: Path, **settings: Any) -> Any:
    """A model for inference.

    Args:
        kind: transformers' class of automatic models, such as "AutoModelForTokenClassification".
        settings: for its `from_pretrained`.

    Raises: IncompatibleCheckpoint where transformers cannot load it.
    """
    import transformers

    # Pickled weights are read as tensors alone; a checkpoint that lacks some has fresh random ones.
    model, report = _loaded(
        getattr(transformers, kind), folder, weights_only=True, output_loading_info=True, **settings
    )
    absent = sorted(str(key) for key in report["missing_keys"])
    unused = [key for key in absent if "pooler" not in key and "position_ids" not in key]
    if unused:
        raise IncompatibleCheckpoint(
            f"{folder} holds no weights for {', '.join(unused[:3])}: it is no checkpoint for "
            f"{kind.removeprefix('AutoModelFor') if 'For' in kind else 'this model'}"
        )
    return model.eval()


def load_tokenizer(folder: Path, **settings: Any) -> Any:
    """The tokenizer of a model. Raises IncompatibleCheckpoint where transformers cannot load it."""
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
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise IncompatibleCheckpoint(
            f"transformers cannot load {folder} as {kind.__name__}: {said}"
        ) from error
    finally:
        logging.set_verbosity(level)
        if has_bars:
            logging.enable_progress_bar()
