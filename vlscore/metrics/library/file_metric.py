"""Base of metrics whose network runs from files on this machine; nothing is downloaded."""

import os
from pathlib import Path
from typing import Any

from vlscore.errors import MissingDependency, WeightsNotFound
from vlscore.metrics.metric import READ_BY_MODEL, Metric, parameter


class FileMetric(Metric):
    """Base of metrics that run a network from files on this machine."""

    cost = "model"
    library = "vlscore"
    normalisation = READ_BY_MODEL

    def files(self) -> tuple[Path, ...]:
        """Return weights and vocabulary, or folders; raise MissingDependency or WeightsNotFound."""
        raise NotImplementedError

    def present_files(self) -> tuple[Path, ...]:
        """Return the same as `files`, but raise MissingDependency for any absent file."""
        try:
            return self.files()
        except WeightsNotFound as error:
            raise MissingDependency(str(error)) from None

    def missing(self) -> str | None:
        try:
            self.present_files()
        except MissingDependency as error:
            return str(error)
        return None

    def path_of(self, name: str, variable: str, what: str) -> Path:
        """Return the path in a parameter, else in the environment variable.

        Raises: MissingDependency if neither is set; the message names both.
        """
        path = self.settings[name] or os.environ.get(variable)
        if not path:
            raise MissingDependency(
                f"it needs {what} on this machine: write {self.name}({name}=PATH), or set "
                f"{variable}"
            )
        return Path(str(path)).expanduser()


def path_parameter(description: str) -> Any:
    """Return a parameter that is a path."""
    return parameter(None, description, kind=str)
