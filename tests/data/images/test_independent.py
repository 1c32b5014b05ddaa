"""Every real file that comes with pydicom, read a second time without the code of this project.

The second reading takes the frames from the file's bytes, compressed ones from GDCM, and computes
grey levels pixel by pixel from the formulas of PS3.3 C.11. Files for which the two readings differ
are listed with the reason.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydicom import Dataset, dcmread
from pydicom.data import get_testdata_files

from vlscore.data import ImagePolicy, read_image
from vlscore.errors import UnreadableImage

_GDCM = """
import sys, gdcm
reader = gdcm.ImageReader()
reader.SetFileName(sys.argv[1])
if not reader.Read():
    sys.exit(1)
text = reader.GetImage().GetBuffer()
sys.stdout.buffer.write(text.encode("utf-8", errors="surrogateescape"))
"""
POLICY = ImagePolicy(other_modalities="accept", frame=0)
NATIVE = ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2")

# Files with a picture that this project does not read, and why.
REFUSED = {
    # Made for pydicom's tests: the head of its codestream was overwritten.
    "JPEG2000-embedded-sequence-delimiter.dcm": "picture is damaged",
    "MR_truncated.dcm": "pixel data is truncated: it has 8130 bytes",
    # Its number of frames is "1A".
    "badVR.dcm": "no Number of Frames (0028,0008), or none that can be read",
}


def files() -> list[Path]:
    return sorted({Path(name) for name in get_testdata_files("*.dcm")})


def stored(dataset: Dataset, path: Path) -> np.ndarray | None:
    """The stored values of the first frame; None where this second reading has no way."""
    rows, columns = dataset.Rows, dataset.Columns
    syntax = dataset.file_meta.get("TransferSyntaxUID", NATIVE[0])
    if dataset.SamplesPerPixel != 1 or dataset.PhotometricInterpretation == "PALETTE COLOR":
        return None
    size = dataset.BitsAllocated // 8
    if size not in (1, 2, 4):
        return None
    kind = f"{'i' if dataset.PixelRepresentation else 'u'}{size}"
    if syntax in NATIVE:
        order = ">" if syntax == NATIVE[2] else "<"
        found = np.frombuffer(dataset.PixelData, f"{order}{kind}", rows * columns)
        found = found.reshape(rows, columns).astype(kind)
    else:
        # In a process of its own: GDCM ends it on some damaged files.
        run = subprocess.run([sys.executable, "-c", _GDCM, str(path)], capture_output=True)
        if run.returncode or len(run.stdout) < rows * columns * size:
            return None
        found = np.frombuffer(run.stdout, f"<{kind}", rows * columns).reshape(rows, columns)
    # Bits above the picture are overlays of old files; the highest one of the picture is the sign.
    spare = 8 * size - dataset.BitsStored
    moved = np.left_shift(found, spare - (dataset.HighBit + 1 - dataset.BitsStored))
    return np.right_shift(moved, spare)


def number(dataset: Dataset, keyword: str) -> float | None:
    value = dataset.get(keyword)
    if value is None or value == "":
        return None
    return float(value) if isinstance(value, int | float | str) else float(value[0])


def grey(dataset: Dataset, values: np.ndarray) -> np.ndarray:
    """Grey levels in [0, 1] from stored values, by the formulas of PS3.3 C.11.1 and C.11.2."""
    wide = values.astype(np.float64)
    padding = number(dataset, "PixelPaddingValue")
    shown = np.ones(wide.shape, bool) if padding is None else wide != padding
    if sequence := dataset.get("ModalityLUTSequence"):
        _, first, _ = sequence[0].LUTDescriptor
        table = entries(sequence[0])
        wide = table[np.clip(wide - first, 0, len(table) - 1).astype(int)].astype(float)
    elif number(dataset, "RescaleSlope") is not None:
        wide = wide * float(dataset.RescaleSlope) + float(dataset.RescaleIntercept)
    center, width = number(dataset, "WindowCenter"), number(dataset, "WindowWidth")
    if sequence := dataset.get("VOILUTSequence"):
        _, first, bits = sequence[0].LUTDescriptor
        table = entries(sequence[0])
        out = table[np.clip(wide - first, 0, len(table) - 1).astype(int)] / (2.0**bits - 1)
    elif center is not None and width is not None and width >= 1:
        low, high = center - 0.5 - (width - 1) / 2, center - 0.5 + (width - 1) / 2
        out = (wide > center - 0.5) * 1.0 if width == 1 else (wide - low) / (high - low)
        out = np.clip(out, 0, 1)
    else:
        out = np.full(wide.shape, np.nan)
    if np.isnan(out).any() or np.ptp(out[shown]) == 0:
        low, high = wide[shown].min(), wide[shown].max()
        if dataset.BitsStored <= 8 and np.isnan(out).any():
            slope, offset = number(dataset, "RescaleSlope") or 1, 0.0
            offset = number(dataset, "RescaleIntercept") or 0.0
            low, high = offset, 255 * slope + offset
        out = np.clip((wide - low) / (high - low), 0, 1)
    if dataset.PhotometricInterpretation == "MONOCHROME1":
        out = 1 - out
    return np.where(shown, out, 0)


def entries(item: Dataset) -> np.ndarray:
    data: Any = item.LUTData
    return np.frombuffer(data, "<u2") if isinstance(data, bytes) else np.array(data)


def has_picture(dataset: Dataset) -> bool:
    needed = ("PixelData", "Rows", "Columns", "BitsStored", "PhotometricInterpretation")
    return all(keyword in dataset for keyword in needed)


@pytest.mark.filterwarnings("ignore")
def test_two_independent_readings_of_every_real_file_agree() -> None:
    agree, differ, refused, beyond = [], {}, {}, []
    for path in files():
        try:
            dataset = dcmread(path, force=True)
        except Exception:
            continue  # made so that not even pydicom reads it
        if not has_picture(dataset) or dataset.get("NumberOfFrames", 1) is None:
            continue
        try:
            seen = read_image(path, POLICY).pixels
        except UnreadableImage as error:
            refused[path.name] = str(error)
            continue
        values = stored(dataset, path)
        if values is None:
            beyond.append(path.name)
            continue
        distance = float(np.abs(grey(dataset, values) - seen).max())
        if distance > 1e-5:
            differ[path.name] = distance
        else:
            agree.append(path.name)
    assert not differ
    assert set(refused) == set(REFUSED)
    for name, reason in REFUSED.items():
        assert reason in refused[name]
    assert len(agree) >= 20
    # Colours are read in test_dicom.py, and by dcmtk in benchmarks/picture_kinds.py.
    coloured = ("SC_", "examples_", "GDCMJ2K", "ExplVR_BigEnd", "liver", "rtdose")
    assert all(name.startswith(coloured) for name in beyond)
