"""Each paper's loss, one in a file: a pure function, and the Objective that holds its settings."""
