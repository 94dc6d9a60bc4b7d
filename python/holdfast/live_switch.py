"""``holdfast switch``: one switch on Linux interfaces with a P4Runtime server, until it is interrupted."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

from rich.console import Console

from holdfast import _core
from holdfast.errors import LiveError
from holdfast.p4runtime.device import Device
from holdfast.p4runtime.server import Server, TlsFiles

LINE_RATE_BPS = 1_000_000_000_000
"""The links between the switch and its interfaces are a formality: fast, without delay, with a deep queue."""


def parse_port(text: str) -> tuple[int, str]:
    """``0@veth0``: port number and interface name."""
    number, separator, name = text.partition("@")
    if not separator or not name or not number.isdecimal() or int(number) > 510:
        raise LiveError(f"--interface {text!r}: write PORT@NAME with a port from 0 to 510, as in 0@veth0")
    return int(number), name


def tls_files(certificate: Path | None, key: Path | None, client_ca: Path | None) -> TlsFiles | None:
    """The server's TLS files, if any are given; certificate and key go together."""
    if certificate is None and key is None and client_ca is None:
        return None
    if certificate is None or key is None:
        raise LiveError("--tls-certificate and --tls-key go together")
    for file in (certificate, key, client_ca):
        if file is not None and not file.is_file():
            raise LiveError(f"there is no file {str(file)!r}")
    return TlsFiles(certificate, key, client_ca)


def run(
    program: _core.Program,
    ports: list[tuple[int, str]],
    *,
    address: str,
    tls: TlsFiles | None,
    insecure: bool,
    device_id: int,
    cpu_port: int,
    executor: Literal["jit", "interpreter"],
    console: Console,
) -> None:
    """Runs until interrupted; prints counters at the end."""
    if reason := _core.interfaces_ready():
        raise LiveError(f"cannot open network interfaces: {reason}")
    if len({port for port, _ in ports}) < len(ports):
        raise LiveError("a port number is given twice")
    if any(port == cpu_port for port, _ in ports):
        raise LiveError(f"port {cpu_port} is the controller's; choose another one, or another --cpu-port")
    network = _core.Network()
    switch = network.add_switch("switch", program, executor=executor, cpu_port=cpu_port)
    links = {}
    for port, name in ports:
        network.add_interface(name, name)
        links[name] = network.add_link("switch", port, name, 0, rate_bps=LINE_RATE_BPS, queue_bytes=16_000_000)
    device = Device(device_id, switch, executor=executor)
    device.load(program)
    # The server first: an address that cannot be had must not leave a running network behind.
    server = Server([device], address, tls, insecure=insecure)
    network.start()
    try:
        server.start()
        console.print(
            f"{program.name}: {len(ports)} ports, P4Runtime on {server.address}, device {device_id}; Ctrl-C ends it"
        )
        while True:
            for notification in network.poll(0.2):
                if notification.kind == "packet_in":
                    device.packet_in(notification.data)
                elif notification.kind == "digest":
                    device.collect_digests(time.time_ns())
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()
        network.stop()
        for name, link in links.items():
            counters = network.link_counters(link)
            console.print(f"{name}: {counters['b_to_a_packets']} packets in, {counters['a_to_b_packets']} out")
        for reason, count in sorted(switch.drops().items()):
            console.print(f"dropped, {reason}: {count}")
