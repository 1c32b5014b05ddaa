"""`python -m vlscore`."""

from vlscore.cli import main

if __name__ == "__main__":
    main()
