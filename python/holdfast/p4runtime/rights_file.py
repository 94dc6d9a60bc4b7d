"""Clients' rights as they are written, in YAML. Beside :mod:`.rights`, since what reads YAML takes long to import."""

from __future__ import annotations

from pathlib import Path

from pydantic import ConfigDict, Field

from holdfast import yaml_model
from holdfast.p4runtime.rights import ClientRights, Rights
from holdfast.parameters import Checked

MOST_BYTES = 1 << 20
"""The largest file of rights: it describes thousands of clients, and is read in a second or two."""


class _Client(Checked):
    model_config = ConfigDict(strict=True)

    certificate: str = Field(min_length=1)
    devices: list[int] | None = None
    read: bool = False
    roles: list[str] = []
    pipeline: bool = False

    def rights(self) -> ClientRights:
        devices = None if self.devices is None else tuple(self.devices)
        return ClientRights(self.certificate, devices, self.read, tuple(self.roles), self.pipeline)


class _File(Checked):
    model_config = ConfigDict(strict=True)

    clients: list[_Client]


def read(path: Path) -> Rights:
    """Read clients' rights from a YAML file. Raises :class:`holdfast.errors.ScenarioError` with the mistake in the file."""
    return Rights(tuple(client.rights() for client in yaml_model.read(path, _File, MOST_BYTES).clients))
