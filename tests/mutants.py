#!/usr/bin/env python3
"""Counts how many small faults in a module its tests find: ``python tests/mutants.py MODULE.py [TESTS ...] [--sample N]``.

cosmic-ray (``pip install cosmic-ray``) makes the faults, one in each mutant: an operator, a number, a condition, a loop, a handler.
Places are drawn with a seed, and one mutant of each place. The tests, by default those of the module's folder, run in a copy
of the tree; a mutant that all of them pass has survived, and is shown. Status 1 if there are more than ``--survivors``.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

Place = tuple[int, int]
"""A line, from 1, and a column, from 0."""

PATIENCE_S = 60
"""A mutant may take this longer than ten times as long as the tests take without a fault; then it hangs, which is found."""


def annotated(tree: ast.Module) -> list[tuple[Place, Place]]:
    """Return begin and end of all annotations, which do nothing when the program runs."""
    found: list[ast.expr | None] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(node.returns)
        elif isinstance(node, ast.arg | ast.AnnAssign):
            found.append(node.annotation)
    return [((n.lineno, n.col_offset), (n.end_lineno or 0, n.end_col_offset or 0)) for n in found if n is not None]


def operators() -> dict[str, Any]:
    """Return cosmic-ray's operators by name, but for those that need arguments, or whose mutants do the same for most values."""
    from cosmic_ray.plugins import get_operator, operator_names

    kinds = {name.partition("/")[2]: get_operator(name) for name in operator_names()}
    return {
        name: kind()
        for name, kind in sorted(kinds.items())
        if not kind.arguments() and not name.endswith(("_Is", "_IsNot", "NoOp"))
    }


def places(source: str) -> dict[Place, list[tuple[str, int]]]:
    """Return for each place of a module where it can be changed the operators that can, each with its number of places before."""
    from cosmic_ray.ast import ast_nodes, get_ast

    passed_over, nodes = annotated(ast.parse(source)), list(ast_nodes(get_ast(source)))
    found: dict[Place, list[tuple[str, int]]] = {}
    for name, operator in operators().items():
        begins = [begin for node in nodes for begin, _ in operator.mutation_positions(node)]
        for number, place in enumerate(begins):
            if not any(begin <= place < end for begin, end in passed_over):
                found.setdefault(place, []).append((name, number))
    return found


def sample(source: str, count: int, seed: int) -> Iterator[tuple[Place, str, str]]:
    """Yield (place, operator, text) of mutants at ``count`` places that the seed draws, or at all if there are fewer."""
    from cosmic_ray.mutating import mutate_code

    drawn, found = random.Random(seed), places(source)
    for place in drawn.sample(sorted(found), min(count, len(found))):
        name, number = drawn.choice(found[place])
        yield place, name, mutate_code(source, operators()[name], number)


def copied(folder: Path) -> Path:
    """Copy the tree, as it is in the working directory, and the built core into ``folder``; return the copy."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True, check=True, text=True).stdout
    cores = [str(core.relative_to(ROOT)) for core in (ROOT / "python/holdfast").glob("_core.*.so")]
    for name in [*listed.split("\0")[:-1], *cores]:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def passes(tree: Path, tests: list[str], patience_s: float) -> tuple[bool, str]:
    """Run tests in a copy of the tree until the first that fails; return True if all pass, and the last line that was said."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--no-header",
        "--failed-first",
        "--hypothesis-seed=1",
        *tests,
    ]
    environment = os.environ | {"PYTHONPATH": str(tree / "python"), "PYTHONDONTWRITEBYTECODE": "1"}
    with subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
    ) as process:
        try:
            said = process.communicate(timeout=patience_s)[0].strip().splitlines()
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return False, "it hangs"
    failed = [line for line in said if line.startswith(("FAILED", "ERROR"))]
    return process.returncode == 0, (failed or said or [""])[-1][:150]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("module", type=Path)
    parser.add_argument("tests", nargs="*", help="what pytest gets; default: the tests in the module's folder")
    parser.add_argument("--sample", type=int, default=20, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--survivors", type=int, default=0, metavar="N", help="the most that are not a failure")
    given = parser.parse_args()
    module = given.module.resolve().relative_to(ROOT)
    tests = given.tests or [str(module.parent)]
    source = (ROOT / module).read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        tree = copied(Path(folder))
        began_s = time.monotonic()
        passed, said = passes(tree, tests, 3600)
        if not passed:
            print(f"the tests fail without a mutant: {said}")
            return 2
        patience_s = PATIENCE_S + 10 * (time.monotonic() - began_s)
        survivors, count = 0, 0
        for (line, column), what, text in sample(source, given.sample, given.seed):
            (tree / module).write_text(text, encoding="utf-8")
            survived, said = passes(tree, tests, patience_s)
            count, survivors = count + 1, survivors + survived
            print(f"{module}:{line}:{column}: {what}: {'SURVIVES' if survived else said}", flush=True)
            if survived:
                changed = difflib.unified_diff(source.splitlines(), text.splitlines(), lineterm="", n=0)
                print(
                    "\n".join("    " + each for each in changed if each[:1] in "+-" and each[:3] not in ("+++", "---"))
                )
    print(f"{module}: {count - survivors} of {count} mutants found (seed {given.seed})")
    return int(survivors > given.survivors)


if __name__ == "__main__":
    sys.exit(main())
