"""Preferences of a score between candidates that the image tells apart."""
