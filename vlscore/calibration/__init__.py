"""The constant C of an encoder, measured on a table of studies."""

from vlscore.calibration.calibrate import Calibration, calibrate, calibrate_vectors
from vlscore.calibration.card_file import read_card, write_constant

__all__ = ["Calibration", "calibrate", "calibrate_vectors", "read_card", "write_constant"]
