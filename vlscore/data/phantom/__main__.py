"""`python -m vlscore.data.phantom`: write a data set of phantom studies."""

import argparse

from vlscore.data.phantom.phantom_pairs import write_dataset


def main() -> None:
    """Write the data set that the arguments describe, and print the path of its table."""
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
    table = write_dataset(
        options.folder,
        seed=options.seed,
        count=options.studies,
        format=options.format,
        split=options.phrasings,
        size=options.size,
    )
    print(table)


if __name__ == "__main__":
    main()
