"""Clusters of neighbours, learnt from BitStrings that a switch has sampled (``-D REPLICATION=CLUSTERS``). Pure functions.

The configuration of a cluster in a switch is in :func:`holdfast.apps.bier.entries.cluster_configuration`. It does not know when to
learn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from holdfast.apps.bier import program
from holdfast.apps.bier.entries import bift_groups
from holdfast.apps.bier.planning import Bift, NeighbourEntry, SwitchPlan
from holdfast.errors import NetworkError


def sample(values: Mapping[str, object]) -> tuple[int, int]:
    """Return (group of neighbours, BitString) from the values of a digest."""
    group, bit_string = (int(str(value)) for value in values.values())
    return group, bit_string


def neighbours_of(bucket: Sequence[NeighbourEntry], bit_string: int) -> frozenset[int]:
    """Return the positions in ``bucket`` of the neighbours whose F-BM has a bit in common with ``bit_string``."""
    return frozenset(position for position, entry in enumerate(bucket) if entry.f_bm & bit_string)


def learn(
    plan: SwitchPlan, samples: Iterable[tuple[int, int]], *, limit: int = 64
) -> dict[tuple[Bift, int], list[frozenset[int]]]:
    """Return the sets of neighbours that most samples need, by BIFT and ECMP bucket; at most ``limit`` sets in all.

    A sample is a group of neighbours and a BitString. A set of all neighbours of its bucket is left out, as the bucket has a group
    of its own. Samples of groups that are not in the plan any more are ignored. Raise :class:`NetworkError` if ``limit`` is not
    positive or is more than there are groups.
    """
    if not 1 <= limit <= len(program.CLUSTER_GROUPS):
        raise NetworkError(f"a switch has 1 to {len(program.CLUSTER_GROUPS)} clusters, not {limit}")
    places = dict(_places(bift_groups(plan)))
    counts: Counter[tuple[Bift, int, frozenset[int]]] = Counter()
    for group, bit_string in samples:
        if group in places:
            bift, number = places[group]
            bucket = plan.bifts[bift][number]
            members = neighbours_of(bucket, bit_string)
            if 0 < len(members) < len(bucket):
                counts[bift, number, members] += 1
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0][0], item[0][1], sorted(item[0][2])))
    learnt: dict[tuple[Bift, int], list[frozenset[int]]] = {}
    for (bift, number, members), _ in ranked[:limit]:
        learnt.setdefault((bift, number), []).append(members)
    return learnt


def _places(groups: Mapping[Bift, range]) -> Iterator[tuple[int, tuple[Bift, int]]]:
    for bift, numbers in groups.items():
        for bucket, group in enumerate(numbers):
            yield group, (bift, bucket)
