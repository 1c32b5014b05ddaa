"""`python -m vlscore.data.phantom`: write a data set of phantom studies, and print its table."""

from cyclopts import run

from vlscore.data.phantom.phantom_pairs import write_dataset

if __name__ == "__main__":
    run(write_dataset)
