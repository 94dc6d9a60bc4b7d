"""How MPLS and GMPLS recovery changes TCP's goodput: the study of Develder et al. (2001), which was done with ns-2."""

from __future__ import annotations

from holdfast.experiments import Experiment

EXPERIMENT = Experiment(
    name="gmpls_tcp_2001",
    title="Influence of GMPLS recovery mechanisms on TCP performance",
    reference="C. Develder, D. Colle, S. De Maesschalck, M. Pickavet, P. Demeester, Ghent University - IMEC, 2001",
    seeds=150,
)
