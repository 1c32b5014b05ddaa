"""The commands `ratings make` and `ratings read`: sheets and pages for raters, and answers."""
