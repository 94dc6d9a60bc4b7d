"""The firewall's test: packets that are injected with addresses of others, and a host that is let in by an entry."""

from __future__ import annotations

import polars as pl

from holdfast.experiments import Finding, Part, Setting
from holdfast.experiments.p4_thesis_2021 import firewall_runs, published
from holdfast.experiments.rows import exact, row


def numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row per kind of packets, firewall and IP version: the percentage of packets delivered.

    All seeds give the same, so only the first one's runs are used. The quantity is ``delivered_percent`` for the thesis's firewall
    with IPv4; for others its name has the variant and the IP version, as in ``delivered_percent_routed_ipv6``.
    """
    rows = []
    for run in frame.filter(seed=frame["seed"][0]).iter_rows(named=True):
        own = (run["variant"], run["family"]) == ("bindings", "ipv4")
        quantity = "delivered_percent" if own else f"delivered_percent_{run['variant']}_{run['family']}"
        rows.append(row({"packets": run["packets"]}, quantity, exact(run["delivered_percent"])))
    return pl.DataFrame(rows)


def find(setting: Setting) -> Finding:
    """Return the finding of the firewall's test: the percentage of packets delivered, for every kind of packet and firewall.

    It does not depend on the seed.
    """
    frame = setting.one_run().sweep("firewall", f"{firewall_runs.__name__}:measure", firewall_runs.POINTS)
    return Finding(numbers(frame), frames={"runs": frame})


PARTS = (
    Part(
        "firewall",
        published.FIREWALL.place,
        published.FIREWALL.title,
        find,
        len(firewall_runs.POINTS),
        published.FIREWALL,
    ),
)
