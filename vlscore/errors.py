"""The tree of errors that a user can catch, by `except VLScoreError` or one by one.

What a user can cause (files, tables, names, settings) ends in one of these; a sub-package may
subclass one. A message names the file or row, says what was found there, and says what to do.
Slips that only code can make (an argument of a wrong type) raise Python's own TypeError or
ValueError.
"""

from typing import NamedTuple


class VLScoreError(Exception):
    """Base of all errors raised by vlscore."""


class UnreadableImage(VLScoreError):
    """An image file or array cannot be used as a radiograph."""


class InvalidReport(VLScoreError):
    """A report text cannot be used: it is not text, or the section asked for is absent."""


class InvalidStudy(VLScoreError):
    """A study or a row of a table is incomplete or malformed."""


class InvalidTable(VLScoreError):
    """A table of studies or reports cannot be read at all."""


class UnknownName(VLScoreError):
    """A name (encoder, metric, similarity, perturbation kind, policy) is not registered."""


class InvalidLexicon(VLScoreError):
    """A lexicon file is missing, is not TOML, or has an entry that cannot be used."""


class InvalidSetting(VLScoreError):
    """An option or policy has a value that cannot be honoured."""


class WeightsNotFound(VLScoreError):
    """The checkpoint of an encoder is not where it was looked for."""


class ChecksumMismatch(VLScoreError):
    """A file's content is not what its manifest or index states."""


class UnsafeCheckpoint(VLScoreError):
    """A checkpoint would run code, or lies about its content; it was not loaded."""


class IncompatibleCheckpoint(VLScoreError):
    """A checkpoint was read safely but does not fit the encoder: keys or shapes differ."""


class BrokenContract(VLScoreError):
    """An encoder, or a kind of perturbation, does not keep what every one of them promises."""


class InvalidIndex(VLScoreError):
    """A search index is damaged, or was made with another encoder."""


class TrainingDiverged(VLScoreError):
    """A loss or gradient is not finite; the message names the studies of its batch."""


class FolderInUse(VLScoreError):
    """Another run is writing the output folder."""


class OutputFailed(VLScoreError):
    """Results cannot be written: the disk is full, the folder is read-only, or the like."""


class MissingDependency(VLScoreError, ImportError):
    """An optional library is absent; the message names the extra that brings it."""


class SlowPrecisionWarning(UserWarning):
    """The precision asked for is slower than fp32 on this machine, which has no units for it."""


class DemonstrationEncoderWarning(UserWarning):
    """The bundled encoder, trained on synthetic phantoms, is about to score."""


class ImageNoteWarning(UserWarning):
    """A file contradicts itself or describes a turned picture, and how it was read was a choice."""


class Failure(NamedTuple):
    """One row that failed, and why.

    Attributes:
        row: number of the row in its table, None where it has none; of a comparison, the system.
        id: of the study; empty where the row has none.
        reason: one sentence.
    """

    row: int | str | None
    id: str
    reason: str
