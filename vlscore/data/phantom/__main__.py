"""`python -m vlscore.data.phantom`: write a data set of phantom studies."""

import argparse
import sys
import time

from vlscore.data.phantom.phantom_pairs import write_dataset

# Seconds between two lines of progress.
_SECONDS = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m vlscore.data.phantom",
        description="Write synthetic studies: radiographs, reports, and candidates whose errors "
        "are known exactly.",
    )
    parser.add_argument("folder", help="where to write")
    parser.add_argument("--studies", type=int, default=100, help="how many (default 100)")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default 0)")
    parser.add_argument("--format", choices=("png", "dicom"), default="png")
    parser.add_argument("--size", type=int, default=256, help="side in pixels (default 256)")
    parser.add_argument(
        "--phrasings", choices=("train", "held_out"), default="train", help="of the reports"
    )
    options = parser.parse_args()
    began = shown = time.monotonic()

    def say(done: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < _SECONDS:
            return
        shown = now
        left = (options.studies - done) * (now - began) / done
        print(f"wrote {done} of {options.studies} studies, {left:.0f} s left", file=sys.stderr)

    table = write_dataset(
        options.folder,
        seed=options.seed,
        count=options.studies,
        format=options.format,
        split=options.phrasings,
        size=options.size,
        on_progress=say,
    )
    print(table)


if __name__ == "__main__":
    main()
