"""`vlscore oracle`: the best reports of a corpus for each study; `vlscore retrieval`."""

import dataclasses
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from vlscore.oracle import Answer

StudiesArgument = Annotated[Path, typer.Argument(help="Table: .jsonl, .csv or .parquet.")]
ImageRootOption = Annotated[
    Path | None,
    typer.Option(help="Folder that image paths start from. Default: the table's folder."),
]


def oracle(
    studies: StudiesArgument,
    index: Annotated[Path, typer.Option("--index", "-i", help="Folder of the index.")],
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            "-m",
            help="vlscore, cosine, image-centred-cosine, clipscore, image-to-text, text-to-text, "
            "text-to-image; or a metric of texts such as bleu-4.",
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
            help="none: the published score, perfect anywhere on the line. segment: distance to "
            "the segment image-reference. window: foot within [0.5, 1.5] only."
        ),
    ] = "none",
    mode: Annotated[
        str,
        typer.Option(help="exact, approximate, or auto: exact up to a million reports."),
    ] = "auto",
    exclude_exact: Annotated[
        bool, typer.Option("--exclude-exact", help="Never find the reference's own text.")
    ] = False,
    exclude_ids: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of ids that a study must not find: its own, or its patient's.",
            show_default=False,
        ),
    ] = None,
    candidates: Annotated[
        int,
        typer.Option(min=0, help="Metrics of texts: re-rank so many, or 0 for the whole corpus."),
    ] = 200,
    ranks: Annotated[
        bool, typer.Option(help="Count the reports nearer to the reference than each hit.")
    ] = True,
    check: Annotated[bool, typer.Option(help="Compare the index with its sha256s.")] = True,
    image_root: ImageRootOption = None,
    id_column: Annotated[str, typer.Option(help="Column with the study's id.")] = "id",
    image_column: Annotated[str, typer.Option(help="Column with the image path(s).")] = "image",
    reference_column: Annotated[
        str, typer.Option(help="Column with the reference report.")
    ] = "reference",
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
    keep_going: Annotated[
        bool, typer.Option(help="Exit with status 0 even if some studies failed.")
    ] = False,
) -> None:
    """Find for every study the reports of a corpus that score highest.

    Started by torchrun, each process searches its part of the corpus; the result is the same.

    Example: vlscore oracle studies.jsonl --index train-index --top-k 10 --out oracle.jsonl
    """
    import torch

    from vlscore._files import atomic_write
    from vlscore.oracle import METRICS, OracleRun, OracleSettings, Shards, load_index
    from vlscore.studies import ColumnNames

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    settings = OracleSettings(
        metric=metric,
        k=top_k,
        guard=guard,
        mode=mode,
        exclude_exact=exclude_exact,
        exclude_ids=exclude_ids,
        candidates=candidates,
        ranks=ranks,
    )
    opened = load_index(index, check=check)
    shards = Shards.from_torchrun(device)
    is_first = shards.rank == 0
    scorer = None
    if is_first:
        scorer = make_scorer(
            encoder=encoder or opened.manifest.encoder,
            weights=weights,
            tokenizer=tokenizer,
            similarity="vlscore" if metric == "vlscore" else "cosine",
            C=C,
            device=shards.device if shards.count > 1 else device,
            precision=precision,
            batch_size=batch_size,
            image_policy=window,
            text_policy=section,
            views=views,
        )
    run = OracleRun(
        opened,
        scorer,
        settings,
        shards=shards,
        device=shards.device if shards.count > 1 else device,
    )
    columns = ColumnNames(id=id_column, image=image_column, reference=reference_column)
    answers = run.answers(studies, columns=columns, image_root=image_root)
    failed = 0
    if is_first:
        if out is not None:
            with atomic_write(out) as stream:
                for answer in answers:
                    stream.write(json.dumps(_record(answer), ensure_ascii=False) + "\n")
                    failed += _print_answer(answer)
        else:
            failed = sum(map(_print_answer, answers))
        signature = str(scorer.signature) if scorer is not None else ""
        name = metric if metric in METRICS else f"metric:{metric}"
        typer.echo(f"\nsignature {signature}|oracle:{name}|guard:{guard}")
        if run.is_approximate:
            typer.echo(f"approximate search; recall@{top_k} on a sample: {run.recall:.4f}")
        if out is not None:
            typer.echo(f"hits      {out}")
    else:
        for _ in answers:
            pass
    shards.close()
    if failed and not keep_going:
        raise typer.Exit(1)


def retrieval(
    studies: StudiesArgument,
    image_root: ImageRootOption = None,
    id_column: Annotated[str, typer.Option(help="Column with the study's id.")] = "id",
    image_column: Annotated[str, typer.Option(help="Column with the image path(s).")] = "image",
    reference_column: Annotated[str, typer.Option(help="Column with the report.")] = "reference",
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    batch_size: BatchSizeOption = 16,
    window: ImagePolicyOption = "auto",
    section: SectionOption = "all",
    views: ViewsOption = "first-frontal",
    keep_going: Annotated[
        bool, typer.Option(help="Exit with status 0 even if some studies failed.")
    ] = False,
) -> None:
    """Evaluate an encoder: does it find each image's report among all, and each report's image?

    Prints R@1, R@5, R@10 and the median rank, both ways. Ties count as chance would break them;
    equal reports are one.
    """
    from vlscore.oracle.retrieval import evaluate_retrieval
    from vlscore.oracle.run import embed_studies
    from vlscore.studies import ColumnNames

    scorer = make_scorer(
        encoder=encoder,
        weights=weights,
        tokenizer=tokenizer,
        similarity="cosine",
        device=device,
        precision=precision,
        batch_size=batch_size,
        image_policy=window,
        text_policy=section,
        views=views,
    )
    columns = ColumnNames(id=id_column, image=image_column, reference=reference_column)
    images, reports, texts, errors = embed_studies(
        studies, scorer, columns=columns, image_root=image_root
    )
    for name, result in zip(
        ("image to text", "text to image"),
        evaluate_retrieval(images, reports, texts),
        strict=True,
    ):
        recalls = "  ".join(f"R@{k} {share:.3f}" for k, share in result.recall.items())
        typer.echo(
            f"{name}  {recalls}  median rank {result.median_rank:g}  "
            f"({result.queries} queries, {result.gallery} to search)"
        )
    typer.echo(f"signature {scorer.signature}")
    for error in errors:
        _print_answer(error)
    if errors and not keep_going:
        raise typer.Exit(1)


def _print_answer(answer: "Answer") -> bool:
    """Print one study's hits; whether it failed."""
    if answer.error is not None:
        typer.secho(f"row {answer.row} ({answer.id}): {answer.error}", fg="red", err=True)
        return True
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
            facts.append(f"nearer {found.distance_rank}")
        if hit.verbatim:
            facts.append("VERBATIM")
        typer.echo(f"  {place:>2}  {'  '.join(facts)}  [{_shortened(', '.join(hit.ids), 30)}]")
        typer.echo(f"      {_shortened(hit.text, 100)}")
    return False


def _record(answer: "Answer") -> dict[str, Any]:
    """One line of the file; numbers that are not defined are null."""
    hits = []
    for hit in answer.hits:
        numbers = {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in dataclasses.asdict(hit.found).items()
        }
        hits.append({**numbers, "ids": hit.ids, "verbatim": hit.verbatim, "text": hit.text})
    return {"row": answer.row, "id": answer.id, "error": answer.error, "hits": hits}


def _shortened(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"
