"""`python -m vlscore`."""

from vlscore.cli import main

main()
