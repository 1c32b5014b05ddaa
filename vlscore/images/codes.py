"""Codes of DICOM headers that may be repeated in messages and results.

Whatever stands in a header beside these could be a name that was typed into the wrong field: it is
never repeated.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydicom import Dataset

# fmt: off
# Defined terms of Modality, today's and retired (PS3.3 C.7.3.1.1.1); DR and SC are common besides.
MODALITIES = frozenset((
    "ANN", "AR", "AS", "ASMT", "AU", "BDUS", "BI", "BMD", "CD", "CF", "CFM", "CP", "CR", "CS", "CT",
    "CTPROTOCOL", "DD", "DF", "DG", "DM", "DMS", "DOC", "DR", "DS", "DX", "EC", "ECG", "EEG", "EMG",
    "EOG", "EPS", "ES", "FA", "FID", "FS", "GM", "HC", "HD", "IO", "IOL", "IVOCT", "IVUS", "KER",
    "KO", "LEN", "LP", "LS", "M3D", "MA", "MG", "MR", "MS", "NM", "OAM", "OCT", "OP", "OPM", "OPR",
    "OPT", "OPTBSV", "OPTENF", "OPV", "OSS", "OT", "PA", "PLAN", "POS", "PR", "PT", "PX", "REG",
    "RESP", "RF", "RG", "RTDOSE", "RTIMAGE", "RTINTENT", "RTPLAN", "RTRAD", "RTRECORD",
    "RTSEGANN", "RTSTRUCT", "RWV", "SC", "SEG", "SM", "SMR", "SR", "SRF", "ST", "STAIN",
    "TEXTUREMAP", "TG", "US", "VA", "VF", "XA", "XAPROTOCOL", "XC",
))
# Defined terms of Photometric Interpretation, today's and retired (PS3.3 C.7.6.3.1.2).
PHOTOMETRIC_INTERPRETATIONS = frozenset((
    "ARGB", "CMYK", "HSV", "MONOCHROME1", "MONOCHROME2", "PALETTE COLOR", "RGB", "XYB", "YBR_FULL",
    "YBR_FULL_422", "YBR_ICT", "YBR_PARTIAL_420", "YBR_PARTIAL_422", "YBR_RCT",
))
# Defined terms of View Position (PS3.3 C.8.1.2, C.8.7.5.1.4) and what public archives hold.
VIEWS = frozenset((
    "AP", "AP AXIAL", "AP LLD", "AP LORDOTIC", "AP PORTABLE", "AP RLD", "AP SUPINE", "AP UPRIGHT",
    "FRONTAL", "LAO", "LAT", "LATERAL", "LEFT LATERAL", "LL", "LLD", "LLO", "LORDOTIC", "LPO",
    "PA", "PA LLD", "PA RLD", "PA UPRIGHT", "RAO", "RIGHT LATERAL", "RL", "RLD", "RLO", "RPO",
    "SWIMMERS", "XTABLE LATERAL",
))
# fmt: on


def short_code(dataset: "Dataset", keyword: str) -> str | None:
    """A code of the header, of at most 16 letters, digits, blanks and underscores: no free text.

    It may still be a name, and is not to be repeated.
    """
    value = str(dataset.get(keyword) or "").strip()
    if not value or len(value) > 16:
        return None
    return value if value.replace(" ", "").replace("_", "").isalnum() else None


def known_code(dataset: "Dataset", keyword: str, known: frozenset[str]) -> str | None:
    """A code of the header in capital letters, where it is one of the known ones."""
    value = " ".join((short_code(dataset, keyword) or "").upper().split())
    return value if value in known else None
