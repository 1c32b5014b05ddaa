"""`vlscore demo`: a first look, on bundled studies."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from vlscore.cli.output import OutputOptions, echo
from vlscore.cli.shared import EncoderOptions, options
from vlscore.core import resource_path

ENCODER = "phantom-judging"
METRICS = ("bleu-4", "rouge-l", "vlscore", "judge")
# What the printed table must bear out; a test compares the two.
SHOWN = """
What it shows: BLEU-4 and ROUGE-L prefer `fluent`, which repeats most words of
the references, with errors. VLScore and the judge prefer `right`, which states
every finding in other words. The true numbers of errors agree with them.
What it does not show: how well scores work on real radiographs. All studies are
synthetic. The encoder was trained on such studies, and reads findings by the
same rules as the judge."""


def demo(
    *,
    out: Annotated[Path, Parameter(help="Folder for the results.")] = Path("out/demo"),
    output: Annotated[OutputOptions, options(without=("keep_going",))] = OutputOptions(),
) -> None:
    """Compare two bundled generators of reports, with images.

    Scores two generators and four baselines on a hundred synthetic studies, by BLEU-4, ROUGE-L,
    the judge, and VLScore with the bundled encoder. It needs no network and less than a minute.

    Example: vlscore demo --report
    """
    from vlscore.cli.compare import compare
    from vlscore.evaluation import ComparisonSettings

    folder = resource_path("weights", "phantom", "demo")
    systems = [f"right={folder / 'studies.jsonl'}", f"fluent={folder / 'fluent.jsonl'}"]
    settings = ComparisonSettings(
        baselines=True, values=folder / "errors.csv", lower_is_better=("errors",)
    )
    echo(
        f"note: this is vlscore compare {' '.join(systems)} --metrics {','.join(METRICS)} "
        f"--encoder {ENCODER} --baselines --values {settings.values} --lower-is-better errors "
        f"--out {out}",
        err=True,
    )
    compare(
        *systems,
        out=out,
        metrics=METRICS,
        settings=settings,
        encoding=EncoderOptions(encoder=ENCODER),
        output=output,
    )
    if not output.is_silent:
        echo(SHOWN)
