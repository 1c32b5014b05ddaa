"""The commands `align`, `failure-modes` and `rating-sheets`: metrics and raters."""
