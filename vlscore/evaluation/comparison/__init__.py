"""The command `compare`: several systems, paired tests, baselines."""
