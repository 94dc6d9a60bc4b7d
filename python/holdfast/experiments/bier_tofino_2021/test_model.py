"""The formulas, against the paper's numbers, their own definitions, and the slips that are said of the paper."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.experiments.bier_tofino_2021 import model, published


@given(next_hops=st.integers(1, 64), ports=st.integers(1, 64))
def test_what_is_carried_fills_the_ports_or_is_everything(next_hops: int, ports: int) -> None:
    share = model.carried(next_hops, ports)
    if ports >= next_hops - 1:
        assert share == 1
    else:
        assert 0 < share < 1
        assert sum(share**m for m in range(1, next_hops)) == pytest.approx(ports, rel=1e-12)


def test_table_2_is_that_of_the_roots_but_for_two_numbers() -> None:
    """15.74 and 53.14 are powers of roots that were rounded to two digits."""
    rounded = {}
    for keys, column, paper in published.TABLE_2.entries():
        if column != "model_gbps":
            continue
        exact = model.throughput_gbps(keys["next_hops"], keys["next_hops"], keys["ports"])
        if abs(exact - paper) > 0.05:
            rounded[paper] = exact
    assert rounded == {15.74: pytest.approx(16.071, abs=5e-4), 53.14: pytest.approx(53.250, abs=5e-4)}
    assert round(model.carried(4, 1), 4) == 0.5437
    assert round(model.carried(4, 2), 4) == 0.8105
    # Cut off after two decimals.
    assert int(100 * 100 * 0.54**3) / 100 == 15.74
    assert int(100 * 100 * 0.81**3) / 100 == 53.14


@given(
    recirculations=st.fractions(0, 8, max_denominator=1000),
    ratio=st.fractions(1, 8, max_denominator=10),
)
def test_the_rule_gives_the_most_ports_whose_recirculation_fits(recirculations: Fraction, ratio: Fraction) -> None:
    ports, needed = model.provision(recirculations, ratio)
    load = ports * recirculations / ratio
    assert load <= needed < load + 1
    assert ports + needed <= model.PORTS + 1
    assert ports == model.PORTS or (ports + 1) + (ports + 1) * recirculations / ratio > model.PORTS + 1


def test_what_the_text_says_of_figure_17_is_the_rule_but_for_six_next_hops() -> None:
    different = []
    for keys, _, paper in published.FIGURE_17.entries():
        multicast = Fraction(str(keys["multicast_percent"])) / 100
        recirculations = model.recirculations(multicast, keys["next_hops"])
        _, needed = model.provision(recirculations, Fraction(published.UTILISATION_RATIO))
        if model.physical(needed) != paper:
            different.append((keys["multicast_percent"], keys["next_hops"], model.physical(needed)))
    assert different == [(2.5, 6, 0)]
    assert model.PORTS * model.recirculations(Fraction(1, 40), 6) / 4 == 1


def test_half_of_the_ports_and_one_less_at_three_and_three() -> None:
    assert model.provision(Fraction(3), Fraction(3)) == (16, 16)
    assert model.physical(16) == 15


@pytest.mark.parametrize(("passes", "times"), [(1, 1.0), (6, 5.985), (10, 9.955)])
def test_loss_of_several_passes(passes: int, times: float) -> None:
    assert model.loss_after(passes, 0.001) / 0.001 == pytest.approx(times, abs=5e-4)
