"""The judge by rules: errors of a candidate, one by one, with category and severity."""
