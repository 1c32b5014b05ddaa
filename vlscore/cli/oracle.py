"""`vlscore oracle`: the best reports of a corpus for each study."""

import dataclasses
import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from vlscore.cli.options import (
    BatchSizeOption,
    ConstantOption,
    DeviceOption,
    EncoderOption,
    ImagePolicyOption,
    PrecisionOption,
    SectionOption,
    TokenizerOption,
    ViewsOption,
    WeightsOption,
    make_scorer,
)

if TYPE_CHECKING:
    from vlscore.oracle import Answer, OracleRun

StudiesArgument = Annotated[
    Path, typer.Argument(help="Table of studies, one a row: .jsonl, .csv or .parquet.")
]
ImageRootOption = Annotated[
    Path | None,
    typer.Option(help="Folder that image paths start from. Default: the table's folder."),
]
IdOption = Annotated[str, typer.Option(help="Column with the study's id.")]
ImageOption = Annotated[str, typer.Option(help="Column with the image path(s).")]
ReferenceOption = Annotated[str, typer.Option(help="Column with the reference report.")]
KeepGoingOption = Annotated[
    bool, typer.Option(help="Exit with status 0 even if some studies failed.")
]

_SHOWN_FAILURES = 10
_WIDTH = 100


def oracle(
    studies: StudiesArgument,
    index: Annotated[Path, typer.Option("--index", "-i", help="Folder of the index.")],
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            "-m",
            help="What the hits score highest under: vlscore, cosine, image-centred-cosine, "
            "clipscore; plain retrieval: image-to-text, text-to-text, text-to-image; or a metric "
            "of texts, such as bleu-4.",
        ),
    ] = "vlscore",
    top_k: Annotated[int, typer.Option("--top-k", "-k", min=1, help="Reports per study.")] = 10,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File for the hits, one study a line (jsonl)."),
    ] = None,
    guard: Annotated[
        str,
        typer.Option(
            help="none: the published score, perfect anywhere on the line through image and "
            "reference. segment: by the distance to the segment between them. window: only "
            "reports whose foot lies in [0.5, 1.5]; 0 is the image, 1 the reference."
        ),
    ] = "none",
    mode: Annotated[
        str,
        typer.Option(
            help="exact; approximate, for an index built with --approximate; or auto: exact up to "
            "a million reports."
        ),
    ] = "auto",
    effort: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Approximate mode: lists visited (IVF) or breadth of the graph search (HNSW). "
            "Default: half the lists, or 512; less is faster and finds less, see the recall that "
            "is printed.",
            show_default=False,
        ),
    ] = None,
    exclude_exact: Annotated[
        bool,
        typer.Option(
            "--exclude-exact",
            help="Never find the reference's own text: copies make the oracle trivially perfect.",
        ),
    ] = False,
    exclude_ids: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of ids that a study must not find (its own, or its patient's): one, a "
            "list, or several separated by semicolons. A text stays if an unlisted study has it "
            "too.",
            show_default=False,
        ),
    ] = None,
    candidates: Annotated[
        int,
        typer.Option(
            min=0,
            help="Metrics of texts: re-rank so many reports, the nearest to the reference by "
            "cosine; 0 scores the whole corpus, which is exact.",
        ),
    ] = 200,
    ranks: Annotated[
        bool, typer.Option(help="Rank each hit by its distance to the reference.")
    ] = True,
    check: Annotated[
        bool, typer.Option(help="First compare the index with its sha256s, which reads all of it.")
    ] = True,
    show: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Print the hits of the first N studies. Default: of all, or of none with --out.",
            show_default=False,
        ),
    ] = None,
    image_root: ImageRootOption = None,
    id_column: IdOption = "id",
    image_column: ImageOption = "image",
    reference_column: ReferenceOption = "reference",
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    C: ConstantOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    batch_size: BatchSizeOption = 16,
    window: ImagePolicyOption = "auto",
    section: SectionOption = "all",
    views: ViewsOption = "first-frontal",
    keep_going: KeepGoingOption = False,
) -> None:
    """Find for every study the reports of a corpus that score highest.

    A hit is printed with its score, the area, foot (where it projects onto the line from image, 0,
    to reference, 1), h/|r-i| (its height over that line), |g-r| (distance to the reference) and
    its rank by that distance, 1 the nearest. Any report on the line scores a perfect 1, however
    far from the reference: look at foot and rank, or choose a --guard.

    The encoder is the index's, and --section, --precision must be as it was built. Started by
    torchrun, each process searches its part of the corpus; for the same embeddings the result is
    the same, bit for bit.

    Example: vlscore oracle studies.jsonl --index train-index --top-k 10 --out oracle.jsonl
    """
    import torch

    from vlscore.index import load_index
    from vlscore.oracle import OracleRun, OracleSettings
    from vlscore.search import Shards
    from vlscore.studies import ColumnNames, count_rows

    settings = OracleSettings(
        metric=metric,
        k=top_k,
        guard=guard,
        mode=mode,
        effort=effort,
        exclude_exact=exclude_exact,
        exclude_ids=exclude_ids,
        candidates=candidates,
        ranks=ranks,
    )
    opened = load_index(index, check=check)
    total = count_rows(studies)
    shards = Shards.from_torchrun(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    scorer = None
    if shards.rank == 0:
        scorer = make_scorer(
            encoder=encoder or opened.manifest.encoder,
            weights=weights,
            tokenizer=tokenizer,
            similarity="vlscore" if settings.metric == "vlscore" else "cosine",
            C=C,
            device=shards.device,
            precision=precision,
            batch_size=batch_size,
            image_policy=window,
            text_policy=section,
            views=views,
        )
    run = OracleRun(opened, scorer, settings, shards=shards, device=shards.device)
    columns = ColumnNames.of_options(id=id_column, image=image_column, reference=reference_column)
    answers = run.answers(studies, columns=columns, image_root=image_root)
    failed = 0
    if scorer is None:
        for _ in answers:
            pass
    elif out is None:
        failed = _print_all(run, answers, show)
    else:
        failed = _write_all(run, answers, out, total, show or 0)
    shards.close()
    if failed and not keep_going:
        raise typer.Exit(1)


class _Tally:
    """What is said of all studies at the end."""

    def __init__(self) -> None:
        self.searched = self.failed = 0
        self.best: list[float] = []
        self.verbatim: list[bool] = []

    def add(self, answer: "Answer") -> None:
        """Count one study."""
        self.failed += answer.error is not None
        self.searched += answer.error is None
        if answer.hits:
            best = answer.hits[0]
            self.best.append(best.found.score)
            if best.verbatim is not None:
                self.verbatim.append(best.verbatim)

    def print(self, run: "OracleRun") -> None:
        """Print the summary and the signature."""
        line = f"\n{self.searched} studies searched, {self.failed} failed"
        if self.best:
            mean = math.fsum(self.best) / len(self.best)
            line += f"; best hits: mean score {mean:.4f}"
        if self.verbatim:
            line += f", {sum(self.verbatim)} of {len(self.verbatim)} equal the reference"
        typer.echo(line)
        if run.is_approximate:
            shares = ", ".join(f"recall@{k} {share:.4f}" for k, share in run.recall.items())
            typer.echo(f"approximate search; on a sample of these studies: {shares or 'unknown'}")
        typer.echo(f"signature {run.signature}")


def _print_all(run: "OracleRun", answers: Iterable["Answer"], show: int | None) -> int:
    tally = _Tally()
    for answer in answers:
        tally.add(answer)
        if answer.error is not None or show is None or tally.searched <= show:
            print_answer(answer)
    tally.print(run)
    return tally.failed


def _write_all(
    run: "OracleRun", answers: Iterable["Answer"], out: Path, total: int | None, show: int
) -> int:
    from vlscore._files import atomic_write
    from vlscore.cli.progress import row_progress

    tally, shown = _Tally(), []
    with atomic_write(out) as stream, row_progress(total, "searching") as on_progress:
        for answer in answers:
            _write(stream, answer, run.signature)
            tally.add(answer)
            few = tally.failed <= _SHOWN_FAILURES if answer.error else tally.searched <= show
            if few:
                shown.append(answer)
            on_progress(tally.searched + tally.failed, tally.failed)
    for answer in shown:
        print_answer(answer)
    if tally.failed > _SHOWN_FAILURES:
        typer.echo(f"... and {tally.failed - _SHOWN_FAILURES} more failed", err=True)
    tally.print(run)
    typer.echo(f"hits      {out}")
    return tally.failed


def print_answer(answer: "Answer") -> None:
    """Print one study's hits, or on stderr why there are none."""
    if answer.error is not None:
        typer.secho(f"row {answer.row} ({answer.id}): {answer.error}", fg="red", err=True)
        return
    typer.echo(f"\n{answer.id}")
    if not answer.hits:
        typer.echo("  nothing qualifies")
    for place, hit in enumerate(answer.hits, start=1):
        found = hit.found
        facts = [f"score {found.score:.4f}"]
        for name, value in (
            ("area", found.area),
            ("foot", found.foot),
            ("h/|r-i|", found.height),
            ("|g-r|", found.distance),
        ):
            if not math.isnan(value):
                facts.append(f"{name} {value:.4g}")
        if found.distance_rank is not None:
            facts.append(f"rank {found.distance_rank}")
        if hit.verbatim:
            facts.append("VERBATIM")
        typer.echo(f"  {place:>2}  {'  '.join(facts)}  [{_shortened(', '.join(hit.ids), 30)}]")
        typer.echo(f"      {_shortened(hit.text, _WIDTH)}")


def _write(stream: IO[str], answer: "Answer", signature: str) -> None:
    """One line of the file; numbers that are not defined are null."""
    hits = []
    for hit in answer.hits:
        numbers = {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in dataclasses.asdict(hit.found).items()
        }
        hits.append({**numbers, "ids": hit.ids, "verbatim": hit.verbatim, "text": hit.text})
    record: dict[str, Any] = {
        "row": answer.row,
        "id": answer.id,
        "error": answer.error,
        "hits": hits,
        "signature": signature,
    }
    stream.write(json.dumps(record, ensure_ascii=False) + "\n")


def _shortened(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
