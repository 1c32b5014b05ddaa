"""The command `sensitivity`: which changes of a report a metric notices."""
