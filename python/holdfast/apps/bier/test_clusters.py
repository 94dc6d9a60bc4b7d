"""Clusters: a switch's samples of BitStrings, the clusters learnt from them, and the group that a BitString takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.apps.bier import program
from holdfast.apps.bier.clusters import learn, sample
from holdfast.apps.bier.conftest import (
    BIFT,
    EAST,
    PLAN,
    SOUTH,
    WEST,
    Bfr,
    Compile,
    bier_frame,
    header,
    neighbour,
    payload,
    sent_frame,
)
from holdfast.apps.bier.entries import bift_groups, cluster_configuration
from holdfast.apps.bier.program import compile_bier
from holdfast.errors import NetworkError
from holdfast.p4runtime import DigestList

GROUP = program.BIFT_GROUPS.start
WEST_AND_EAST, ALL = frozenset({0, 1}), frozenset({0, 1, 2})


def clustered(bfr: Bfr, *clusters: frozenset[int]) -> Bfr:
    return bfr.write(cluster_configuration(PLAN, {(BIFT, 0): clusters}))


def counts(bfr: Bfr) -> tuple[dict[int, int], int]:
    """Return how many packets used each cluster's group, by group, and how many BitStrings had no cluster."""
    hits = {}
    for entry in bfr.client.read_table(program.CLUSTER_TABLE):
        count = bfr.client.direct_counter(program.CLUSTER_TABLE, entry.match, entry.priority)
        hits[int(entry.params["multicast_group"])] = count[0]
    return hits, bfr.client.counter(program.CLUSTER_MISSES, 0)[0]


@pytest.mark.parametrize("misses", ["one-pass", "recirculate"])
def test_a_cluster_is_a_smaller_group(compiled: Compile, misses: str, executor: str) -> None:
    bfr = clustered(Bfr(compiled("clusters", cluster_misses=misses), executor=executor), WEST_AND_EAST, frozenset({2}))
    west_and_east = [
        sent_frame(header(0b10, ttl=19), payload(), WEST),
        sent_frame(header(0b1000, ttl=19), payload(), EAST),
    ]
    assert bfr.send(bier_frame(header(0b1010), payload())) == west_and_east
    south = [sent_frame(header(0b10000, ttl=19), payload(), SOUTH)]
    assert bfr.send(bier_frame(header(0b10000), payload())) == south
    assert "egress_drop" not in bfr.switch.drops(), "no copy is made in vain"
    assert counts(bfr) == ({0x3000: 1, 0x3001: 1}, 0)
    assert bfr.send(bier_frame(header(0b11010), payload())) == sorted(west_and_east + south)
    assert counts(bfr)[1] == (2 if misses == "recirculate" else 1)


def test_a_bit_string_takes_the_smallest_cluster(compiled: Compile) -> None:
    bfr = clustered(Bfr(compiled("clusters")), ALL, WEST_AND_EAST, frozenset({0}))
    for bits in (0b10, 0b1010, 0b11010, 0b10010):
        bfr.send(bier_frame(header(bits), payload()))
    assert counts(bfr) == ({0x3000: 1, 0x3001: 1, 0x3002: 2}, 0)


def test_while_a_port_is_down_clusters_are_not_used(compiled: Compile) -> None:
    bfr = clustered(Bfr(compiled("clusters")), WEST_AND_EAST).down(WEST)
    assert bfr.send(bier_frame(header(0b1010), payload())) == [sent_frame(header(0b1000, ttl=19), payload(), EAST)]
    assert (counts(bfr), bfr.counted()) == (({0x3000: 0}, 0), {"no_backup": 1})


def sampling(one_in: int) -> Bfr:
    """Return a switch that samples one packet in ``one_in`` and sends the samples as digests."""
    bfr = Bfr(compile_bier("clusters", defines={"CLUSTER_SAMPLING": str(one_in)}))
    (digest,) = bfr.client.p4info.digests
    bfr.client.enable_digest(digest.name)
    return bfr


def sampled(bfr: Bfr, bits: int) -> list[tuple[int, int]]:
    """Send one packet with this BitString, and return its samples as (group, BitString)."""
    bfr.send(bier_frame(header(bits), payload()))
    bfr.client._device.collect_digests(0)
    found: list[tuple[int, int]] = []
    while (event := bfr.client.poll()) is not None:
        if isinstance(event, DigestList):
            found += [sample(values) for values in event.values if isinstance(values, dict)]
    return found


def test_samples_are_learnt() -> None:
    bfr = sampling(1)
    samples = [found for bits in (0b1010, 0b1100, 0b10000, 0b11010) for found in sampled(bfr, bits)]
    assert samples == [(GROUP, 0b1010), (GROUP, 0b1100), (GROUP, 0b10000), (GROUP, 0b11010)]
    assert learn(PLAN, samples) == {(BIFT, 0): [WEST_AND_EAST, frozenset({2})]}
    assert learn(PLAN, samples, limit=1) == {(BIFT, 0): [WEST_AND_EAST]}


def test_one_of_many_is_a_sample() -> None:
    bfr = sampling(4)
    assert 50 < sum(len(sampled(bfr, 0b10)) for _ in range(400)) < 170


def test_samples_of_each_bucket_are_its_own() -> None:
    bucket = PLAN.bifts[BIFT][0]
    plan = replace(PLAN, bifts={BIFT: (bucket, (neighbour(EAST, 0b1110), neighbour(SOUTH, 0b10000)))})
    first, second = bift_groups(plan)[BIFT]
    samples = [(first, 0b10), (second, 0b10), (second, 0b100), (second + 1, 0b10), (second, 0b10010)]
    assert learn(plan, samples) == {(BIFT, 1): [frozenset({0})], (BIFT, 0): [frozenset({0})]}


@pytest.mark.parametrize("limit", [0, 0x1001])
def test_a_limit_that_no_switch_has(limit: int) -> None:
    with pytest.raises(NetworkError, match="clusters"):
        learn(PLAN, [], limit=limit)
