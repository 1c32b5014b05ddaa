"""Tables and numbers as people read and paste them; what is in them is other rooms' business."""

from vlscore.display.numbers import interval, number, p_value
from vlscore.display.table import TextTable, markdown

__all__ = ["TextTable", "interval", "markdown", "number", "p_value"]
