"""What networks read in reports: names that a metric and its network share; loads no torch."""

from vlscore.findings import CHEXPERT_LABELS

# Observations of CheXbert, in the order of the network's heads: opacity before lesion, and No
# Finding last.
OBSERVATIONS = (*CHEXPERT_LABELS[1:3], *CHEXPERT_LABELS[4:2:-1], *CHEXPERT_LABELS[5:], "No Finding")
# How a report states an observation.
BLANK, POSITIVE, NEGATIVE, UNCERTAIN = range(4)

# Types of RaTEScore's entities.
TYPES = ("ABNORMALITY", "ANATOMY", "DISEASE", "NON-ABNORMALITY", "NON-DISEASE")

# Categories of GREEN's errors, (a) to (f) of an answer.
CATEGORIES = {
    "false-finding": "findings that the reference does not have",
    "missing-finding": "findings of the reference that are missing",
    "location": "findings with another place",
    "severity": "findings with another severity",
    "false-comparison": "comparisons that the reference does not make",
    "missing-comparison": "changes from a prior study that are missing",
}
