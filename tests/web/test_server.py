"""The page's server without a browser: how a command with ``--web`` begins and ends, and who gets what."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from chromium import ROUTER, Served, network, serving

from holdfast import interpreter

RUN = interpreter.module("holdfast", "run")


def ask(
    served: Served, path: str, headers: dict[str, str] | None = None, method: str = "GET"
) -> tuple[int, dict[str, str]]:
    """Return status and headers of the answer to a request."""
    parts = urlsplit(served.address)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        answer.read()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


def ends(served: Served, within_s: float = 60) -> int:
    """Return the exit status of a command that ends by itself."""
    return served.process.wait(within_s)


def test_it_serves_the_page_and_its_parts_to_who_has_the_token() -> None:
    with serving(*network()) as served:
        assert served.lines[0].startswith("ring_3: 3 switches, 3 hosts, simulated (as demanded)")
        parts = urlsplit(served.address)
        assert parts.hostname == "127.0.0.1"
        status, headers = ask(served, f"/?{parts.query}")
        assert status == 200
        cookie = headers["set-cookie"].partition(";")[0]
        for path in (
            "/",
            "/_nicegui_ws/socket.io/?EIO=4&transport=polling",
            "/files/x",
            "/docs",
            "/openapi.json",
            "/x",
        ):
            assert ask(served, path)[0] == 403, path
            assert ask(served, path, {"Cookie": f"{cookie}x"})[0] == 403, path
        assert ask(served, "/", {"Cookie": cookie})[0] == 200
        assert ask(served, "/", {"Cookie": cookie, "Host": "rebound.example"})[0] == 403
        assert ask(served, "/", {"Cookie": cookie, "Origin": "http://example.org"})[0] == 403
        for path in ("/files/none.pcap", "/files/../../etc/passwd", "/files/%2e%2e/%2e%2e/etc/passwd"):
            assert ask(served, path, {"Cookie": cookie})[0] == 404, path
        served.process.send_signal(signal.SIGTERM)
        assert ends(served) == 0
        assert served.errors() == ""


def test_alone_it_stays_until_a_signal() -> None:
    with serving(*network()) as served:
        time.sleep(1)
        assert served.process.poll() is None
        served.process.send_signal(signal.SIGINT)
        assert ends(served) == 0
        assert served.errors() == ""


def test_lines_of_the_input_are_obeyed_beside_the_page() -> None:
    with serving(*network(), stdin=subprocess.PIPE) as served:
        assert served.process.stdin is not None and served.process.stdout is not None
        served.process.stdin.write("nodes\nquit\n")
        served.process.stdin.flush()
        assert "10.0.1.1/24" in served.process.stdout.readline()
        assert ends(served) == 0


def test_a_signal_ends_it_while_it_waits_for_a_line() -> None:
    with serving(*network(), stdin=subprocess.PIPE) as served:
        time.sleep(0.5)
        served.process.send_signal(signal.SIGTERM)
        assert ends(served) == 130


def test_a_script_prepares_what_is_watched(tmp_path: Path) -> None:
    script = tmp_path / "script.txt"
    script.write_text("mechanism reroute\nwait 100ms\nexpect h1 ping h2 ok\nh1 ping h2 -c 1\n")
    with serving(*network(script=script)) as served:
        assert served.process.stdout is not None
        assert any("h1 -> h2: 1 sent, 1 received" in line for line in served.process.stdout), "and then it stays"
        assert served.process.poll() is None
    script.write_text("expect h1 ping h2 ok\n")
    with serving(*network(script=script)) as served:
        assert ends(served) == 1
        assert f"error: {script}:1: expected 'h1 ping h2' to go well" in served.errors()


@pytest.mark.parametrize(
    ("at", "error"),
    [
        ("127.0.0.1", "--web is '127.0.0.1'; it must be ADDRESS:PORT"),
        ("127.0.0.1:http", "--web is '127.0.0.1:http'; it must be ADDRESS:PORT"),
        ("127.0.0.1:70000", "it must be ADDRESS:PORT"),
        ("192.0.2.1:0", "--web: cannot serve a page at 192.0.2.1:0"),
        ("{used}", "--web: cannot serve a page at {used}"),
    ],
)
def test_an_address_that_cannot_be_had_is_one_sentence(at: str, error: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used:
        where = f"127.0.0.1:{used.getsockname()[1]}"
        done = subprocess.run(
            [*RUN, ROUTER, "ring:3", "--simulated", f"--web={at.format(used=where)}"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 1
    assert error.format(used=where) in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_without_the_extra_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['nicegui'] = None; from holdfast.__main__ import main;"
        f"sys.argv = ['holdfast', 'run', {str(ROUTER)!r}, 'ring:3', '--simulated', '--web']; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert done.stderr == "error: --web needs the package nicegui: pip install 'holdfast[web]'\n"


def test_without_a_page_the_framework_is_not_imported() -> None:
    program = (
        "import sys, atexit; known = {'nicegui', 'fastapi', 'uvicorn', 'holdfast.web'};"
        "atexit.register(lambda: print(sorted(known & set(sys.modules))));"
        "from holdfast.__main__ import main;"
        f"sys.argv = ['holdfast', 'run', {str(ROUTER)!r}, 'ring:3', '--simulated']; main()"
    )
    done = subprocess.run([sys.executable, "-c", program], input="nodes\n", capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_word_behind_web_is_an_argument(tmp_path: Path) -> None:
    with serving("run", "--simulated", "--web", ROUTER, "ring:4") as served:
        assert served.lines[0].startswith("ring_4")


def test_at_ipv6_and_at_all_addresses_the_token_is_needed_as_well() -> None:
    for at in ("[::1]:0", "0.0.0.0:0"):
        with serving("run", ROUTER, "ring:3", "--simulated", f"--web={at}") as served:
            parts = urlsplit(served.address)
            assert parts.hostname == ("::1" if at.startswith("[") else "127.0.0.1")
            assert ask(served, "/")[0] == 403
            assert ask(served, f"/?{parts.query}")[0] == 200
