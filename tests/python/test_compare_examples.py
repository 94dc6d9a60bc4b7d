"""Runs every example of a YAML file in this package's texts, as a traffic file or as a topology."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

import holdfast
from holdfast import SimulatedNetwork, cli
from holdfast.apps.router import RouterController, compile_router
from holdfast.compare import mechanisms, results, scenario, traffic_file
from holdfast.entries_files.yaml_entries import Entries
from holdfast.topologies import yaml_file
from holdfast.topology import Topology

ROOT = Path(holdfast.__file__).parent
REPOSITORY = ROOT.parent.parent

TRAFFIC = set(traffic_file.TrafficFile.model_fields)
TOPOLOGY = set(yaml_file.KEYS)
ENTRIES = set(Entries.model_fields)

BRIEF: dict[str, float | None] = {"before_s": 0.5, "down_s": 0.5, "after_s": 0.3}


def helps(command: Any, name: str) -> Iterator[tuple[str, str]]:
    """Yield (name, help text) of a command and each of its subcommands."""
    yield f"{name} --help", "\n".join(text for text in (command.help, command.epilog) if text)
    for each in getattr(command, "commands", {}).values():
        yield from helps(each, f"{name} {each.name}")


def examples() -> Iterator[tuple[str, str]]:
    """Yield (place, text) of each example in the documentation."""
    texts = [(str(path.relative_to(REPOSITORY)), path.read_text()) for path in sorted(ROOT.rglob("*.py"))]
    folders = (REPOSITORY, REPOSITORY / "docs")
    pages = [*sorted(ROOT.rglob("*.md")), *(page for folder in folders for page in sorted(folder.glob("*.md")))]
    texts += [(str(path.relative_to(REPOSITORY)), path.read_text()) for path in pages]
    command = typer.main.get_command(cli.app)
    texts += list(helps(command, "holdfast"))
    for where, text in texts:
        for line, found in blocks(text):
            yield f"{where}:{line}", found


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of each block of YAML in Markdown or reStructuredText.

    A block ends at the fence, or where lines are no longer indented.
    """
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if not (begin := re.fullmatch(r"( *)(```|\.\. code-block:: )ya?ml", line)):
            continue
        taken = []
        for each in lines[i + 1 :]:
            if each.strip() == "```" if begin[2] == "```" else each.strip() and not each.startswith(begin[1] + " "):
                break
            taken.append(each)
        yield i + 1, textwrap.dedent("\n".join(taken)).strip() + "\n"


EXAMPLES = dict(examples())


def keys(text: str) -> set[str]:
    return set(yaml.safe_load(text))


def those_of(known: set[str]) -> list[str]:
    return [where for where, text in EXAMPLES.items() if keys(text) <= known]


def test_every_example_is_of_a_known_kind() -> None:
    assert {"python/holdfast/compare/traffic_file.py", "python/holdfast/topologies/yaml_file.py", "docs/AGENT.md"} <= {
        where.rpartition(":")[0] for where in EXAMPLES
    }
    # Clients' rights and the firewall's rules have tests of their own.
    others = {where for where in EXAMPLES if where.startswith(("docs/SECURITY.md", "python/holdfast/apps/firewall/"))}
    assert set(those_of(TRAFFIC)) | set(those_of(TOPOLOGY)) | set(those_of(ENTRIES)) | others == set(EXAMPLES)


@pytest.mark.parametrize("where", those_of(TRAFFIC))
def test_a_traffic_file_runs(where: str, tmp_path: Path) -> None:
    path = tmp_path / "traffic.yaml"
    path.write_text(EXAMPLES[where])
    given = scenario.build("ring:6", fail="s1-s2", traffic=path, when=BRIEF)
    found = results.run(given, mechanisms.find(["static", "reroute", "1+1-vector"]), [1], tmp_path / "out")
    assert sum(found.row("static", "none", 1)["sent"]) > 0
    assert all(delivered > 0 for delivered in found.row("static", "none", 1)["goodput_bytes"])


@pytest.mark.parametrize("where", those_of(TOPOLOGY))
def test_a_topology_runs(where: str, tmp_path: Path) -> None:
    """Run each example; a fragment is completed by two hosts and the switches that it names."""
    text = EXAMPLES[where]
    given: dict[str, Any] = yaml.safe_load(text)
    for included in [given["include"]] if isinstance(given.get("include"), str) else given.get("include", ()):
        (tmp_path / included).write_text("switches: [access]\n")
    path = tmp_path / "example.yaml"
    path.write_text(text)
    if "hosts" not in given:
        switches = list(given.get("switches", {"s1": None}))
        more: dict[str, Any] = {"include": "example.yaml", "hosts": ["h1", "h2"]}
        if "switches" not in given:
            (tmp_path / "switches.yaml").write_text(yaml.safe_dump({"switches": switches}))
            more["include"] = ["switches.yaml", "example.yaml"]
        more["links"] = [{"a": "h1", "b": switches[0]}, {"a": "h2", "b": switches[-1]}]
        path = tmp_path / "whole.yaml"
        path.write_text(yaml.safe_dump(more))
    elif "include" in given:
        text = text.replace("links:\n", "links:\n  - {a: s1, b: access}\n", 1)
        path.write_text(text)
    topology = Topology.from_yaml(path)
    # The router has no VLANs: its controller refuses such hosts.
    routed = all(host.vlan is None for host in topology.hosts.values())
    controllers = [RouterController(reroute=True, reaction_delay_ms=100)] if routed else []
    network = SimulatedNetwork(topology, compile_router(), controllers, seed=1)
    network.run(0.05)


@pytest.mark.parametrize("where", those_of(ENTRIES))
def test_an_entries_file_is_read(where: str) -> None:
    Entries.model_validate(yaml.safe_load(EXAMPLES[where]))


@pytest.mark.parametrize("congestion", ["newreno", "cubic", "bbr"])
def test_every_congestion_control_runs(congestion: str, tmp_path: Path) -> None:
    path = tmp_path / "traffic.yaml"
    options = f"options: {{congestion: {congestion}, window_limit_bytes: 20000}}"
    path.write_text(f"pairs: [[h1, h2]]\ntcp:\n  - {{{options}}}\n  - {{transfer_bytes: 50000, {options}}}\n")
    given = scenario.build("ring:4", fail="s1-s2", traffic=path, when=BRIEF)
    found = results.run(given, mechanisms.find(["static"]), [1], tmp_path / "out")
    row = found.row("static", "none", 1)
    assert row["goodput_bytes"][0] > 100_000
    assert row["completion_ms"][0] is not None


@pytest.mark.parametrize(
    "options",
    [
        "{delayed_ack_ms: 0}",
        "{preset: ns2-2001}",
        "{recovery: newreno-impatient, newreno_exit: ssthresh}",
        "{increase: per-byte, slow_start_limit_segments: 2}",
        "{congestion: bbr, recovery: sack-prr}",
        "{congestion: newreno, hystart: true}",
    ],
)
def test_options_that_go_together_run(options: str, tmp_path: Path) -> None:
    path = tmp_path / "traffic.yaml"
    path.write_text(f"pairs: [[h1, h2]]\ntcp: [{{transfer_bytes: 50000, options: {options}}}]\n")
    given = scenario.build("ring:4", fail="s1-s2", traffic=path, when=BRIEF)
    found = results.run(given, mechanisms.find(["static"]), [1], tmp_path / "out")
    assert found.row("static", "none", 1)["completion_ms"][0] is not None
