"""The commands `align` and `failure-modes`: metrics and raters."""
