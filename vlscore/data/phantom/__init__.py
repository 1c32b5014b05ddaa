"""Synthetic radiographs and reports whose errors are known."""
