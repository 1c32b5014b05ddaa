"""One file a metric or family of metrics."""
