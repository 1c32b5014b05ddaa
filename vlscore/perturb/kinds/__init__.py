"""Kinds of perturbation."""
