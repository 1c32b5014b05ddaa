"""The command `controlled`: metrics on sentences of known labels."""
