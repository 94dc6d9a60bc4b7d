"""The page of ``holdfast switch`` in a real browser, beside a running switch."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from chromium import PATIENCE_MS, ROUTER, Served, browser, serving

from holdfast import _core

pytestmark = pytest.mark.skipif(bool(_core.interfaces_ready()), reason=f"live test: {_core.interfaces_ready()}")

DEVICE_ID = 4711
FRAME = bytes.fromhex("ffffffffffff02000000000188b5") + bytes(60)


@pytest.fixture(scope="module")
def switch() -> Iterator[tuple[Served, list[_core.Namespace], list[str]]]:
    with ExitStack() as stack:
        namespaces = [stack.enter_context(_core.Namespace(f"pg{number}")) for number in (1, 2, 3)]
        outer = [namespace.add_veth("eth0") for namespace in namespaces]
        words = [word for number in (0, 1) for word in ("-i", f"{number}@{outer[number]}")]
        options = ("--grpc", "127.0.0.1:0", "--device-id", DEVICE_ID, "--web", "--metrics", "127.0.0.1:0")
        yield stack.enter_context(serving("switch", ROUTER, *words, *options)), namespaces, outer


@pytest.fixture(scope="module")
def tab(switch: tuple[Served, Any, Any]) -> Iterator[Any]:
    with browser() as chromium:
        opened = chromium.new_context().new_page()
        opened.set_default_timeout(PATIENCE_MS)
        opened.goto(switch[0].address)
        opened.wait_for_selector("canvas")
        yield opened


def test_packets_drops_and_traces_are_seen(switch: tuple[Served, list[_core.Namespace], Any], tab: Any) -> None:
    _, namespaces, _ = switch
    tab.get_by_role("button", name="Trace next packet").click()
    for _ in range(60):
        namespaces[0].send_load("eth0", [FRAME], duration_s=0.5, packets_per_s=100)
        if tab.get_by_text("dropped: ingress_drop").count():
            break
    log = tab.get_by_role("log")
    log.get_by_text("> trace next").wait_for()
    log.get_by_text("dropped: ingress_drop").wait_for()
    tab.get_by_role("row", name=re.compile("^ingress drop [1-9]")).wait_for()
    assert tab.get_by_role("row", name=re.compile(f"^0@{switch[2][0]} up")).count() == 1


def test_tables_are_shown_with_fill_and_entries(tab: Any) -> None:
    assert tab.get_by_role("row", name=re.compile(r"^RouterIngress.ipv4_lpm 0 65,536 0 %")).count() == 1
    tab.get_by_role("button", name="RouterIngress.ipv4_lpm").click()
    tab.get_by_role("log").get_by_text("> tables RouterIngress.ipv4_lpm").wait_for()
    tab.get_by_role("log").get_by_text("RouterIngress.ipv4_lpm: 0 of 65536 entries").first.wait_for()


def test_a_port_comes_and_goes_by_a_verb(switch: tuple[Served, Any, list[str]], tab: Any) -> None:
    name = switch[2][2]
    line = tab.get_by_label("verb", exact=True)
    for text, answer in ((f"port add 7@{name}", f"port 7 is {name}"), ("port remove 7", "port 7 is gone")):
        line.fill(text)
        line.press("Enter")
        tab.get_by_role("log").get_by_text(answer).first.wait_for()
        tab.get_by_role("row", name=re.compile(f"^7@{name} ")).wait_for(state="visible" if "add" in text else "hidden")
    line.fill("port remove 99")
    line.press("Enter")
    tab.get_by_role("log").get_by_text("there is no port '99'").wait_for()


def test_a_change_of_a_port_is_told(switch: tuple[Served, list[_core.Namespace], Any], tab: Any) -> None:
    switch[1][1].run(["ip", "link", "set", "eth0", "down"])
    tab.get_by_role("log").get_by_text("port 1 is down").wait_for()
    time.sleep(0.1)
    tab.get_by_role("row", name=re.compile(f"^1@{switch[2][1]} down")).wait_for()
