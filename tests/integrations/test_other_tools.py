"""Lightning, Hugging Face's evaluate, lm-evaluation-harness, inspect_ai, and flat numbers."""

import json
import math

import numpy as np
import pytest

import vlscore
from tests.doubles import HashEncoder
from vlscore.errors import InvalidSetting, InvalidStudy, UnknownName
from vlscore.integrations import EVALUATE_MODULE, flat_numbers, lm_eval_results

CANDIDATES = ["left effusion", "no effusion", "edema of both lungs", "fracture"]
REFERENCES = ["left effusion", "clear lungs", "edema", "a rib fracture"]
METRICS = "bleu-2,rouge-l"


def pictures(count: int) -> list[np.ndarray]:
    return list(np.random.default_rng(0).integers(0, 256, (count, 1, 16, 12), dtype=np.uint8))


@pytest.fixture(scope="module")
def expected():
    """Mean and corpus values of the reports above."""
    table = vlscore.Scorer(metrics=METRICS).score(None, CANDIDATES, REFERENCES)
    return flat_numbers(table)


def test_numbers_of_a_table(expected):
    table = vlscore.Scorer(metrics=METRICS).score(None, CANDIDATES, REFERENCES)
    assert expected["rouge-l"] == pytest.approx(table.columns["rouge-l"].mean())
    assert set(expected) == {"bleu-2", "bleu-2 corpus", "rouge-l", "failed"}
    assert flat_numbers(table[0], "val/")["val/bleu-2"] == 1.0
    assert flat_numbers({"rows": [{"name": "a", "x": 1}, {"name": "a", "x": 2}]}) == {
        "rows.a.x": 1.0,
        "rows.a.x.again1": 2.0,
    }


def test_numbers_of_commands(tmp_path):
    rows = ["id,candidate,reference"]
    rows += [f"{k},{g},{r}" for k, (g, r) in enumerate(zip(CANDIDATES, REFERENCES, strict=True))]
    (tmp_path / "a.csv").write_text("\n".join(rows))
    (tmp_path / "b.csv").write_text("\n".join(rows).replace("no effusion", "clear lungs"))
    scorer = vlscore.Scorer(metrics=METRICS)
    result = vlscore.evaluate(tmp_path / "a.csv", tmp_path / "out", scorer)
    found = flat_numbers(result)
    means = scorer.score(None, CANDIDATES, REFERENCES).columns
    assert found["metrics.rouge-l.values.rouge-l.mean"] == pytest.approx(means["rouge-l"].mean())
    assert all(isinstance(each, float) and math.isfinite(each) for each in found.values())
    json.dumps(found)


def test_lm_eval_documents(expected, tmp_path):
    process = lm_eval_results(METRICS, reference="report")
    found = [process({"report": r}, [g]) for g, r in zip(CANDIDATES, REFERENCES, strict=True)]
    mean = sum(each["rouge-l"] for each in found) / len(found)
    assert mean == pytest.approx(expected["rouge-l"])
    assert [each["failed"] for each in found] == [0, 0, 0, 0]
    with pytest.raises(InvalidStudy, match='no "reference"'):
        process({"image": "x"}, ["a"])
    with_images = lm_eval_results("vlscore", encoder=HashEncoder(), device="cpu")
    document = {"reference": "a", "image": str(tmp_path / "absent.png")}
    assert with_images(document, ["a"]) == {"failed": 1.0}
    with pytest.raises(UnknownName):
        lm_eval_results("rouge-ell")


def test_lm_eval_runs_a_task(expected, tmp_path):
    """The real harness, with a model that returns the candidates."""
    lm_eval = pytest.importorskip("lm_eval", reason="lm_eval: pip install lm-eval")
    from lm_eval.api.model import LM
    from lm_eval.tasks import TaskManager

    class Generator(LM):
        def generate_until(self, requests):
            return [CANDIDATES[int(each.args[0])] for each in requests]

        def loglikelihood(self, requests):
            raise NotImplementedError

        loglikelihood_rolling = loglikelihood

    rows = [json.dumps({"n": str(k), "report": r}) for k, r in enumerate(REFERENCES)]
    (tmp_path / "test.jsonl").write_text("\n".join(rows))
    (tmp_path / "utils.py").write_text(
        "from vlscore.integrations import lm_eval_results\n"
        f'process_results = lm_eval_results("{METRICS}", reference="report")\n'
    )
    names = ["bleu-2", "rouge-l", "failed"]
    metrics = "".join(f"  - metric: {n}\n    aggregation: mean\n" for n in names)
    (tmp_path / "reports.yaml").write_text(
        "task: reports\ndataset_path: json\n"
        f"dataset_kwargs: {{data_files: {{test: {tmp_path / 'test.jsonl'}}}}}\n"
        "test_split: test\noutput_type: generate_until\n"
        "doc_to_text: '{{n}}'\ndoc_to_target: '{{report}}'\n"
        "process_results: !function utils.process_results\n"
        f"metric_list:\n{metrics}"
    )
    manager = TaskManager(include_path=str(tmp_path), include_defaults=False)
    done = lm_eval.simple_evaluate(
        model=Generator(), tasks=["reports"], task_manager=manager, bootstrap_iters=0
    )
    found = done["results"]["reports"]
    for name in ("bleu-2", "rouge-l", "failed"):
        assert found[f"{name},none"] == pytest.approx(expected[name])


def test_inspect_runs_a_task(expected, tmp_path):
    """The real inspect_ai, with a solver that writes the candidates."""
    inspect_ai = pytest.importorskip("inspect_ai", reason="inspect_ai: pip install inspect_ai")
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.solver import solver

    from vlscore.integrations import inspect_scorer

    @solver
    def generator():
        async def solve(state, generate):
            text = CANDIDATES[int(state.input_text)]
            state.output = ModelOutput.from_content("none", text)
            return state

        return solve

    samples = [Sample(input=str(k), target=r) for k, r in enumerate(REFERENCES)]
    task = inspect_ai.Task(dataset=samples, solver=generator(), scorer=inspect_scorer(METRICS))
    (log,) = inspect_ai.eval(task, model="mockllm/model", log_dir=str(tmp_path), display="none")
    assert log.status == "success", log.error
    found = {each.name: each.metrics["mean"].value for each in log.results.scores}
    assert found["rouge-l"] == pytest.approx(expected["rouge-l"])
    assert found["bleu-2"] == pytest.approx(expected["bleu-2"])


def test_evaluate_loads_the_module(expected):
    evaluate = pytest.importorskip("evaluate", reason="evaluate: pip install evaluate")
    module = evaluate.load(EVALUATE_MODULE)
    found = module.compute(predictions=CANDIDATES, references=REFERENCES, metrics=METRICS)
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert set(found["signatures"]) == {"bleu-2", "rouge-l"}
    for candidate, reference in zip(CANDIDATES, REFERENCES, strict=True):
        module.add(prediction=candidate, reference=reference)
    again = module.compute(
        metrics="cosine", images=pictures(4), encoder=HashEncoder(), device="cpu"
    )
    assert 0 < again["cosine"] <= 1


def test_lightning_logs_at_the_end_of_a_validation(expected, tmp_path):
    pytest.importorskip("torchmetrics", reason="pip install 'vlscore[torchmetrics]'")
    lightning = pytest.importorskip("lightning.pytorch", reason="pip install lightning")
    import torch

    from vlscore.integrations import LogReportMetric, ReportMetric

    class Model(lightning.LightningModule):
        key = "candidate"

        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def validation_step(self, batch, batch_idx):
            return {self.key: [CANDIDATES[k] for k in batch["n"]]}

    rows = [{"n": k, "reference": r} for k, r in enumerate(REFERENCES)]
    loader = torch.utils.data.DataLoader(rows, batch_size=2)

    def validated(callback, model):
        trainer = lightning.Trainer(
            accelerator="cpu",
            callbacks=[callback],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        return trainer.validate(model, loader, verbose=False)

    callback = LogReportMetric(METRICS)
    for _ in range(2):  # the second validation begins anew
        (logged,) = validated(callback, Model())
        assert logged == pytest.approx({f"val/{k}": v for k, v in expected.items()}, rel=1e-6)
    one = LogReportMetric(ReportMetric(METRICS, value="bleu-2 corpus"), prefix="")
    (logged,) = validated(one, Model())
    assert logged == pytest.approx({"bleu-2 corpus": expected["bleu-2 corpus"]}, rel=1e-6)
    model = Model()
    model.key = "text"
    with pytest.raises(InvalidSetting, match='nor the batch has "candidate"'):
        validated(one, model)
