"""Exact and approximate search over an array of vectors."""
