"""Base of metrics whose network runs from files on this machine; nothing is downloaded.

The files are named in a parameter, or in an environment variable, or are where
`vlscore weights fetch` puts them.
"""

import os
from pathlib import Path
from typing import Any

from vlscore.encoders import find_network, network_cards, networks_named
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

    def path_of(self, name: str, variable: str, network: str) -> Path:
        """Return the path of a network's file or folder.

        It is what the parameter `name` says, else the environment variable: a path, or the name of
        a network that `vlscore weights fetch` downloads; else where that command puts `network`.

        Raises: MissingDependency if it is not there; the message says how to get it.
        """
        given = self.settings[name] or os.environ.get(variable) or network
        if given != network:
            return network_path(str(given))
        try:
            return find_network(network)
        except WeightsNotFound:
            # A metric of several networks has one command for all of them.
            wanted = self.name if len(networks_named(self.name)) > 1 else network
            raise MissingDependency(
                f"it needs {network_cards()[network].title}: `vlscore weights fetch {wanted}` "
                f"downloads it; or write {self.name}({name}=PATH), or set {variable}"
            ) from None


def network_path(given: str) -> Path:
    """Return a path as it is, and the path of a network that is named, such as radgraph-xl.

    A file or folder with the network's name comes first.

    Raises: WeightsNotFound if the named network is not on this machine.
    """
    path = Path(given).expanduser()
    card = network_cards().get(given)
    if path.exists() or card is None:
        return path
    try:
        return find_network(given)
    except WeightsNotFound:
        raise WeightsNotFound(
            f"it needs {card.title}: `vlscore weights fetch {given}` downloads it"
        ) from None


def path_parameter(description: str) -> Any:
    """Return a parameter that is a path."""
    return parameter(None, description, kind=str)
