"""C of an encoder that has just been trained, from pairs that it did not learn from."""

import numpy as np

from vlscore._signature import Signature
from vlscore.calibration import Calibration, calibrate_vectors
from vlscore.errors import InvalidTable
from vlscore.training.preparing import Preparation
from vlscore.training.step import Towers
from vlscore.training.validation import Validation

# References of other studies that stand for candidates of each study, and how many studies.
_OTHERS = 4
_MOST_STUDIES = 2000


def measure_constant(
    validation: Validation, towers: Towers, preparation: Preparation, seed: int
) -> Calibration | None:
    """The largest area of triangles of validation images, their reports, and other reports.

    Images are those that training kept, shrunk and in 8 bits; `vlscore calibrate` measures C on
    files of one's own, and on what a generator writes.

    Args:
        preparation: of the table that the validation pairs come from.
        seed: of what is drawn: up to 2000 studies, and four other reports for each.

    Returns: None where the reports are all equal, or every area is 0.
    """
    rows = validation.rows
    if len(rows) > _MOST_STUDIES:
        chosen = np.random.default_rng(seed).choice(len(rows), _MOST_STUDIES, replace=False)
        rows = rows[np.sort(chosen)]
    images, reports = validation.vectors(towers, rows)
    card, table = towers.encoder.card, preparation.table
    signature = Signature("areas").plus(enc=card.name, views=preparation.views, prec="fp32")
    try:
        return calibrate_vectors(
            images,
            reports,
            [validation.pairs.texts[row] for row in rows],
            others=_OTHERS,
            table=table,
            signature=signature,
            seed=seed,
        )
    except InvalidTable:
        return None
