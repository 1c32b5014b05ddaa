"""Synthetic chest radiographs and reports with exactly known errors."""

from vlscore.phantom.errors import ErrorCounts, corrupt, count_errors, pair_errors
from vlscore.phantom.grammar import sentence_for, write_report
from vlscore.phantom.render import render
from vlscore.phantom.scene import (
    KINDS,
    Acquisition,
    Kind,
    PhantomFinding,
    Scene,
    sample_finding,
    sample_scene,
)
from vlscore.phantom.significance import split_errors

__all__ = [
    "KINDS",
    "Acquisition",
    "ErrorCounts",
    "Kind",
    "PhantomFinding",
    "Scene",
    "corrupt",
    "count_errors",
    "pair_errors",
    "render",
    "sample_finding",
    "sample_scene",
    "sentence_for",
    "split_errors",
    "write_report",
]
