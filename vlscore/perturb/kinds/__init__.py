"""The kinds of perturbation, one a file."""
