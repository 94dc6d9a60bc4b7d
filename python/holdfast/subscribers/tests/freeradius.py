"""Debian's FreeRADIUS on loopback, with a configuration of ours: starts, is killed, comes back, and shows what it has accounted.

This version (3.2.1) signs its answers only if it is told so: Message-Authenticator is in its reply list.
"""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

SECRET = "testing-testing"

_CONFIGURATION = """
prefix = /usr
logdir = {directory}
run_dir = {directory}
raddbdir = {directory}
pidfile = {directory}/pid
libdir = /usr/lib/freeradius
max_request_time = 5
cleanup_delay = 2
max_requests = 65536
hostname_lookups = no
log {{
    destination = files
    file = {directory}/log
}}
security {{
    reject_delay = 0
    status_server = yes
}}
thread pool {{
    start_servers = 4
    max_servers = 8
    min_spare_servers = 2
    max_spare_servers = 8
    max_queue_size = 65536
}}
client gateway {{
    ipaddr = 127.0.0.1
    secret = {secret}
    require_message_authenticator = yes
}}
modules {{
    pap {{
    }}
    chap {{
    }}
    files {{
        filename = {directory}/users
    }}
    detail {{
        filename = {directory}/detail
        permissions = 0600
    }}
}}
server default {{
    listen {{
        type = auth
        ipaddr = 127.0.0.1
        port = {authentication}
    }}
    listen {{
        type = acct
        ipaddr = 127.0.0.1
        port = {accounting}
    }}
    authorize {{
        {signs}
        chap
        files
        pap
    }}
    authenticate {{
        Auth-Type PAP {{
            pap
        }}
        Auth-Type CHAP {{
            chap
        }}
    }}
    accounting {{
        detail
    }}
}}
"""


def missing(*tools: str) -> str | None:
    """Return why FreeRADIUS cannot run on this machine; None if it can.

    ``tools``: further programs needed, such as ``radclient``.
    """
    absent = [each for each in ("freeradius", *tools) if shutil.which(each) is None]
    return f"not installed: {', '.join(absent)} (Debian packages freeradius and freeradius-utils)" if absent else None


def free_port() -> int:
    """Return the number of a UDP port of 127.0.0.1 that is free now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


_SIGNS = "update reply { Message-Authenticator := 0x00 }"

_DICTIONARIES = Path("/usr/share/freeradius")
_VALUES = {
    "string": '"text"', "integer": "1", "ipaddr": "192.0.2.1", "octets": "0x0102", "ipv6addr": "2001:db8::1",
    "ipv6prefix": "2001:db8:1234:5600::/64", "ifid": "0:0:0:1", "date": "1",
}  # fmt: skip


def attributes(*rfcs: int) -> dict[str, tuple[int, str]]:
    """Return the attributes in FreeRADIUS' dictionaries of these RFCs: (number, a valid value as text) by name."""
    found = {}
    for rfc in rfcs:
        for line in (_DICTIONARIES / f"dictionary.rfc{rfc}").read_text().splitlines():
            words = line.split()
            if len(words) >= 4 and words[0] == "ATTRIBUTE" and words[2].isdigit() and words[3] in _VALUES:
                found[words[1]] = int(words[2]), _VALUES[words[3]]
    return found


class FreeRadius:
    """A server. ``users`` is the text of its users file; ``signs``: with Message-Authenticator in its answers."""

    def __init__(self, directory: Path, users: str, signs: bool = True) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.authentication_port, self.accounting_port = free_port(), free_port()
        (directory / "users").write_text(users)
        (directory / "dictionary").write_text("")
        (directory / "radiusd.conf").write_text(
            _CONFIGURATION.format(
                directory=directory,
                secret=SECRET,
                authentication=self.authentication_port,
                accounting=self.accounting_port,
                signs=_SIGNS if signs else "",
            )
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        words = ["freeradius", "-f", "-d", str(self.directory), "-n", "radiusd"]
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        end_s = time.monotonic() + 30
        while time.monotonic() < end_s:
            if self._process.poll() is not None:
                raise RuntimeError(f"freeradius ended: {self._log()}")
            if "Ready to process requests" in self._log():
                return
            time.sleep(0.05)
        raise RuntimeError(f"freeradius does not start: {self._log()}")

    @property
    def pid(self) -> int:
        """The id of the server's process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            (self.directory / "log").unlink(missing_ok=True)

    def _log(self) -> str:
        path = self.directory / "log"
        return path.read_text() if path.exists() else ""

    def settings(self, **more: object) -> dict[str, object]:
        """Return a ``radius`` section of a configuration that uses this server."""
        server = {
            "host": "127.0.0.1",
            "secret": SECRET,
            "authentication_port": self.authentication_port,
            "accounting_port": self.accounting_port,
        }
        return {"servers": [server], "nas_identifier": "bng-1", "nas_address": "127.0.0.1", **more}

    def accounted(self) -> list[dict[str, str]]:
        """Return the accounting records that the server has written, each as values by attribute name."""
        path = self.directory / "detail"
        blocks = path.read_text().split("\n\n") if path.exists() else []
        found = []
        for block in blocks:
            pairs = re.findall(r"^\t([\w-]+) = \"?(.*?)\"?$", block, re.MULTILINE)
            if pairs:
                found.append(dict(pairs))
        return found


def radclient(port: int, kind: str, attributes: Mapping[str, str], stamped: bool = True) -> str:
    """Send a ``coa`` or ``disconnect`` request to a port with Debian's radclient and return its output."""
    if stamped:
        attributes = {**attributes, "Event-Timestamp": str(int(time.time()))}
    text = ", ".join(f'{name} = "{value}"' for name, value in attributes.items())
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as secret:  # every user may read a command line
        secret.write(SECRET)
        secret.flush()
        done = subprocess.run(
            ["radclient", "-x", "-t", "3", "-r", "1", "-S", secret.name, f"127.0.0.1:{port}", kind],
            input=text, capture_output=True, text=True, check=False,
        )  # fmt: skip
    return done.stdout + done.stderr
