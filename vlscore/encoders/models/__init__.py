"""Published models: one file for each."""
