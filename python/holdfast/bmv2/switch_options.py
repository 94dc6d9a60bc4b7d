"""The command line of ``simple_switch_grpc`` and ``simple_switch``, as a value.

What Holdfast has no use for is accepted and named in :attr:`SwitchOptions.ignored`; what would change what the switch does, and
cannot be had, is refused.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from holdfast.errors import LiveError
from holdfast.numerals import is_numeral

DEFAULT_ADDRESS = "127.0.0.1:9559"
"""The gRPC server's address if none is given. BMv2 listens at 0.0.0.0, that is, for other machines too."""

DEFAULT_THRIFT_PORT = 9090

DROP_PORT = 511

_PACKET_LEVELS = ("trace", "debug")
"""The log levels at which BMv2 logs every packet's path through the switch."""

_LEVELS = (*_PACKET_LEVELS, "info", "warn", "error", "off")

_IGNORED = {
    "nanolog": "there is no log over nanomsg",
    "notifications_addr": "notifications go over P4Runtime",
    "debugger": "there is no debugger; holdfast trace shows a packet's way",
    "debugger_addr": "there is no debugger; holdfast trace shows a packet's way",
    "priority_queues": "an interface takes packets at once, so none waits here",
    "max_port_count": "ports are 0 to 510",
    "log_file_max_size": "the log is bounded by its rate",
    "log_file_max_files": "the log is bounded by its rate",
    "disable_swap": "a pipeline that is set takes effect between two packets",
    "enable_swap": "a pipeline that is set takes effect between two packets",
    "load_modules": "externs are the architecture's",
    "max_mc_groups": "groups are bounded by memory",
    "max_l1_entries": "groups are bounded by memory",
    "max_l2_entries": "groups are bounded by memory",
}

_REFUSED = {
    "use_files": "packets come from interfaces; holdfast trace and holdfast stf read files",
    "packet_in": "packets come from interfaces",
    "restore_state": "the state of BMv2 is not read; write it by P4Runtime",
    "dp_grpc_server_addr": "packets come from interfaces",
}


@dataclass(frozen=True)
class SwitchOptions:
    """The options that have a meaning here.

    ``interfaces``: texts like ``0@veth0``. ``program``: a file, or None to start without a pipeline. ``log``: a file, ``"-"`` for
    standard output, or None. ``explicit_address``: the operator has given the address, and ``explicit_thrift_port``: the port.
    ``ignored``: a sentence about each other option.
    """

    interfaces: tuple[str, ...]
    program: Path | None
    device_id: int
    cpu_port: int | None
    address: str
    explicit_address: bool
    certificate: Path | None
    key: Path | None
    client_ca: Path | None
    thrift_port: int
    explicit_thrift_port: bool
    pcap: Path | None
    log: str | None
    dump_bytes: int
    ignored: tuple[str, ...]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise LiveError(f"{self.prog}: {message}")


def _parser(name: str, version: str) -> argparse.ArgumentParser:
    it = _Parser(
        prog=name,
        allow_abbrev=False,
        usage=f"{name} [options] [FILE] [-- target options]",
        description="Run a Holdfast switch with the options of BMv2's. FILE: what holdfast p4c wrote, or P4 source.",
    )
    it.add_argument("--version", "-v", action="version", version=f"holdfast {version}")
    it.add_argument(
        "--interface", "-i", action="append", default=[], metavar="PORT@NAME", help="an interface as a port"
    )
    it.add_argument("--pcap", nargs="?", const=".", metavar="DIR", help="capture NAME_in.pcap and NAME_out.pcap there")
    it.add_argument("--no-p4", action="store_true", help="start without a pipeline, and drop packets until one is set")
    it.add_argument("--device-id", type=int, default=0, help="P4Runtime device id (default 0)")
    it.add_argument("--thrift-port", type=int, help="the port of the Thrift server (default 9090)")
    it.add_argument("--log-console", action="store_true", help="print each packet's way through the program")
    it.add_argument("--log-file", metavar="NAME", help="the same into NAME.txt")
    it.add_argument("--log-level", "-L", choices=_LEVELS, default="trace", help="packets are shown at trace and debug")
    it.add_argument("--log-flush", action="store_true", help="the file always follows the packets")
    it.add_argument(
        "--dump-packet-data", type=int, default=0, metavar="BYTES", help="show so many bytes of each packet"
    )
    it.add_argument("--grpc-server-addr", metavar="ADDRESS:PORT", help=f"P4Runtime server (default {DEFAULT_ADDRESS})")
    it.add_argument("--grpc-server-ssl", action="store_true", help="TLS, with the three files that follow")
    it.add_argument("--grpc-server-cert", type=Path, metavar="PEM")
    it.add_argument("--grpc-server-key", type=Path, metavar="PEM")
    it.add_argument("--grpc-server-cacert", type=Path, metavar="PEM")
    it.add_argument("--grpc-server-with-client-auth", action="store_true", help="clients need a certificate")
    it.add_argument("--cpu-port", type=int, metavar="PORT", help="the controller's port (default: the architecture's)")
    it.add_argument("--drop-port", type=int, default=DROP_PORT, metavar="PORT", help=f"{DROP_PORT} only")
    for option in ("debugger", "disable-swap", "enable-swap"):
        it.add_argument(f"--{option}", action="store_const", const="", help=argparse.SUPPRESS)
    flags = {"debugger", "disable_swap", "enable_swap"}
    for option in (*_IGNORED, *_REFUSED):
        if option not in flags:
            it.add_argument(f"--{option.replace('_', '-')}", metavar="VALUE", help=argparse.SUPPRESS)
    it.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    return it


def parse(name: str, arguments: Sequence[str], version: str) -> SwitchOptions:
    """Return the options of a command line. ``name``: the command's, for messages.

    The target's options may stand before or behind ``--``. Raises :class:`LiveError` with one sentence.
    """
    parser = _parser(name, version)
    given = parser.parse_intermixed_args([word for word in arguments if word != "--"])
    for option, reason in _REFUSED.items():
        if getattr(given, option) is not None:
            parser.error(f"--{option.replace('_', '-')} is not possible: {reason}")
    if given.drop_port != DROP_PORT:
        parser.error(f"--drop-port {given.drop_port} is not possible: the drop port is {DROP_PORT}")
    if given.log_console and given.log_file is not None:
        parser.error("--log-console and --log-file exclude each other")
    interfaces: list[str] = list(given.interface)
    files: list[str] = []
    for word in given.words:
        number, separator, _ = word.partition("@")
        (interfaces if separator and is_numeral(number) else files).append(word)
    pcap = given.pcap
    if pcap is not None and pcap.endswith(".json"):  # the program, behind an option that may have no value
        files.insert(0, pcap)
        pcap = "."
    ignored = [
        f"--{name.replace('_', '-')} ({why})" for name, why in _IGNORED.items() if getattr(given, name) is not None
    ]
    return SwitchOptions(
        interfaces=tuple(interfaces),
        program=_program(parser, files, given.no_p4, ignored),
        device_id=given.device_id,
        cpu_port=given.cpu_port,
        address=given.grpc_server_addr or DEFAULT_ADDRESS,
        explicit_address=given.grpc_server_addr is not None,
        **_tls(parser, given),
        thrift_port=DEFAULT_THRIFT_PORT if given.thrift_port is None else given.thrift_port,
        explicit_thrift_port=given.thrift_port is not None,
        pcap=None if pcap is None else Path(pcap),
        log=_log(given),
        dump_bytes=given.dump_packet_data,
        ignored=tuple(ignored),
    )


def _program(parser: argparse.ArgumentParser, files: Sequence[str], no_p4: bool, ignored: list[str]) -> Path | None:
    if len(files) > 1:
        parser.error(f"one program, not {', '.join(files)}")
    if no_p4:
        ignored.extend(f"{file} (--no-p4 was given)" for file in files)
        return None
    if not files:
        parser.error("give a program, or --no-p4 to start without one")
    return Path(files[0])


def _tls(parser: argparse.ArgumentParser, given: argparse.Namespace) -> dict[str, Path | None]:
    """Return the TLS files of the options. Fails if they are given without ``--grpc-server-ssl``, as BMv2 would ignore them."""
    files = (given.grpc_server_cert, given.grpc_server_key, given.grpc_server_cacert)
    if not given.grpc_server_ssl:
        if any(files) or given.grpc_server_with_client_auth:
            parser.error("files of TLS are given without --grpc-server-ssl")
        return {"certificate": None, "key": None, "client_ca": None}
    if given.grpc_server_cert is None or given.grpc_server_key is None:
        parser.error("--grpc-server-ssl needs --grpc-server-cert and --grpc-server-key")
    if given.grpc_server_with_client_auth and given.grpc_server_cacert is None:
        parser.error("--grpc-server-with-client-auth needs --grpc-server-cacert")
    certificate, key, authority = files
    return {
        "certificate": certificate,
        "key": key,
        "client_ca": authority if given.grpc_server_with_client_auth else None,
    }


def _log(given: argparse.Namespace) -> str | None:
    if given.log_level not in _PACKET_LEVELS and not (given.log_level == "info" and given.dump_packet_data):
        return None
    if given.log_console:
        return "-"
    return None if given.log_file is None else f"{given.log_file}.txt"


__all__ = ["DEFAULT_ADDRESS", "DEFAULT_THRIFT_PORT", "SwitchOptions", "parse"]
