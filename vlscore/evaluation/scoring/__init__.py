"""The command `evaluate`: scores of every study of a table."""
