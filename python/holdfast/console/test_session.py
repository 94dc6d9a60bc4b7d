"""Verbs of simulated networks: what they do, say and refuse. The live ones are in ``tests/live/test_run_live.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SimulatedNetwork
from holdfast.apps.router import RouterController, compile_router
from holdfast.console import Session
from holdfast.console.grammar import forms_of
from holdfast.console.script import ScriptError, run
from holdfast.errors import ConsoleError, HoldfastError
from holdfast.topologies import load

ROUTER = Path(__file__).parents[1] / "apps/router/router.p4"


def network(seed: int = 1) -> SimulatedNetwork:
    return SimulatedNetwork(
        load("ring:3"), compile_router(), [RouterController(reroute=True, reaction_delay_ms=1)], seed=seed
    )


@pytest.fixture
def session() -> Iterator[Session]:
    with Session(network()) as session:
        yield session


def test_ping_counts_what_comes_back(session: Session) -> None:
    result = session.do("h1 ping h2 -c 5")
    assert result.ok
    assert result.values["sent"] == result.values["received"] == 5
    assert result.values["rtt"] == pytest.approx(2.046, abs=0.01)
    session.do("link h2-s2 down")
    result = session.ping("h1", "h2", count=2)
    assert not result.ok
    assert result.values["lost"] == 2
    assert "2 sent, 0 received, 2 lost" in result.text


def test_pingall_names_who_does_not_answer(session: Session) -> None:
    assert session.do("pingall").values == {"pairs": 6, "lost": 0}
    session.do("link h2-s2 down")
    result = session.do("pingall")
    assert result.values["lost"] == 4
    assert result.text.splitlines() == ["h1  -- h3", "h2  -- --", "h3  h1 --", "6 pairs, 4 without an answer"]
    session.do("link h2-s2 up")
    assert session.do("pingall").ok


def test_iperf_by_tcp_and_udp(session: Session) -> None:
    result = session.do("iperf h1 h2 500ms")
    assert 5e6 < result.values["goodput"] < 1e9
    result = session.do("iperf h1 h2 udp 2.4Mbps 500ms")
    assert result.values["sent"] == 125
    assert result.values["lost"] == 0
    assert result.values["goodput"] == pytest.approx(2.4e6, rel=0.02)
    session.do("link h2-s2 down")
    assert session.do("iperf h1 h2 udp 2.4Mbps 100ms").values["lost"] == 25
    with pytest.raises(ConsoleError, match=r"^no TCP connection from h1 to h2"):
        session.do("iperf h1 h2 100ms")


def test_a_silent_link_loses_and_reports_nothing(session: Session) -> None:
    session.do("link s1-s2 silent")
    assert not session.do("h1 ping h2").ok
    assert re.search(r"s1-s2 .* up ", session.do("links").text)
    session.do("link s1-s2 up")
    assert session.do("h1 ping h2").ok


def test_a_link_changes_while_the_network_runs(session: Session) -> None:
    session.do("link s1-s2 delay 11ms")
    assert session.do("h1 ping h2").values["rtt"] == pytest.approx(22.046, abs=0.01)
    session.do("link s1-s2 rate 1Mbps")
    assert session.do("iperf h1 h2 udp 2Mbps 1s").values["goodput"] < 1.1e6
    session.do("wait 1s")
    session.do("link s1-s2 loss 50%")
    assert 10 < session.do("h1 ping h2 -c 40").values["lost"] < 39
    session.do("link s1-s2 loss 0")
    assert session.do("h1 ping h2").ok


def test_frames_are_sent_and_seen(session: Session) -> None:
    mac = session.topology.port_mac("s1", 3).hex(" ")
    frame = f"{mac} 020000000001 0800 4500001c000000004011 63d0 0a000101 0a000201 00010002 0008 0000"
    assert session.do(f"h1 send {frame}").values["bytes"] == 42
    result = session.do("h2 sniff")
    assert result.values["frames"] == 1
    assert "42 bytes" in result.text
    assert not session.do("h2 sniff 10ms").ok, "it has been shown"
    built = session.do('h1 send Ether(dst="ff:ff:ff:ff:ff:ff")/IP(dst="10.0.2.1")/UDP(dport=9)/b"x"')
    assert built.values["bytes"] == 43


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("h1 send 00", "a frame has 14 to 9018 bytes, and this one 1"),
        ("h1 send __import__('os')", "Scapy does not take"),
        ("h1 send Ether(", "Scapy does not take"),
        ("h1 send 5", "Scapy does not take '5': it is no packet"),
        ("h1 ping h1", "h1 does not ping itself over the network"),
        ("h1 ping h7", "there is no host 'h7' (known: h1, h2, h3)"),
        ("h1 ping h2 -c 0", "'0' is no number from 1 to 1000000"),
        ("pingal", "there is no verb or host 'pingal'; did you mean 'pingall'?"),
        ("link s1-s9 down", "there is no link 's1-s9'; did you mean"),
        ("link s1-s2", "link s1-s2: 'up', 'down', 'silent', 'loss', 'delay' or 'rate' is missing"),
        ("link s1-s2 loss 200%", "200% is more than 100%"),
        ("switch s1 table", "switch s1: unknown word 'table'; did you mean 'tables' or 'trace'?"),
        ("switch s1 tables ipv4", "there is no table 'ipv4'"),
        ("wait 3 parsecs", "wait 3: nothing follows, and there is 'parsecs'"),
        ("wait parsecs", "'parsecs' is not a time, such as 5ms"),
        ("mechanism frr", "there is no mechanism 'frr'; did you mean 'ip-frr'?"),
        ("h1 png h2", "there is no verb 'png'; did you mean 'ping'?"),
        ("h1 bash", "'HOST COMMAND...' is a verb of live networks (--live)"),
        ("reload nowhere.p4", "there is no file 'nowhere.p4'"),
        ("capture s1-s2 /nowhere/x.pcap", "there is no directory for '/nowhere/x.pcap'"),
        ("source nowhere.txt", "there is no file 'nowhere.txt'"),
        ("expect lost 0", "the last verb has no number 'lost', and no other"),
        ("expect it", "write 'expect VERB... ok'"),
        ("expect pingal ok", "there is no verb or host 'pingal'; did you mean 'pingall'?"),
        ("expect pingal fails", "there is no verb or host 'pingal'; did you mean 'pingall'?"),
        ("help me", "there is no verb 'me'"),
    ],
)
def test_what_is_refused(session: Session, line: str, error: str) -> None:
    with pytest.raises(HoldfastError) as raised:
        session.do(line)
    assert str(raised.value).startswith(error)


def test_expectations(session: Session) -> None:
    session.do("expect h1 ping h2 ok")
    session.do("h1 ping h2")
    for met in ("lost 0", "lost == 0", "rtt < 3ms", "rtt > 0.1", "sent >= 3", "text 'rtt min'"):
        session.do(f"expect {met}")
    with pytest.raises(ConsoleError, match="expected lost > 0, and lost is 0"):
        session.do("expect lost > 0")
    for number in ("nan", "1_0", "\u0661", "many"):
        with pytest.raises(ConsoleError, match="is no number, as 0, 5Mbps, 10ms and 1% are"):
            session.do(f"expect lost < {number}")
    with pytest.raises(ConsoleError, match="expected the text 'parrot'"):
        session.do("expect text parrot")
    with pytest.raises(ConsoleError, match="expected 'h1 ping h2' to fail, and it went well: 'h1 -> h2"):
        session.do("expect h1 ping h2 fails")
    session.do("link h2-s2 down")
    session.do("expect h1 ping h2 fails")
    session.do("expect iperf h1 h2 100ms fails")
    with pytest.raises(ConsoleError, match="expected 'h1 ping h2' to go well, and it failed"):
        session.do("expect h1 ping h2 ok")


def test_a_script_ends_at_its_first_mistake_with_file_and_line(session: Session, tmp_path: Path) -> None:
    inner = tmp_path / "inner.txt"
    inner.write_text("h1 ping h2\nexpect lost 5\n")
    outer = tmp_path / "outer.txt"
    outer.write_text(f"# comment\n\nnodes\nsource {inner}\nquit\n")
    with pytest.raises(ScriptError) as raised:
        run(session, outer)
    assert str(raised.value) == f"{outer}:4: {inner}:2: expected lost 5, and lost is 0"
    assert not session.ended
    outer.write_text("quit\nnonsense\n")
    run(session, outer)
    assert session.ended


def test_a_file_that_sources_itself_ends(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "again.txt"
    file.write_text(f"source {file}\n")
    with pytest.raises(ScriptError, match=r"files within files, more than 20 deep$"):
        session.do(f"source {file}")


def test_the_same_seed_gives_the_same_words(tmp_path: Path) -> None:
    lines = [
        "link s1-s2 silent",
        "h1 ping h2",
        "link s1-s2 up",
        "pingall",
        "iperf h1 h3 200ms",
        "links",
        "switch s1 ports",
    ]
    said = []
    for _ in range(2):
        with Session(network(seed=7)) as session:
            said.append([session.do(line).text for line in lines])
    assert said[0] == said[1]


def test_tables_counters_drops_and_ports(session: Session) -> None:
    session.do("h1 ping h2")
    result = session.do("switch s1 tables ipv4_lpm")
    assert result.values["entries"] == 3
    assert re.search(
        r"hdr.ipv4.dst_addr=10.0.2.0/24 -> RouterIngress.forward\(port=1, src_mac=02:01:00:01:00:01, .*\)  3 packets",
        result.text,
    )
    assert "otherwise  RouterIngress.drop()" in result.text
    assert "10.0.1.0/24" in session.do("switch s1 tables").text
    assert session.do("switch s1 counters").text == "nothing was counted"
    assert session.do("switch s1 drops").text == "no packets were dropped"
    session.do("h1 send Ether()/IP(dst='10.9.9.9')/UDP()")
    session.wait(0.1)
    assert session.do("switch s1 drops").values["drops"] == 1
    ports = session.do("switch s1 ports").text
    assert re.search(r"^3 +up +h1 +4 +3 ", ports, re.MULTILINE), ports
    assert "controller" in ports


def test_a_trace_of_a_packet(session: Session) -> None:
    result = session.do("switch s1 trace h1 ping h2 -c 1")
    assert result.values["packets"] == 1
    assert "ipv4_lpm" in result.text
    assert session.last.ok
    assert session.do("h1 ping h2").ok, "it goes on without traces"
    assert not session.do("switch s2 trace next 100ms").ok
    sent = "switch s1 trace h1 send 02 00 00 00 00 02 02 00 00 00 00 01 88 b5 68 69"
    assert "received 16 bytes at port" in session.do(sent).text, "the verb is over before the packet arrives"
    with pytest.raises(ConsoleError, match="there is no verb or host 'nothing'"):
        session.do("switch s1 trace nothing")


def test_commands_of_simple_switch_cli(session: Session) -> None:
    """Check that commands read and write, that groups are known from one to the next, and that what is refused is an error."""
    before = session.do("switch s1 tables").values["entries"]
    assert "table_add" in session.do("switch s1 cli help").text
    assert session.do("switch s1 cli show_ports").text.startswith("port")
    session.do("switch s1 cli mc_mgrp_create 77")
    assert "handle" in session.do("switch s1 cli mc_node_create 0 1 2").text
    assert "77" in session.do("switch s1 cli mc_dump").text
    for refused in ("nonsense", "table_clear nothing", "mc_mgrp_create 77", "register_read"):
        with pytest.raises(HoldfastError):
            session.do(f"switch s1 cli {refused}")
    assert session.do("switch s1 tables").values["entries"] == before


def test_a_trace_changes_nothing() -> None:
    """Check that a packet that is traced in the middle of bursts leaves as it would have without, and so do the others."""
    said = []
    for front in ("", "switch s1 trace "):
        with Session(network()) as session:
            session.do(f"{front}iperf h1 h2 udp 800Mbps 20ms")
            session.do(f"{front}iperf h1 h3 50ms")
            said.append(
                [session.do(line).text for line in ("links", "switch s1 ports", "switch s1 tables", "switch s2 ports")]
            )
    assert said[0] == said[1]


def test_a_program_is_reloaded_and_entries_stay(session: Session, tmp_path: Path) -> None:
    assert session.do(f"reload {ROUTER}").values == {"kept": 9, "lost": 0}
    assert session.do("h1 ping h2").ok
    changed = tmp_path / "changed.p4"
    changed.write_text(ROUTER.read_text().replace("ipv4_lpm", "v4_routes"))
    for file in ROUTER.parent.parent.glob("*.p4"):
        (tmp_path / file.name).write_text(file.read_text())
    source = changed.read_text().replace('"../', f'"{ROUTER.parent.parent}/')
    changed.write_text(source)
    result = session.do(f"reload {changed}")
    assert result.values["lost"] == 3
    assert "s1: 3 of 3 lost: RouterIngress.ipv4_lpm" in result.text
    assert not session.do("h1 ping h2").ok
    broken = tmp_path / "broken.p4"
    broken.write_text("header h {")
    with pytest.raises(ConsoleError, match="error"):
        session.do(f"reload {broken}")


@pytest.mark.parametrize("name", ["reroute", "ip-frr"])
def test_a_mechanism_is_told_of_links_that_are_down(session: Session, name: str) -> None:
    """Its controller learns of a failure before its start as of one after it."""
    session.do("link s1-s2 down")
    session.do("wait 10ms")
    session.do(f"mechanism {name}")
    session.do("wait 1s")
    assert session.ping("h1", "h2", count=3).values["lost"] == 0


@pytest.mark.parametrize("name", ["static", "ip-frr", "mpls-local", "1+1-vector"])
def test_a_mechanism_takes_over_while_traffic_runs(session: Session, name: str) -> None:
    session.do("link s1-s2 down")
    assert session.do(f"mechanism {name}").text.startswith(f"{name}: ")
    assert session.do("links").text.count("down") == 1
    assert session.do("h1 ping h3").ok
    session.do("link s1-s2 up")
    session.do("wait 1s")
    assert session.do("pingall").ok
    session.do("mechanism reroute")
    session.do("link s1-s2 down")
    session.do("wait 1s")
    assert session.do("pingall").ok


def test_a_capture_has_the_packets(tmp_path: Path) -> None:
    from holdfast._core import read_pcap

    file = tmp_path / "link.pcap"
    with Session(network()) as session:
        session.do(f"capture s1-s2 {file}")
        session.do("h1 ping h2")
        session.do("wait 10ms")
    assert len(read_pcap(file)) == 6


def test_paced_time_is_that_of_the_clock() -> None:
    import time

    with Session(network(), paced=True) as session:
        began_s = time.monotonic()
        session.do("wait 500ms")
        assert time.monotonic() - began_s >= 0.45
        assert session.do("h1 ping h2 -c 2").values["received"] == 2
        session.do("link s1-s2 down")
        session.do("wait 100ms")
        assert session.do("pingall").ok, "the router has found the other way"


def test_help_lists_every_verb_of_the_clock(session: Session) -> None:
    text = session.do("help").text
    assert "pingall" in text
    assert "COMMAND..." not in text
    assert session.do("help pingall").text.startswith("pingall\n    Ping from each host to each other.\n    Show ")
    for verb in session.verbs:
        assert all(len(line) <= 80 for line in session.do(f"help {verb}").text.splitlines())


def test_the_readmes_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (Path(__file__).parent / "README.md").read_text(), re.DOTALL)
    exec(program, {})
    assert "2 sent, 2 received, 0 lost" in capsys.readouterr().out


def test_the_readmes_verbs_are_there() -> None:
    table = (Path(__file__).parent / "README.md").read_text().partition("## Verbs")[2].partition("## In Python")[0]
    names = {form.verb for form in forms_of(Session)} - {"command"}
    assert not [name for name in names if name not in table]
