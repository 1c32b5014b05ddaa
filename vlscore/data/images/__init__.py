"""Radiographs from DICOM, PNG, JPEG, TIFF files and from arrays."""
