"""Figures of any finished folder, and the paragraph that a paper's methods section needs of it."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from vlscore.core import RECORD, Signature, counted, finished_run, printable, reading_result
from vlscore.errors import InvalidTable, VLScoreError
from vlscore.evaluation.alignment.tables import draw_alignment
from vlscore.evaluation.comparison.comparison_figures import draw_comparison
from vlscore.evaluation.scored import BASELINE
from vlscore.evaluation.sensitivities.kinds_noticed import draw_sensitivity
from vlscore.metrics import metric_from_file
from vlscore.stats import (
    DEMONSTRATION,
    Result,
    check_drawable,
    curves,
    escaped,
    histograms,
    interval_in,
    note_with_mark,
)

DISTRIBUTIONS, CURVES = "distributions", "curves"


def draw(folder: str | Path, format: str = "pdf", *, columns: Sequence[str] = ()) -> list[Path]:
    """Draw the figures of a finished folder into it, and return their paths.

    The folder is one of evaluate (how each metric's values are distributed), compare (systems,
    paired differences, ranks; with two systems their studies), align (agreement with raters, the
    best metric against them), sensitivity (drops, normal reports) or train (learning curves).

    Args:
        format: "png", "svg" or "pdf".
        columns: of a comparison, the numbers that are drawn; see `TableSettings`.

    Raises: InvalidTable for a folder without figures; InvalidSetting for an unknown format or
        column; MissingDependency where matplotlib is not installed.
    """
    check_drawable(format)
    result = _finished(folder)
    command = result.key.get("command")
    if command == "evaluate":
        return [_draw_scores(result, format)]
    if command == "compare":
        return draw_comparison(result, format, columns)
    frames = {}
    if command in ("align", "sensitivity"):
        frames = {name: result.frame(name) for name in result.content["frames"]}
    if command == "align":
        values = result.rows("values.csv")
        return draw_alignment(frames, values, result.signatures, result.folder, format)
    if command == "sensitivity":
        return draw_sensitivity(frames, result.signatures, result.folder, format)
    if "log.csv" in result.files:
        return [_draw_training(result.folder, format)]
    raise InvalidTable(
        f"{folder} has no figures: name a folder of evaluate, compare, align, sensitivity or train"
    )


def _finished(folder: str | Path) -> Result:
    """Return the result in a folder. Raises: InvalidTable where no command finished there."""
    run = finished_run(folder)
    if run is None:
        raise InvalidTable(f"{folder} is not the folder of a finished command: it has no run.json")
    return Result.of(run)


def _draw_scores(result: Result, format: str) -> Path:
    """Draw how the first number of every metric is distributed over the studies."""
    scores = result.rows(f"scores.{result.key['format']}")
    values, means = {}, {}
    for each in result.frame("summary").to_dict("records"):
        if each["metric"] != each["of"]:
            continue
        title = f"{_printed(each['of'], result.folder)} {'↑' if each['higher_is_better'] else '↓'}"
        values[title] = scores[each["of"]].tolist()
        if each["n"]:
            means[title] = interval_in(each, "mean")
    note = "Values of single studies; line and band: mean and its 95 % bootstrap interval."
    note = note_with_mark(note, result.signatures.values())
    path = result.folder / f"{DISTRIBUTIONS}.{format}"
    histograms(values, path, title="Scores", means=means, note=note)
    return path


def _printed(name: str, source: Path) -> str:
    """Return the name of a metric's first number as papers print it."""
    try:
        return metric_from_file(name, source).printed()
    except VLScoreError:
        # A user's own metric that is not registered here.
        return name


def _draw_training(folder: Path, format: str) -> Path:
    """Draw loss and retrieval by step."""
    log = _columns(folder / "log.csv")
    panels = {"Loss": {"training": (log["step"], log["loss"])}}
    if (folder / "validation.csv").is_file():
        checked = _columns(folder / "validation.csv")
        steps = checked["step"]
        panels["Loss"]["validation"] = (steps, checked["loss"])
        recalls = {name: (steps, values) for name, values in checked.items() if "R@" in name}
        panels["Validation: recall"] = {
            "mean recall": (steps, checked["mean recall"]),
            **dict(list(recalls.items())[:3]),
        }
    path = folder / f"{CURVES}.{format}"
    curves(panels, path, title="Training", label="step")
    return path


def _columns(path: Path) -> dict[str, list[float]]:
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return {name: [float(row[name] or "nan") for row in rows] for name in (rows[0] if rows else ())}


METHODS, REFERENCES = "methods.md", "references.bib"

_ENTRY = re.compile(r"^@\w+\{(?P<key>[^,]+),.*?^\}\n", re.MULTILINE | re.DOTALL)
_KEYWORDS = re.compile(r"^  keywords = \{(?P<names>[^}]*)\},\n", re.MULTILINE)
_CITED = re.compile(r" \[(?P<keys>@[^\]]+)\]")
# A name or value of somebody's within the text, between two letters that no text has.
_BEGIN, _END = "\ue000", "\ue001"
_DATA = re.compile(f"{_BEGIN}([^{_END}]*){_END}")
_MARKDOWN = re.compile(r"[\\`*\[\]<>@#|~^$]|(?<!\w)_|_(?!\w)")


@dataclass(frozen=True)
class MethodsText:
    """A paragraph to paste.

    Attributes:
        text: text with citations as in [@papineni2002bleu], and names and values of others as
            `_data` marks them.
    """

    text: str

    @property
    def markdown(self) -> str:
        """Return the text for Markdown, with citations as pandoc reads them."""
        return _DATA.sub(lambda found: _MARKDOWN.sub(r"\\\g<0>", found[1]), self.text)

    @property
    def latex(self) -> str:
        """Return the text for LaTeX, with \\\\cite."""

        def cite(found: re.Match[str]) -> str:
            keys = found["keys"].replace("@", "").replace("; ", ",")
            return rf"~\cite{{{keys}}}"

        # Every second part is data, in which nothing is a citation.
        parts = _DATA.split(self.text.rstrip("\n"))
        for k, part in enumerate(parts):
            pieces = [part] if k % 2 else re.split(r"( \[@[^\]]+\])", part)
            parts[k] = "".join(
                _CITED.sub(cite, piece) if not k % 2 and _CITED.fullmatch(piece) else escaped(piece)
                for piece in pieces
            )
        return "".join(parts) + "\n"

    @property
    def bibtex(self) -> str:
        """Return the BibTeX entries of what is cited, in the order of their keys."""
        text = _DATA.sub("", self.text)
        cited = set(re.findall(r"@([\w-]+)", " ".join(_CITED.findall(text))))
        return "\n".join(entry for key, (entry, _) in _entries().items() if key in cited)


def methods(folder: str | Path) -> MethodsText:
    """Return the paragraph of a finished folder of evaluate, compare or align.

    It names the metrics with their libraries and versions, the encoder, intervals, tests and the
    tests over which p values are adjusted.

    Raises: InvalidTable for another folder; ChecksumMismatch where a result was changed.
    """
    result = _finished(folder)
    text_of = {"evaluate": _of_evaluation, "compare": _of_comparison, "align": _of_alignment}
    command = result.key.get("command")
    if command not in text_of:
        raise InvalidTable(f"{folder}: give a folder of evaluate, compare or align")
    result.check()
    with reading_result(result.folder / RECORD):
        return MethodsText(text_of[command](result))


def _data(value: object) -> str:
    """Return a name or value of somebody's, marked so that it is printed as it is."""
    text = printable(str(value), one_line=True)
    return _BEGIN + text.replace(_BEGIN, "").replace(_END, "") + _END


def _of_comparison(result: Result) -> str:
    key = result.key
    numbers = result.frame("systems").drop_duplicates("metric")
    primary = numbers[numbers["primary"]]
    titles = dict(zip(primary["of"], primary["title"], strict=True))
    corpus = set(primary[primary["of_corpus"]]["of"])
    systems = list(result.frame("texts")["system"])
    parts = [
        f"We compared {counted(len(systems), 'system')} ({', '.join(map(_data, systems))}) on the "
        f"same {counted(result.record['studies'], 'study')} with vlscore "
        f"{_data(result.record['vlscore'])}.",
        *_of_baselines(systems, key.get("train") is not None),
        *_of_empty_reports(result),
        *_of_metrics(result, titles, corpus),
        _of_intervals(key["resamples"], key.get("patient_column")),
    ]
    count = 0
    if result.content["frames"].get("differences"):
        tests = result.frame("differences")
        count = int((tests["metric"].isin(primary["metric"]) & tests["p"].notna()).sum())
    if count:
        pairs = "every two systems"
        if key.get("against"):
            pairs = f"{_data(key['against'])} and each other system"
        if any(name.startswith(BASELINE) for name in systems):
            pairs += ", but not between two baselines,"
        parts.append(
            f"Differences between {pairs} were tested by two-sided paired permutation tests "
            f"{_cite('randomization')} ({key['permutations']:,} permutations). p values were "
            f"adjusted {_cite('false-discovery-rate')} over {counted(count, 'test')} of the "
            "metrics above; differences with an adjusted p below 0.05 whose interval excludes 0 "
            "are called significant."
        )
    parts.append(f"The seed was {_data(key['seed'])}.")
    return _joined(parts)


def _of_baselines(systems: Sequence[str], is_trained: bool) -> list[str]:
    """Return a sentence that says what each baseline among the systems is."""
    reports = "the training reports" if is_trained else "the references of these studies"
    what = {
        "constant": f"the most frequent of {reports}",
        "normal": f"the most frequent normal sentences of {reports}",
        "random": f"one of {reports}, drawn at random",
        "nearest-image": "the reference of the other study whose image is nearest in the space of "
        "the encoder",
    }
    found = [
        f"{BASELINE}{name} is {text}"
        for name, text in what.items()
        if f"{BASELINE}{name}" in systems
    ]
    return [f"Of the baselines, {'; '.join(found)}."] if found else []


def _of_empty_reports(result: Result) -> list[str]:
    """Return a sentence on candidates that are empty, which are scored as they are."""
    texts = result.frame("texts")
    empty = texts[texts["empty"] > 0]
    if not len(empty):
        return []
    counts = [
        f"{count} of {_data(name)}"
        for name, count in zip(empty["system"], empty["empty"], strict=True)
    ]
    return [f"Empty candidates were scored as empty reports: {', '.join(counts)}."]


def _of_evaluation(result: Result) -> str:
    counts = dict(result.frame("counts").itertuples(index=False))
    patient = (result.key.get("own_columns") or {}).get("patient")
    parts = [
        f"We scored {counted(int(counts['rows']), 'study')} with vlscore "
        f"{_data(result.record['vlscore'])}.",
        *_of_metrics(result, {}, set()),
        _of_intervals(2000, patient),
    ]
    return _joined(parts)


def _of_alignment(result: Result) -> str:
    record = result.record
    parts = [
        f"We compared metrics with {counted(len(record['raters']), 'rater')} on "
        f"{counted(record['pairs'], 'pair')} of candidate and reference from "
        f"{counted(record['studies'], 'study')} with vlscore "
        f"{_data(record['vlscore'])}.",
        *_of_metrics(result, {}, set()),
        "Agreement is Kendall's tau_b with the raters' mean.",
        _of_intervals(result.key["resamples"], None),
        "p values of differences between metrics were adjusted "
        f"{_cite('false-discovery-rate')} over all pairs of metrics.",
        f"The seed was {_data(result.key['seed'])}.",
    ]
    return _joined(parts)


def _of_metrics(result: Result, titles: Mapping[str, str], corpus: set[str]) -> list[str]:
    """Return sentences about the metrics, and about the encoder where there is one."""
    shown: list[str] = []
    sections: list[str] = []
    encoders: dict[str, dict[str, str | None]] = {}
    is_demonstration = False
    for name, text in result.signatures.items():
        try:
            signature = Signature.parse(text)
        except VLScoreError:
            continue
        facts = dict(signature.facts)
        shown.append(_metric(result.folder, name, facts, titles.get(name), name in corpus))
        if facts.get("enc"):
            encoders[str(facts["enc"])] = facts
        if section := facts.get("txt"):
            sections.append(section)
        is_demonstration |= "DEMONSTRATION" in text
    sentences = [f"Metrics were {'; '.join(shown)}."]
    for encoder, facts in encoders.items():
        weights, _, digest = encoder.partition("@")
        how = [f"weights {_data(digest)}"] if digest else []
        how += [f"C = {_data(facts['C'])}"] if facts.get("C") else []
        how += [f"views: {_data(facts['views'])}"] if facts.get("views") else []
        cited = _cite(weights)
        sentences.append(f"The encoder was {_data(weights)} {cited} ({', '.join(how)}).")
    for section in dict.fromkeys(sections):
        what = "whole reports" if section == "all" else f"the part {_data(section)} of the reports"
        sentences.append(f"Metrics read {what}.")
    if is_demonstration:
        sentences.append(DEMONSTRATION)
    return sentences


def _metric(
    folder: Path, name: str, facts: Mapping[str, str | None], title: str | None, of_corpus: bool
) -> str:
    """Return a metric with citation, library and version; whose rules it uses, if they are ours."""
    try:
        metric = metric_from_file(name, folder / RECORD)
        library = metric.library
        title = title or metric.printed()
        cited = _cite(metric.name)
    except VLScoreError:
        # A metric that was computed elsewhere, or a user's own that is not registered here.
        return f"{_data(title or name)} (computed elsewhere)"
    version = facts.get(library)
    by = f"by {library} {_data(version)}" if version else f"by {library}"
    if facts.get("model"):
        by = f"by the language model {_data(facts['model'])}"
    elif metric.uses_findings:
        by = "by rules of vlscore"
    # The publication's idea, not its code: a reader must not take our number for the authors'.
    if cited and (metric.uses_findings or metric.name == "composite"):
        by, cited = f"{by}, after {cited}", ""
    parts = [by, *(["of the whole corpus"] if of_corpus else [])]
    return f"{_data(title)} {cited} ({', '.join(parts)})"


def _of_intervals(resamples: int, patients: str | None) -> str:
    whom = "studies" if patients is None else "patients"
    return (
        f"Intervals are 95 % percentile bootstrap intervals over {whom} {_cite('bootstrap')} "
        f"({resamples:,} resamples)."
    )


def _joined(parts: Iterable[str]) -> str:
    # What has no citation leaves two blanks.
    return re.sub(r" +", " ", " ".join(parts)) + "\n"


def _cite(name: str) -> str:
    """Return the citation of a metric, encoder or method; empty where it has none."""
    keys = [key for key, (_, names) in _entries().items() if name in names]
    return f"[{'; '.join(f'@{key}' for key in keys)}]" if keys else ""


@cache
def _entries() -> dict[str, tuple[str, frozenset[str]]]:
    """Return key -> (entry without keywords, names in its keywords) of references.bib."""
    text = files("vlscore.evaluation").joinpath(REFERENCES).read_text(encoding="utf-8")
    found = {}
    for match in _ENTRY.finditer(text):
        keywords = _KEYWORDS.search(match[0])
        names = keywords["names"].split(", ") if keywords else []
        found[match["key"]] = (_KEYWORDS.sub("", match[0]), frozenset(names))
    return dict(sorted(found.items()))
