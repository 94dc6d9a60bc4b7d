"""The page of ``holdfast run`` in a real browser: what is pressed happens in the network, and what happens there is seen."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chromium import PATIENCE_MS, Served, browser, network, serving

SIZES = ((1280, 800), (390, 844))
SCHEMES = ("light", "dark")

LAST = """
(chart) => {
    const data = getElement(chart).chart.getOption().series[0].data;
    return data.length ? data[data.length - 1][1] : null;
}
"""
"""What the end of a chart's first curve shows."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, chromium: Any) -> Iterator[Served]:
    script = tmp_path_factory.mktemp("page") / "script.txt"
    script.write_text("mechanism reroute\n")
    with serving(*network(script=script)) as found:
        yield found


class Page:
    """A tab, with the words of the page."""

    def __init__(self, chromium: Any, address: str, size: tuple[int, int] = SIZES[0], scheme: str = "light") -> None:
        width, height = size
        self.context = chromium.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.context.set_default_timeout(PATIENCE_MS)
        self.tab = self.context.new_page()
        self.problems: list[str] = []
        self.asked: list[str] = []
        self.tab.on("pageerror", lambda error: self.problems.append(str(error)))
        self.tab.on("console", lambda told: self.problems.append(told.text) if told.type == "error" else None)
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.answer = self.tab.goto(address)
        self.tab.wait_for_selector("canvas")

    def press(self, name: str) -> None:
        self.tab.get_by_role("button", name=name, exact=True).click()

    def choose(self, field: str, value: str) -> None:
        self.tab.get_by_label(field, exact=True).click()
        self.tab.get_by_role("option", name=value, exact=True).click()
        self.tab.get_by_role("listbox").wait_for(state="detached")

    def waits_for_text(self, text: str) -> None:
        self.tab.get_by_text(text, exact=False).first.wait_for()

    def waits_for_goodput(self, condition: str) -> None:
        """Wait until the end of the curve of goodput meets a condition on ``value``, in Mbit/s."""
        self.tab.wait_for_selector(".curve canvas")
        chart = self.tab.locator(".curve").first.get_attribute("id").removeprefix("c")
        self.tab.wait_for_function(f"(chart) => {{const value = ({LAST})(chart); return {condition};}}", arg=int(chart))

    def waits_for_log(self, line: str) -> None:
        self.tab.get_by_role("log").get_by_text(line, exact=True).last.wait_for()

    def close(self) -> None:
        self.context.close()
        assert not self.problems


@pytest.fixture
def page(chromium: Any, served: Served) -> Iterator[Page]:
    opened = Page(chromium, served.address)
    yield opened
    opened.close()


def test_a_link_that_is_cut_makes_the_curve_fall_until_it_is_repaired(page: Page) -> None:
    page.choose("from", "h1")
    page.choose("to", "h2")
    page.press("Start flow")
    page.waits_for_log("> iperf h1 h2 udp 1Mbps &")
    page.waits_for_goodput("value > 0.9")
    page.choose("link", "h2-s2")
    page.press("Cut")
    page.waits_for_log("> link h2-s2 down")
    page.waits_for_text("cut: h2-s2")
    page.waits_for_goodput("value === 0")
    page.press("Repair")
    page.waits_for_log("> link h2-s2 up")
    page.waits_for_goodput("value > 0.9")
    page.tab.get_by_role("button", name=re.compile("^stop flow")).first.click()
    page.waits_for_log("> flow 1 stop")


def test_the_keyboard_alone_is_enough(page: Page) -> None:
    keyboard = page.tab.keyboard

    def reach(name: str) -> None:
        """Move the focus by Tab to the element with this label or these words; it has to be seen there."""
        named = """(name) => {
            const found = document.activeElement;
            const words = [found.getAttribute('aria-label'), found.innerText, found.labels?.[0]?.innerText];
            return words.some((each) => (each ?? '').trim() === name);
        }"""
        for _ in range(120):
            keyboard.press("Tab")
            if page.tab.evaluate(named, name):
                break
        else:
            raise AssertionError(f"no way to {name}")
        seen = """() => [document.activeElement, document.activeElement.closest('.q-field__control')]
            .filter((each) => each).map((each) => getComputedStyle(each))
            .some((style) => style.outlineStyle !== 'none' || style.boxShadow.includes('5px'))"""
        page.tab.wait_for_function(seen)

    page.tab.locator("body").click(position={"x": 1, "y": 1})
    reach("link")
    keyboard.press("ArrowDown")
    page.tab.get_by_role("option", name="h1-s1", exact=True).wait_for()
    for _ in range(10):
        if page.tab.locator(".q-manual-focusable--focused").inner_text().strip() == "h1-s1":
            break
        keyboard.press("ArrowDown")
    keyboard.press("Enter")
    reach("Start flow")
    keyboard.press("Enter")
    page.waits_for_goodput("value > 0.9")
    reach("Cut")
    keyboard.press("Space")
    page.waits_for_text("cut: h1-s1")
    page.waits_for_goodput("value === 0")
    reach("Repair")
    keyboard.press("Enter")
    page.waits_for_goodput("value > 0.9")
    reach("verb")
    keyboard.type("switch s1 por")
    page.waits_for_text("Tab completes: ports")
    keyboard.press("Tab")
    keyboard.press("Enter")
    page.waits_for_log("> switch s1 ports")


def test_two_tabs_see_the_same_network(page: Page, chromium: Any, served: Served) -> None:
    other = Page(chromium, served.address)
    other.choose("link", "s1-s2")
    other.press("Cut")
    page.waits_for_text("cut: s1-s2")
    page.waits_for_log("> link s1-s2 down")
    page.tab.get_by_label("verb", exact=True).fill("link s1-s2 up")
    page.tab.get_by_label("verb", exact=True).press("Enter")
    other.waits_for_log("> link s1-s2 up")
    other.tab.get_by_text("cut: s1-s2").wait_for(state="detached")
    other.close()


def test_a_line_that_is_refused_says_why(page: Page) -> None:
    page.tab.get_by_label("verb", exact=True).fill("pnigall")
    page.press("Obey")
    page.waits_for_text("did you mean 'pingall'?")


def test_the_token_leaves_the_address_and_nothing_is_asked_elsewhere(page: Page, served: Served) -> None:
    page.tab.wait_for_function("() => !location.search")
    page.tab.reload()
    page.tab.wait_for_selector("canvas")
    assert all(url.startswith((served.without_token, "data:", "blob:")) for url in page.asked)
    cookies = page.context.cookies()
    assert [(each["httpOnly"], each["sameSite"]) for each in cookies] == [(True, "Strict")]


def test_without_the_token_there_is_nothing(chromium: Any, served: Served) -> None:
    context = chromium.new_context()
    tab = context.new_page()
    assert tab.goto(served.without_token).status == 403
    assert tab.goto(f"{served.without_token}?token=00000000000000000000000000000000").status == 403
    opened = """(url) => new Promise((done) => {
        const socket = new WebSocket(url);
        socket.onopen = () => done(true);
        socket.onerror = () => done(false);
    })"""
    socket = f"{served.without_token.replace('http', 'ws')}_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    assert tab.evaluate(opened, socket) is False
    assert tab.goto(served.address).status == 200
    assert tab.evaluate(opened, socket) is True
    # A page of another origin has no cookie, and its Origin is refused even with one.
    assert context.request.get(served.without_token, headers={"Origin": "http://example.org"}).status == 403
    assert context.request.get(served.without_token, headers={"Host": "example.org"}).status == 403
    context.close()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}")
@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_is_readable_on_each_screen(chromium: Any, served: Served, size: tuple[int, int], scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    opened = Page(chromium, served.address, size, scheme)
    opened.waits_for_text("Verbs")
    text = "#eceff3" if scheme == "dark" else "#1b1f24"
    opened.tab.wait_for_function(
        """(text) => [...document.querySelectorAll('.picture, .curve')].every((each) => {
            const options = getElement(each.id.slice(1)).chart?.getOption();
            return (options?.title?.[0].textStyle ?? options?.series?.[0].label)?.color === text;
        })""",
        arg=text,
    )
    broad = opened.tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert broad <= 0, "nothing is beside the screen"
    small = opened.tab.evaluate(
        """() => [...document.querySelectorAll('button, a, input, [role=button]')]
            .map((each) => [each.innerText || each.ariaLabel, (each.closest('.q-field') ?? each).getBoundingClientRect()])
            .filter(([, box]) => box.width && (box.height < 24 || box.width < 24)).map(([name]) => name)"""
    )
    assert not small
    dark = opened.tab.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    found = axe.Axe().run(opened.tab, options={"runOnly": ["wcag2a", "wcag2aa", "wcag22aa"]})
    assert found.violations_count == 0, found.generate_report()
    opened.close()


def test_a_capture_of_a_link_is_downloaded(page: Page, tmp_path: Path) -> None:
    from holdfast._core import read_pcap

    page.choose("link", "s2-s3")
    page.press("Capture")
    page.tab.get_by_label("verb", exact=True).fill("h2 ping h3 -c 1")
    page.press("Obey")
    page.waits_for_text("h2 -> h3: 1 sent, 1 received")
    with page.tab.expect_download() as awaited:
        page.tab.get_by_role("link", name=re.compile("download s2-s3")).click()
    awaited.value.save_as(tmp_path / "link.pcap")
    assert len(read_pcap(tmp_path / "link.pcap")) >= 2
