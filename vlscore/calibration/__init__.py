"""The constant C of an encoder, measured on a table of studies."""

from vlscore.calibration.calibrate import Calibration, calibrate
from vlscore.calibration.card_file import read_card, write_constant

__all__ = ["Calibration", "calibrate", "read_card", "write_constant"]
