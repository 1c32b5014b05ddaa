"""CheXpert's fourteen labels of the reports of a table, and how well they agree with given ones.

from vlscore.labelling import label_table
result = label_table("reports.csv", "labels", against="chexpert.csv")
print(result.tables[0].text())
"""

from vlscore.labelling.agreement import LabelAgreement, agreement
from vlscore.labelling.given import read_labels
from vlscore.labelling.policy import UNCERTAIN, UNMENTIONED, LabelPolicy
from vlscore.labelling.run import FORMATS, LabelledReports, label_table

__all__ = [
    "FORMATS",
    "UNCERTAIN",
    "UNMENTIONED",
    "LabelAgreement",
    "LabelPolicy",
    "LabelledReports",
    "agreement",
    "label_table",
    "read_labels",
]
