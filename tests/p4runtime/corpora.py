"""Compiles collections of P4 programs and loads each into a device: what compiles, loads.

Of every program that should compile, the P4Info's binary form, read through the official stubs, is the text form; a device takes it
by SetForwardingPipelineConfig, gives the same config back, and answers a read of all entities. As a command it prints a table::

    python tests/p4runtime/corpora.py [--reasons] [-D MACRO=VALUE] [NAME=]DIRECTORY...

A program is a file that instantiates the main package of v1model or PSA, itself or in a file that it includes, and that no
other file includes. It should compile if no directory of its path is one for programs with errors, or for what another compiler
printed. Included files are looked for beside it, in the directories above it, and in any ``include`` directory of the collection.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from holdfast import _core
from holdfast.p4runtime import Device, LocalClient, P4InfoIndex
from holdfast.p4runtime.p4info import parse_text
from holdfast.p4runtime.stubs import Proto, p4info_pb2
from holdfast.p4runtime.stubs import p4runtime_pb2 as p4

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_MAIN = re.compile(r"\b(?:V1Switch|PSA_Switch)\s*(?:<[^;]*>)?\s*\([^;]*\)\s*main\s*;", re.DOTALL)

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]+)[>"]', re.MULTILINE)

_EVERYTHING = (
    "table_entry",
    "counter_entry",
    "direct_counter_entry",
    "meter_entry",
    "direct_meter_entry",
    "action_profile_member",
    "action_profile_group",
    "register_entry",
    "value_set_entry",
    "digest_entry",
)
"""The kinds of entities that a client may read without naming an object."""


@dataclass
class Outcome:
    """What became of one program; ``reason`` names the first step that failed."""

    path: Path
    should_compile: bool
    compiles: bool = False
    equal: bool = False
    taken: bool = False
    reason: str = ""
    warnings: list[str] = field(default_factory=list)


def instantiates_main(text: str) -> bool:
    """Return True if P4 source instantiates the main package of v1model or PSA."""
    return _MAIN.search(_COMMENT.sub(" ", text)) is not None


def programs_of(root: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the main programs below a directory in order, each as (path, True if it should compile)."""
    texts = {path: path.read_text(errors="replace") for path in sorted(root.rglob("*.p4")) if path.is_file()}
    parts: set[Path] = set()
    included = {path: set(_included(path, text, root)) for path, text in texts.items()}
    for path, files in included.items():
        parts |= files - {path}
    for path in texts:
        if path not in parts and instantiates_main("\n".join(_whole(path, included))):
            above = path.relative_to(root).parts[:-1]
            yield path, not any("error" in part or part == "reject" or part.endswith("outputs") for part in above)


def _included(path: Path, text: str, root: Path) -> Iterator[Path]:
    """Yield the files of the collection that a file includes directly."""
    above = [parent for parent in path.parents if parent == root or root in parent.parents]
    for name in _INCLUDE.findall(text):
        found = (Path(os.path.normpath(directory / name)) for directory in above)
        yield from [file for file in found if file.is_file()][:1]


def _whole(path: Path, included: Mapping[Path, set[Path]]) -> Iterator[str]:
    """Yield the text of a file, and the texts of all files that it includes, directly or not."""
    seen, left = set(), [path]
    while left:
        if (file := left.pop()) not in seen:
            seen.add(file)
            yield file.read_text(errors="replace")
            left += included.get(file, ())


def include_directories(root: Path) -> list[Path]:
    """Return the directories in which the programs of a collection may look for included files."""
    found = [path for path in root.rglob("*") if path.is_dir() and path.name in ("include", "includes")]
    return sorted({directory for path in found for directory in (path, path.parent)})


def examine(
    path: Path,
    root: Path,
    includes: Sequence[Path],
    should_compile: bool = True,
    defines: Mapping[str, str] = MappingProxyType({}),
) -> Outcome:
    """Compile one program, load it into a new device, and return the outcome."""
    outcome = Outcome(path, should_compile)
    # Not the directory itself: a program may have the name of an architecture that it includes.
    above = [parent for parent in path.parent.parents if parent == root or root in parent.parents]
    try:
        directories = [str(directory) for directory in (*above, *includes)]
        program = _core.Program.compile(str(path), include_dirs=directories, defines=dict(defines))
    except _core.HoldfastError as e:
        lines = str(e).strip().splitlines()
        outcome.reason = "compile: " + next((line for line in lines if line.startswith("error")), lines[0])
        return outcome
    outcome.compiles = True
    outcome.warnings = [warning.message for warning in program.warnings]
    try:
        outcome.reason = check_loads(program, outcome)
    except _core.HoldfastError as e:
        outcome.reason = f"device: {e}"
    return outcome


def check_loads(program: _core.Program, outcome: Outcome) -> str:
    """Return the first contradiction between a program's P4Info and a device, or an empty text.

    Raises the device's error if it refuses the program.
    """
    text = parse_text(program.p4info)
    binary = p4info_pb2.P4Info.FromString(program.p4info_message)
    if text != binary or binary.SerializeToString(deterministic=True) != text.SerializeToString(deterministic=True):
        return "P4Info: binary form and text form differ"
    outcome.equal = True
    P4InfoIndex(binary)
    client = LocalClient(Device(1, _core.Switch(program, executor="interpreter"), executor="interpreter"))
    client.set_pipeline(program)
    config = client.pipeline_config()
    if config is None or config.p4info != binary or config.p4_device_config != program.artifact():
        return "device: the config that it gives back is another one"
    request = p4.ReadRequest(device_id=1)
    for kind in _EVERYTHING:
        getattr(request.entities.add(), kind).SetInParent()
    default = request.entities.add().table_entry
    default.is_default_action = True
    count_entities(client, request)
    outcome.taken = True
    return ""


def count_entities(client: LocalClient, request: Proto) -> int:
    """Return the number of entities that a Read request returns."""
    return sum(len(response.entities) for response in client._call_read(request))


def sweep(root: Path, defines: Mapping[str, str] = MappingProxyType({})) -> Iterator[Outcome]:
    """Yield the outcome of every main program below a directory."""
    includes = include_directories(root)
    for path, should_compile in programs_of(root):
        yield examine(path, root, includes, should_compile, defines)


def row(name: str, outcomes: Sequence[Outcome]) -> str:
    """Return a collection's line of the table, in Markdown."""
    wanted = [outcome for outcome in outcomes if outcome.should_compile]
    compiled = [outcome for outcome in wanted if outcome.compiles]
    numbers = (
        len(outcomes),
        len(wanted),
        len(compiled),
        sum(outcome.equal for outcome in compiled),
        sum(outcome.taken for outcome in compiled),
    )
    return f"| {name} | {' | '.join(map(str, numbers))} |"


def main() -> None:
    """Print the table of the directories that are given, and with ``--reasons`` a line per failure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--reasons", action="store_true", help="print the failures and warnings of each program")
    parser.add_argument("-D", dest="defines", action="append", default=[], metavar="MACRO=VALUE", help="define a macro")
    parser.add_argument("collections", nargs="+", metavar="[NAME=]DIRECTORY")
    options = parser.parse_args()
    print(
        "| collection | programs | should compile | compile | P4Info equal | device takes |\n|---|---|---|---|---|---|"
    )
    failed = False
    for given in options.collections:
        name, _, directory = given.rpartition("=")
        root = Path(directory)
        outcomes = list(sweep(root, {macro: value for macro, _, value in (d.partition("=") for d in options.defines)}))
        print(row(name or root.name, outcomes), flush=True)
        wrong = [o for o in outcomes if (o.should_compile or o.compiles) and o.reason]
        failed |= any(o.compiles for o in wrong)
        if options.reasons:
            for outcome in wrong:
                print(f"    {outcome.path.relative_to(root)}: {outcome.reason}")
            warnings = Counter(re.sub(r"'[^']*'", "'...'", w) for o in outcomes for w in o.warnings)
            for warning, count in warnings.most_common():
                print(f"    {count} warnings: {warning}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
