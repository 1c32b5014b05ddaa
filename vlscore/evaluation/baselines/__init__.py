"""The command `baseline`: generators that need no network of their own, one class a baseline."""
