"""The command `judge`: the errors of every candidate of a table."""
