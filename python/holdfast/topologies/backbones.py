"""Two backbones that are common in the literature, from their published facts. Switches have the names of their cities."""

from __future__ import annotations

from holdfast.errors import TopologyError
from holdfast.topologies.hosts import add_host_at
from holdfast.topology import Position, Topology, great_circle_km, propagation_delay_ms

T1_BPS = 1_544_000
OC_192_BPS = 192 * 51_840_000

NSFNET_SITES: dict[str, Position] = {
    "Seattle": (-122.33, 47.61),
    "Palo_Alto": (-122.14, 37.44),
    "San_Diego": (-117.16, 32.72),
    "Salt_Lake_City": (-111.89, 40.76),
    "Boulder": (-105.27, 40.01),
    "Houston": (-95.36, 29.76),
    "Lincoln": (-96.68, 40.81),
    "Champaign": (-88.24, 40.12),
    "Pittsburgh": (-80.00, 40.44),
    "Atlanta": (-84.39, 33.75),
    "Ann_Arbor": (-83.74, 42.28),
    "Ithaca": (-76.50, 42.44),
    "College_Park": (-76.94, 38.99),
    "Princeton": (-74.66, 40.35),
}
"""In the order in which the literature numbers them (WA, CA1, CA2, UT, CO, TX, NE, IL, PA, GA, MI, NY, MD, NJ)."""

NSFNET_LINKS_KM: dict[tuple[str, str], int] = {
    ("Seattle", "Palo_Alto"): 1100,
    ("Seattle", "San_Diego"): 1600,
    ("Seattle", "Champaign"): 2800,
    ("Palo_Alto", "San_Diego"): 600,
    ("Palo_Alto", "Salt_Lake_City"): 1000,
    ("San_Diego", "Houston"): 2000,
    ("Salt_Lake_City", "Boulder"): 600,
    ("Salt_Lake_City", "Ann_Arbor"): 2400,
    ("Boulder", "Houston"): 1100,
    ("Boulder", "Lincoln"): 800,
    ("Houston", "Atlanta"): 1200,
    ("Houston", "College_Park"): 2000,
    ("Lincoln", "Champaign"): 700,
    ("Champaign", "Pittsburgh"): 700,
    ("Pittsburgh", "Atlanta"): 900,
    ("Pittsburgh", "Ithaca"): 500,
    ("Pittsburgh", "Princeton"): 500,
    ("Ann_Arbor", "Ithaca"): 800,
    ("Ann_Arbor", "Princeton"): 800,
    ("Ithaca", "College_Park"): 300,
    ("College_Park", "Princeton"): 300,
}

ABILENE_SITES: dict[str, Position] = {
    "Seattle": (-122.33, 47.61),
    "Sunnyvale": (-122.04, 37.37),
    "Los_Angeles": (-118.24, 34.05),
    "Denver": (-104.98, 39.74),
    "Kansas_City": (-94.63, 39.11),
    "Houston": (-95.36, 29.76),
    "Chicago": (-87.65, 41.85),
    "Indianapolis": (-86.16, 39.77),
    "Atlanta": (-84.39, 33.75),
    "Washington": (-77.04, 38.90),
    "New_York": (-74.01, 40.71),
}

ABILENE_LINKS: tuple[tuple[str, str], ...] = (
    ("Seattle", "Sunnyvale"),
    ("Seattle", "Denver"),
    ("Sunnyvale", "Los_Angeles"),
    ("Sunnyvale", "Denver"),
    ("Los_Angeles", "Houston"),
    ("Denver", "Kansas_City"),
    ("Kansas_City", "Houston"),
    ("Kansas_City", "Indianapolis"),
    ("Houston", "Atlanta"),
    ("Indianapolis", "Chicago"),
    ("Indianapolis", "Atlanta"),
    ("Chicago", "New_York"),
    ("Atlanta", "Washington"),
    ("Washington", "New_York"),
)


def nsfnet(*, hosts: int = 1, rate_bps: int = T1_BPS) -> Topology:
    """Build NSFNET's T1 backbone after its extension of 1991: 14 sites, 21 links of 1.544 Mb/s.

    Links and their lengths in kilometres are the ones that the literature on optical networks has used since Mukherjee, Banerjee,
    Ramamurthy and Mukherjee, "Some principles for designing a wide-area WDM optical network" (IEEE/ACM Transactions on
    Networking 4(5), 1996). They are round numbers: most are within a tenth of the way as the crow flies, Boulder-Houston is a
    quarter below. Coordinates of the cities are for drawing only.
    """
    topology = _with_sites("nsfnet", NSFNET_SITES)
    for (a, b), distance_km in NSFNET_LINKS_KM.items():
        topology.add_link(a, b, rate_bps=rate_bps, delay_ms=propagation_delay_ms(distance_km))
    return _with_hosts(topology, hosts, rate_bps)


def abilene(*, hosts: int = 1, rate_bps: int = OC_192_BPS) -> Topology:
    """Build Internet2's Abilene backbone as of 2005: 11 sites, 14 links, all of them OC-192c (9.953 Gb/s on the line).

    Sites and links are those of Internet2's own information sheet of February 2005 ("Abilene Network", 200502-IS-AN), which the
    Internet Topology Zoo (Knight et al., JSAC 29(9), 2011) has as well. The delays are ours: great circles between the cities at
    two thirds of the speed of light.
    """
    topology = _with_sites("abilene", ABILENE_SITES)
    for a, b in ABILENE_LINKS:
        distance_km = great_circle_km(ABILENE_SITES[a], ABILENE_SITES[b])
        topology.add_link(a, b, rate_bps=rate_bps, delay_ms=propagation_delay_ms(distance_km))
    return _with_hosts(topology, hosts, rate_bps)


def _with_sites(name: str, sites: dict[str, Position]) -> Topology:
    topology = Topology(name)
    for site, position in sites.items():
        topology.add_switch(site, position=position)
    return topology


def _with_hosts(topology: Topology, hosts: int, rate_bps: int) -> Topology:
    if hosts < 0:
        raise TopologyError(f"hosts is {hosts}; it must be at least 0")
    for site in list(topology.switches):
        for _ in range(hosts):
            add_host_at(topology, site, rate_bps=rate_bps)
    return topology
