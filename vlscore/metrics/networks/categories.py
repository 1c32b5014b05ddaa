"""What networks read in reports: names that a metric and its network share; loads no torch."""

# Observations of CheXbert, in the order of the network's heads: a fact of its weights, whatever the
# order of CheXpert's labels elsewhere.
OBSERVATIONS = (
    "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Opacity", "Lung Lesion", "Edema",
    "Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion",
    "Pleural Other", "Fracture", "Support Devices", "No Finding",
)  # fmt: skip
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
