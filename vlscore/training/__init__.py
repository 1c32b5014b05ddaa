"""Encoders trained on pairs of images and reports, by the objectives of the papers."""
