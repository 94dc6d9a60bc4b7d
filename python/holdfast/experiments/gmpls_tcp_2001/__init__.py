"""TCP's goodput during MPLS and GMPLS recovery: the study of Develder et al. (2001), which used ns-2."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.experiments import Experiment, Finding, Part, PublishedTable, Setting
from holdfast.experiments.gmpls_tcp_2001 import (
    beyond,
    conclusions,
    fit,
    longer_path,
    mechanisms,
    merge,
    published,
    statements,
    switch_back,
    table8,
    timing,
)

_SHARED = len(timing.SHARED)
_LONGER = len(longer_path.POINTS)
_BACK = len(switch_back.POINTS)
_CASES = len(mechanisms.POINTS)
_FIT = sum(len(fit.points(table, fit.CANDIDATES)) for table in fit.POINTS)


def _table(table: PublishedTable, find: Callable[[Setting], Finding], points: int) -> Part:
    return Part(table.name, table.place, table.title, find, points, table)


EXPERIMENT = Experiment(
    name="gmpls_tcp_2001",
    title="Influence of GMPLS recovery mechanisms on TCP performance",
    reference="C. Develder, D. Colle, S. De Maesschalck, M. Pickavet, P. Demeester, Ghent University - IMEC, 2001",
    seeds=published.SEEDS,
    parts=(
        _table(published.TABLE_3, timing.table3, _SHARED),
        Part("fig7", "Fig. 7, section 5.2", "goodput of switched and fixed flows over time", timing.fig7, _SHARED),
        Part("fig8", "Fig. 8, section 5.2", "goodput relative to delta = 0, as histograms", timing.fig8, _SHARED),
        Part(
            "low_access",
            "text of section 5.2",
            "goodput with a switching delay against none, access links of 60 %",
            timing.low_access,
            len(timing.LOW_ACCESS),
        ),
        _table(published.OPTICAL_TIMING, timing.optical, len(timing.OPTICAL)),
        _table(published.TABLE_4, longer_path.table4, _LONGER),
        _table(published.TABLE_5, longer_path.table5, _LONGER),
        Part("fig10", "Fig. 10, section 6.2", "goodput over time, delta = 5 ms", longer_path.fig10, _LONGER),
        Part(
            "fig11", "Fig. 11, section 6.2", "goodput relative to d = 1 ms, as histograms", longer_path.fig11, _LONGER
        ),
        Part("fig12", "Fig. 12, section 6.2", "goodput over time, for every delta", longer_path.fig12, _LONGER),
        Part("fig13", "Fig. 13, section 6.2", "which d is best, for every delta", longer_path.fig13, _LONGER),
        Part("fig14", "Fig. 14, section 6.2", "goodput for every d and delta", longer_path.fig14, _LONGER),
        _table(published.TABLE_6, switch_back.table6, _BACK),
        Part("fig15", "Fig. 15, section 7.2", "which strategy is best after the repair", switch_back.fig15, _BACK),
        Part(
            "fig16", "Fig. 16, section 7.2", "optical relative to electrical, as histograms", switch_back.fig16, _BACK
        ),
        Part("merge", "section 7.1", "packets lost behind the merge point, electrical", merge.find, len(merge.POINTS)),
        _table(published.TABLE_8, table8.find, len(table8.POINTS)),
        Part("fig18", "Fig. 18, section 8.2", "goodput over time with every mechanism", mechanisms.fig18, _CASES),
        Part("fig19", "Fig. 19, section 8", "goodput after the failure and the repair", mechanisms.fig19, _CASES),
        Part(
            "conclusions",
            "sections 5 to 9",
            "the paper's conclusions, with what these runs say of each",
            conclusions.find,
            _SHARED + len(timing.OPTICAL) + _LONGER + _BACK + len(merge.POINTS) + _CASES,
        ),
        Part(
            "statements",
            "sections 5 to 8",
            "what the paper says in words, each with a verdict",
            statements.find,
            _SHARED
            + len(timing.LOW_ACCESS)
            + len(timing.OPTICAL)
            + _LONGER
            + _BACK
            + len(merge.POINTS)
            + _CASES
            + statements.POINT_COUNT,
        ),
        Part(
            "conclusions_faster",
            "ours",
            f"the case study's conclusions at {conclusions.FASTER_MBPS:g} Mb/s",
            conclusions.find_faster,
            len(conclusions.FASTER_POINTS),
        ),
        *(
            Part(f"beyond_{name}", "ours", title, find, len(beyond.points(points, tcps)))
            for name, title, find, points, tcps in (
                ("table3", "Table 3 with other TCPs", beyond.table3, beyond.TABLE_3_POINTS, None),
                ("table5", "Tables 4 and 5 with other TCPs", beyond.table5, beyond.TABLE_5_POINTS, None),
                ("table6", "Table 6 with other TCPs", beyond.table6, beyond.TABLE_6_POINTS, None),
                ("fig19", "Fig. 19 with 1+1 protection", beyond.fig19, beyond.CASE_POINTS, beyond.CASE_TCPS),
            )
        ),
        Part("fit", "ours", "which choice of what the paper leaves open is nearest to Tables 3 and 5", fit.find, _FIT),
    ),
)
