"""Traffic matrices as CSV: both forms, and what is wrong in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.compare import scenario, traffic_csv
from holdfast.errors import ScenarioError
from holdfast.topologies import load


def demands(tmp_path: Path, text: str, topology: str = "ring:4") -> dict[tuple[str, str], tuple[float, int]]:
    """Return (rate of IPv4 packets in bit/s, bytes of payload) by source and destination."""
    (tmp_path / "matrix.csv").write_text(text)
    found = traffic_csv.read(tmp_path / "matrix.csv", load(topology))
    return {
        (str(each.source), str(each.destination)): (
            each.packets_per_s * 8 * (each.payload_bytes + 28),
            each.payload_bytes,
        )
        for each in found.udp
    }


def test_a_line_for_each_demand(tmp_path: Path) -> None:
    text = "source,destination,rate,payload_bytes\nh1,h3,2Mbps,\n\nh2,h4,1e6,500\nh3,h1,0,\nh4,s1,10 kbit/s,100\n"
    assert demands(tmp_path, text) == {
        ("h1", "h3"): (pytest.approx(2e6), 1000),
        ("h2", "h4"): (pytest.approx(1e6), 500),
        ("h4", "h1"): (pytest.approx(1e4), 100),
    }


def test_a_square(tmp_path: Path) -> None:
    text = "\ufefffrom,h1,s2,h3\nh1,7,1Mbps,\nh2,2000000,,0\ns3,0,3Mbps,9\n"
    assert demands(tmp_path, text) == {
        ("h1", "h2"): (pytest.approx(1e6), 1000),
        ("h2", "h1"): (pytest.approx(2e6), 1000),
        ("h3", "h2"): (pytest.approx(3e6), 1000),
    }


def test_a_scenario_has_the_demands(tmp_path: Path) -> None:
    (tmp_path / "matrix.csv").write_text("source,destination,rate\nh1,h3,822400\n")
    found = scenario.build("ring:4", fail="s1-s2", traffic=tmp_path / "matrix.csv")
    assert found.own_traffic and found.traffic.udp[0].packets_per_s == 100
    again = scenario.read(str(found.write(tmp_path / "runs")))
    assert again.traffic == found.traffic


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ": there are no demands: a line of headings"),
        ("source,destination,rate\n", ": there are no demands: a line of headings"),
        ("source,destination,rate\nh1,h2,0\n", ": there are no demands: all rates are zero"),
        ("source,destination\nh1,h2\n", ":1: there is no column 'rate'; the columns are source, destination, rate"),
        ("source,destination,rate,rate\nh1,h2,1,1\n", ":1: column 'rate' is there twice"),
        ("source,destination,rates\nh1,h2,1\n", ":1: unknown column 'rates'; did you mean 'rate'?"),
        ("source,destination,rate\nh1,h9,1\n", ":2: unknown node 'h9'"),
        ("source,destination,rate\nh1,h2\n", ":2: 2 cells; the first line has 3"),
        ("source,destination,rate\nh1,h2,fast\n", ":2: 'fast' is not a rate, such as 10Mbps"),
        ("source,destination,rate\nh1,h2,-5\n", ":2: -5 is no rate"),
        ("source,destination,rate\nh1,h2,nan\n", ":2: nan is no rate"),
        ("source,destination,rate\nh1,h1,1000\n", ":2: source and destination are both 'h1'"),
        ("source,destination,rate,payload_bytes\nh1,h2,1000,few\n", ":2: payload_bytes: 'few' is no whole number"),
        ("source,destination,rate,payload_bytes\nh1,h2,1000,-28\n", ":2: payload_bytes: Input should be greater"),
        ("source,destination,rate\nh1,h2,1Tbps\n", ":2: packets_per_s: Input should be less than or equal to 1000000"),
        ("from,h1,h7\nh1,1,1\n", ":1: unknown node 'h7'"),
        ('source,destination,rate\n"h1,h2,5\n', ":2: "),
    ],
)
def test_a_mistake_is_one_sentence_with_the_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        demands(tmp_path, text)
    said = str(caught.value)
    assert said.startswith(f"{tmp_path / 'matrix.csv'}{message}") and "\n" not in said, said


def test_a_switch_with_several_hosts_is_not_one(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r":2: switch 's1' has 2 hosts; name a host"):
        demands(tmp_path, "source,destination,rate\ns1,s2,1\n", "star:3,hosts=2")
