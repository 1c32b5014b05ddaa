"""Published data sets as tables of studies: one file a data set."""
