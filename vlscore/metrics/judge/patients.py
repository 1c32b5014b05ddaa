"""Reader of a patient's age and indication from a table."""

import math
import re
from typing import Any

from vlscore.errors import InvalidSetting, InvalidStudy
from vlscore.metrics.judge.grading import Patient

# DICOM's age string (PS3.5, value representation AS).
_DICOM = re.compile(r"(\d{1,3})([DWMY])", re.IGNORECASE)
_YEARS = {"d": 1 / 365, "w": 7 / 365, "m": 1 / 12, "y": 1.0}


def patient_of(age: Any, indication: Any, column: str = "age") -> Patient:
    """Return the patient of one row; empty cells are unknown.

    Args: column: of the age, for the message.

    Raises: InvalidStudy where the age is neither a number of years nor a DICOM age.

    >>> patient_of("018M", "Cough.").age
    1.5
    """
    words = "" if indication is None or indication != indication else str(indication)
    try:
        return Patient(_years(age), words)
    except (ValueError, InvalidSetting):
        raise InvalidStudy(
            f'column "{column}" holds {str(age)[:20]!r}: give years (72), a DICOM age (072Y), or '
            "nothing"
        ) from None


def _years(age: Any) -> float | None:
    if age is None or isinstance(age, bool) or not str(age).strip():
        return None
    text = str(age).strip()
    if (found := _DICOM.fullmatch(text)) is not None:
        return int(found[1]) * _YEARS[found[2].lower()]
    years = float(text)
    return None if math.isnan(years) else years
