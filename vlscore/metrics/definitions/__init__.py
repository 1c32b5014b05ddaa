"""Definitions of metrics, one file a family; `METRICS` in the registry lists them."""
