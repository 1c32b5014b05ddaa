"""Loss functions of published papers."""
