"""What the released packages f1chexbert 0.0.2 and radgraph 0.1.18 give on constructed checkpoints.

Written to chexbert.json and radgraph.json. Needs

    pip install --no-deps f1chexbert==0.0.2 radgraph==0.1.18
    pip install appdirs dotmap jsonpickle h5py nltk pandas requests scikit-learn
    python -m tests.metrics.networks.goldens.make
"""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.metrics.networks.constructed import (
    BERT,
    GOLDENS,
    LONG,
    REPORTS,
    radgraph_config,
    radgraph_tensors,
    write_bert,
    write_chexbert,
    write_radgraph,
)

PAIRS = ((0, 0), (0, 1), (1, 0), (2, 8), (3, 8), (6, 6), (4, 3))


def rounded(values: Any) -> Any:
    return np.round(values.detach().numpy().astype(np.float64), 6).tolist()


def shapes_of(model: torch.nn.Module) -> dict[str, list[int]]:
    return {key: list(value.shape) for key, value in model.state_dict().items()}


def chexbert(bert: Path, cache: Path) -> dict[str, Any]:
    import f1chexbert.f1chexbert as package
    from transformers import AutoConfig, BertTokenizer

    class Here:
        """Reads the folder in the place of the hub's bert-base-uncased."""

        def __init__(self, kind: Any) -> None:
            self.kind = kind

        def from_pretrained(self, name: str) -> Any:
            assert name == "bert-base-uncased"
            return self.kind.from_pretrained(str(bert))

    package.AutoConfig, package.BertTokenizer = Here(AutoConfig), Here(BertTokenizer)
    package.CACHE_DIR = str(cache)
    shapes = shapes_of(package.bert_labeler(inference=True))
    write_chexbert(cache, shapes)
    model = package.F1CheXbert(device="cpu")
    reports = [*REPORTS, LONG]
    found: dict[str, Any] = {"shapes": shapes, "labels": [], "rrg": [], "logits": [], "cls": []}
    for report in reports:
        found["labels"].append(model.get_label(report, mode="classification"))
        found["rrg"].append(model.get_label(report))
        (ids,) = package.tokenize(package.pd.Series([report]), model.tokenizer)
        batch, mask = torch.tensor([ids]), torch.ones(1, len(ids))
        with torch.no_grad():
            out = model.model(batch, mask)
            cls = model.model.bert(batch, attention_mask=mask)[0][0, 0]
        found["logits"].append(rounded(torch.cat([part[0] for part in out])))
        found["cls"].append(rounded(cls))
    hyps, refs = ([reports[pair[k]] for pair in PAIRS] for k in (0, 1))
    _, _, fourteen, five = model(hyps, refs)
    found["f1"] = {
        f"{kind}-{n}": report[f"{kind} avg"]["f1-score"]
        for n, report in ((14, fourteen), (5, five))
        for kind in ("micro", "macro")
    }
    return found


def radgraph(bert: Path, cache: Path) -> dict[str, Any]:
    import radgraph as package
    from radgraph.allennlp.common.params import Params
    from radgraph.allennlp.data import Vocabulary
    from radgraph.allennlp.modules import text_field_embedders, token_embedders
    from radgraph.dygie.models import dygie

    # An archive without weights has the shapes of the package's own model.
    folder = write_radgraph(cache / "shapes", str(bert), {})
    settings = radgraph_config(str(bert))["model"]
    for name in ("type", "embedder", "initializer", "module_initializer"):
        del settings[name]
    embedder = token_embedders.PretrainedTransformerMismatchedEmbedder(model_name=str(bert))
    settings["modules"] = Params(settings["modules"])
    shapes = shapes_of(
        dygie.DyGIE(
            vocab=Vocabulary.from_files(str(folder / "vocabulary")),
            embedder=text_field_embedders.BasicTextFieldEmbedder({"bert": embedder}),
            **settings,
        )
    )
    tensors = radgraph_tensors(shapes)
    write_radgraph(cache / "radgraph", str(bert), tensors)
    write_radgraph(cache / "radgraph-xl", str(bert), tensors, dataset="radgraph-xl")
    found: dict[str, Any] = {"shapes": shapes}
    for kind in ("radgraph", "radgraph-xl"):
        model = package.RadGraph(model_type=kind, model_cache_dir=str(cache), cuda=-1)
        said: list[dict[str, Any]] = []
        seen = _listen(model.model, said)
        annotations = model(list(REPORTS))
        for handle in seen:
            handle.remove()
        found[kind] = [annotations[str(row)] for row in range(len(REPORTS))]
        if kind == "radgraph":
            found["scores"] = said
    for level in ("simple", "partial", "complete"):
        scorer = package.F1RadGraph(
            reward_level=level, model_type="radgraph", model_cache_dir=str(cache), cuda=-1
        )
        hyps, refs = ([REPORTS[pair[k]] for pair in PAIRS] for k in (0, 1))
        found[level] = [float(value) for value in scorer(hyps=hyps, refs=refs)[1]]
    return found


def _listen(model: Any, said: list[dict[str, Any]]) -> list[Any]:
    """Keep the scores from which the package chooses labels, one report after another."""

    def entities(module: Any, inputs: Any, output: Any) -> None:
        said.append({"entities": rounded(output[0])})

    def relations(module: Any, inputs: Any, output: Any) -> None:
        said[-1]["kept"] = output[2][0].tolist()
        said[-1]["mentions"] = rounded(output[3][0, :, 0])

    def pairs(module: Any, inputs: Any, output: Any) -> None:
        said[-1]["pairs"] = rounded(output)

    (scorer,) = model._ner._ner_scorers.values()
    (pruner,) = model._relation._mention_pruners.values()
    (last,) = model._relation._relation_scorers.values()
    listeners = ((scorer, entities), (pruner, relations), (last, pairs))
    return [module.register_forward_hook(hook) for module, hook in listeners]


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        bert = write_bert(Path(place) / "bert-uncased")
        for make in (chexbert, radgraph):
            folder = Path(place) / make.__name__
            folder.mkdir()
            content = {"bert": BERT, "pairs": PAIRS, **make(bert, folder)}
            text = json.dumps(content, separators=(",", ":"), ensure_ascii=True)
            (GOLDENS / f"{make.__name__}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
