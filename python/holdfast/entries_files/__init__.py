"""Entries of tables in files, as people have them: :func:`load` returns what one switch is to hold.

Three formats are told apart by their content:

- JSON with ``table_entries``, the ``sX-runtime.json`` of p4lang's tutorials (:mod:`.runtime_json`)
- commands of ``simple_switch_CLI``, one in a line (:mod:`.commands`)
- YAML with ``tables``, ``multicast_groups``, ``clone_sessions`` and ``registers`` (:mod:`.yaml_entries`)

Each names tables, actions and fields as P4Info does, or by any ending of the name that is unique. A mistake is a sentence with the
file and the line or the place in it. Before anything is returned, a switch of its own has taken all of it, so a device with this
program takes it, too.
"""

from __future__ import annotations

import warnings
from pathlib import Path

from holdfast._core import Program
from holdfast.control.desired import Desired, Writer
from holdfast.entries_files import commands, runtime_json, yaml_entries
from holdfast.entries_files.draft import Draft
from holdfast.errors import EntriesError, EntriesWarning
from holdfast.p4runtime.client import LocalClient
from holdfast.p4runtime.device import Device
from holdfast.regular_files import MOST_TEXT_BYTES, read_regular

_SEARCHED = 1 << 16
"""The number of bytes at the beginning of a file by which its format is recognised."""


def load(path: Path | str, program: Program) -> Desired:
    """Return the entries and other objects that a file describes, for a switch with this program.

    Raises :class:`holdfast.errors.EntriesError`. What a file says beyond that is left out, with one
    :class:`holdfast.errors.EntriesWarning`.
    """
    path = Path(path)
    content = read_regular(path, MOST_TEXT_BYTES, EntriesError)
    draft = Draft(path, program)
    begin = content[:_SEARCHED].lstrip(b"\xef\xbb\xbf \t\r\n")
    if path.suffix.lower() == ".json" or (begin.startswith(b"{") and path.suffix.lower() not in (".yaml", ".yml")):
        runtime_json.read(draft, content)
    elif commands.are_in(begin) and path.suffix.lower() not in (".yaml", ".yml"):
        commands.read(draft, content)
    else:
        yaml_entries.read(draft)
    desired = draft.checked()
    if remark := draft.left_out.sentence(path):
        warnings.warn(remark, EntriesWarning, stacklevel=2)
    return desired


def install(entries: Desired, device: Device) -> None:
    """Write entries into a device that has none yet, as a client with the lowest election id, which disconnects afterwards."""
    client = LocalClient(device)
    try:
        Writer(client).write(entries)
    finally:
        client.close()


__all__ = ["install", "load"]
