"""Image-aware evaluation of generated chest X-ray reports."""

from vlscore._version import __version__

__all__ = ["__version__"]
