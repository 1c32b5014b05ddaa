"""The command `findings`: labels of every report of a table."""
