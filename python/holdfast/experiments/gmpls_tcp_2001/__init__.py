"""How MPLS and GMPLS recovery changes TCP's goodput: the study of Develder et al. (2001), which was done with ns-2."""

from __future__ import annotations

from holdfast.experiments import Experiment, Part
from holdfast.experiments.gmpls_tcp_2001 import published, table8

EXPERIMENT = Experiment(
    name="gmpls_tcp_2001",
    title="Influence of GMPLS recovery mechanisms on TCP performance",
    reference="C. Develder, D. Colle, S. De Maesschalck, M. Pickavet, P. Demeester, Ghent University - IMEC, 2001",
    seeds=published.SEEDS,
    parts=(
        Part(
            "table8",
            published.TABLE_8.place,
            published.TABLE_8.title,
            table8.find,
            len(table8.POINTS),
            published.TABLE_8,
        ),
    ),
)
