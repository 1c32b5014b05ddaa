"""One file a published model."""
