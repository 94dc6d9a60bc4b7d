"""The command lines of BMv2's programs: what each option becomes, what is ignored with a reason, and what is refused."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from holdfast_command import holdfast
from typer.testing import CliRunner

from holdfast.bmv2 import compiler_options, shims, switch_options
from holdfast.bmv2.switch_options import SwitchOptions
from holdfast.cli import app
from holdfast.errors import HoldfastError
from holdfast.p4runtime import device_config
from holdfast.p4runtime.stubs import p4info_pb2

ROUTER = Path(__file__).parents[2] / "python/holdfast/apps/router/router.p4"


def switch(line: str) -> SwitchOptions:
    return switch_options.parse("simple_switch_grpc", shlex.split(line), "0")


def compiler(line: str, name: str = "p4c") -> compiler_options.CompilerOptions:
    return compiler_options.parse(name, shlex.split(line), "0")


def test_a_switch_without_a_program() -> None:
    """Check a command line as packet test runners have it, and its defaults."""
    options = switch("--log-file ss-log --log-flush --dump-packet-data 10000 -i 0@veth0 -i 1@veth2 --no-p4")
    assert options.interfaces == ("0@veth0", "1@veth2")
    assert options.program is None
    assert (options.device_id, options.cpu_port, options.thrift_port) == (0, None, 9090)
    assert (options.address, options.explicit_address) == ("127.0.0.1:9559", False)
    assert (options.log, options.dump_bytes, options.pcap) == ("ss-log.txt", 10000, None)
    assert options.ignored == ()


def test_options_of_the_target_stand_anywhere() -> None:
    line = "-i 1@s1-eth1 --pcap ./pcaps --nanolog ipc:///tmp/x.ipc --device-id 3 build/prog.json --log-console --thrift-port 9092"
    before = switch(f"--cpu-port 255 --grpc-server-addr 0.0.0.0:50053 {line}")
    behind = switch(f"{line} -- --cpu-port 255 --grpc-server-addr 0.0.0.0:50053")
    assert before == behind
    assert behind.program == Path("build/prog.json")
    assert (behind.device_id, behind.thrift_port, behind.cpu_port) == (3, 9092, 255)
    assert (behind.address, behind.explicit_address) == ("0.0.0.0:50053", True)
    assert (behind.pcap, behind.log) == (Path("pcaps"), "-")
    assert behind.ignored == ("--nanolog (there is no log over nanomsg)",)


def test_an_option_whose_value_may_be_missing_takes_no_program() -> None:
    assert switch("--pcap prog.json").program == Path("prog.json")
    assert switch("--pcap prog.json").pcap == Path()
    assert switch("--pcap --no-p4").pcap == Path()
    assert switch("--pcap=out prog.json").pcap == Path("out")
    assert switch("-i 2@veth2 3@veth4 -i 4@veth6 --no-p4").interfaces == ("2@veth2", "4@veth6", "3@veth4")


@pytest.mark.parametrize(
    ("line", "log"),
    [
        ("--log-console", "-"),
        ("--log-console -Ldebug", "-"),
        ("--log-console -L info", None),
        ("--log-console --log-level info --dump-packet-data 64", "-"),
        ("--log-console -L off --dump-packet-data 64", None),
        ("--log-file x -L error", None),
    ],
)
def test_levels_of_the_log(line: str, log: str | None) -> None:
    assert switch(f"{line} --no-p4").log == log


def test_every_ignored_option_has_its_reason() -> None:
    line = "--no-p4 prog.json --notifications-addr a --debugger --priority-queues 8 --max-port-count 64 --disable-swap"
    ignored = switch(line).ignored
    named = [
        "--debugger",
        "--disable-swap",
        "--max-port-count",
        "--notifications-addr",
        "--priority-queues",
        "prog.json",
    ]
    assert sorted(each.split()[0] for each in ignored) == named
    assert all(each.endswith(")") for each in ignored)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "give a program, or --no-p4"),
        ("a.json b.json", "one program, not a.json, b.json"),
        ("--no-p4 --drop-port 510", "the drop port is 511"),
        ("--no-p4 --use-files 1", "packets come from interfaces"),
        ("--no-p4 --restore-state x", "the state of BMv2 is not read"),
        ("--no-p4 --log-console --log-file x", "exclude each other"),
        ("--no-p4 --what", "unrecognized arguments: --what"),
        ("--no-p4 --device-id x", "invalid int value: 'x'"),
        ("--no-p4 -L loud", "invalid choice: 'loud'"),
        ("--no-p4 --grpc-server-cert a.pem", "without --grpc-server-ssl"),
        ("--no-p4 --grpc-server-ssl --grpc-server-cert a.pem", "needs --grpc-server-cert and --grpc-server-key"),
        (
            "--no-p4 --grpc-server-ssl --grpc-server-cert a --grpc-server-key b --grpc-server-with-client-auth",
            "needs --grpc-server-cacert",
        ),
    ],
)
def test_what_a_switch_refuses(line: str, says: str) -> None:
    with pytest.raises(HoldfastError, match=r"^simple_switch_grpc: ") as refused:
        switch(line)
    assert says in str(refused.value)


def test_tls_files_of_a_switch() -> None:
    files = "--grpc-server-ssl --grpc-server-cert a --grpc-server-key b --grpc-server-cacert c"
    assert switch(f"--no-p4 {files}").client_ca is None
    options = switch(f"--no-p4 {files} --grpc-server-with-client-auth")
    assert (options.certificate, options.key, options.client_ca) == (Path("a"), Path("b"), Path("c"))


def test_output_is_a_directory_for_p4c_and_a_file_for_the_others() -> None:
    driver = compiler("--target bmv2 --arch v1model --p4runtime-files build/x.p4info.txtpb -o build dir/x.p4")
    assert driver.program == Path("build/x.json")
    assert driver.p4info == ((Path("build/x.p4info.txtpb"), ".txtpb"),)
    line = "--p4v 16 --p4runtime-files build/x.txt,build/x.bin -o build/x.json x.p4"
    plain = compiler(line, "p4c-bm2-ss")
    assert plain.program == Path("build/x.json")
    assert [ending for _, ending in plain.p4info] == [".txt", ".bin"]
    assert compiler("x.p4", "p4c-bm2-ss").program is None, "it only checks"
    assert compiler("x.p4", "p4c-bm2-psa").architecture == "psa"
    old = compiler("--std p4-16 x.p4 -o y.json --p4runtime-format text --p4runtime-file y.proto.txt", "p4c-bm2-ss")
    assert old.p4info == ((Path("y.proto.txt"), ".txt"),)
    assert compiler("x.p4 --p4runtime-file y.p4info").p4info == ((Path("y.p4info"), ".bin"),)


def test_options_of_the_compiler() -> None:
    options = compiler(
        "-DWITH_INT -D N=3 -DGONE -U GONE -I inc -Iother --Wdisable=unsupported --Werror -g -O2 -MG x.p4"
    )
    assert options.defines == ("__TARGET_BMV2__", "WITH_INT", "N=3")
    assert options.includes == (Path("inc"), Path("other"))
    assert options.warnings_are_errors
    named = [each.split(" ")[0] for each in options.ignored]
    assert sorted(named) == ["--Wdisable=unsupported", "-MG", "-O", "-g"]
    assert compiler('-Xp4c="-D A=1 --Werror" x.p4') == compiler("-D A=1 --Werror x.p4")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("", "give one program"),
        ("x.p4 y.p4", "one program, not x.p4, y.p4"),
        ("x.p4 --target tofino", "--target tofino is not possible"),
        ("x.p4 --arch tna", "--arch tna is not possible"),
        ("x.p4 --std p4-14", "the language is P4_16"),
        ("x.p4 --p4v 14", "the language is P4_16"),
        ("x.p4 --fromJSON y", "--fromJSON is not possible"),
        ("x.p4 -MF y.d", "belong to -M or -MD"),
        ("x.p4 -e -E", "-e compiles what p4c -E has left"),
        ("x.p4 --p4runtime-files a.xml", "the ending is one of"),
        ("x.p4 --bogus", "unrecognized arguments: --bogus"),
    ],
)
def test_what_the_compiler_refuses(line: str, says: str) -> None:
    with pytest.raises(HoldfastError, match=r"^p4c: ") as refused:
        compiler(line)
    assert says in str(refused.value)
    with pytest.raises(HoldfastError, match="it is v1model"):
        compiler("x.p4 --arch psa", "p4c-bm2-ss")


def test_shims_are_commands_in_path(tmp_path: Path) -> None:
    """Check that scripts find all commands, and that what p4c writes is a program for a switch, with its P4Info in each format."""
    commands = tmp_path / "a directory"
    assert holdfast("shims", str(commands), cwd=tmp_path).returncode == 0
    assert {path.name for path in commands.iterdir()} == {*shims.COMMANDS, shims.MODULES}

    def shell(line: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PATH": f"{commands}:{os.environ['PATH']}"}
        command = ["sh", "-c", line]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)

    for name in shims.COMMANDS:
        found = shell(f"{name} --help")
        assert (found.returncode, found.stderr) == (0, ""), found
        assert f"usage: {name}" in found.stdout
        assert holdfast(name, "--version").stdout.startswith("holdfast ")
    made = shell(f"p4c -o out/build --p4runtime-files r.txtpb,r.bin,r.json {shlex.quote(str(ROUTER))}")
    assert made.returncode == 0, made.stderr
    artifact = (tmp_path / "out/build/router.json").read_bytes()
    assert holdfast("compile", str(ROUTER), "-o", "out", "--p4info", "own.bin", cwd=tmp_path).returncode == 0
    assert (tmp_path / "out/router.holdfast").read_bytes() == artifact
    assert (tmp_path / "own.bin").read_bytes() == (tmp_path / "r.bin").read_bytes()
    message = p4info_pb2.P4Info.FromString((tmp_path / "r.bin").read_bytes())
    assert message.pkg_info.arch == "v1model"

    def trace(p4info: str) -> subprocess.CompletedProcess[str]:
        return holdfast("trace", "out/build/router.json", "--p4info", p4info, "--packet", "00" * 60, cwd=tmp_path)

    for file in ("r.txtpb", "r.bin", "r.json"):
        traced = trace(file)
        assert traced.returncode == 0, traced.stderr
    (tmp_path / "wrong.bin").write_bytes(b"\xff")
    (tmp_path / "wrong.json").write_text("[")
    for file in ("wrong.bin", "wrong.json"):
        traced = trace(file)
        assert (traced.returncode, traced.stderr.count("\n")) == (1, 1)
        assert f"{file} is not a P4Info in" in traced.stderr


def test_the_compiler_of_bmv2_as_a_command(tmp_path: Path) -> None:
    runner = CliRunner()
    source = tmp_path / "wrong.p4"
    source.write_text("control {")
    assert runner.invoke(app, ["p4c", "-o", str(tmp_path), str(source)]).exit_code == 1
    outcome = runner.invoke(app, ["p4c-bm2-psa", str(ROUTER)])
    assert outcome.exit_code == 1
    assert "is not for the architecture psa" in outcome.stderr
    outcome = runner.invoke(app, ["p4c", "--toJSON", "x", "-o", str(tmp_path), str(ROUTER)])
    assert outcome.exit_code == 0, outcome.stderr
    assert "note: ignored: --toJSON (the tree is not written" in outcome.stderr
    assert (tmp_path / "router.json").exists()


def test_what_only_the_preprocessor_does(tmp_path: Path) -> None:
    """Check that what -E and --pp write is the program, with and without its places, and the rules for make."""

    def compiled(*words: str) -> str:
        outcome = holdfast(*words, cwd=tmp_path)
        assert outcome.returncode == 0, outcome.stderr
        return outcome.stdout

    (tmp_path / "part").mkdir()
    (tmp_path / "part/a b.p4").write_text(f'#include "{ROUTER}"\n')
    (tmp_path / "main.p4").write_text('// A comment\n#define FILE "a b.p4"\n#include FILE\n')
    compiled("p4c", "-I", "part", "-o", "out", "-MD", "-MP", "--pp", "out/plain.p4", "main.p4")
    compiled("p4c", "-I", "part", "-o", "out", "-E", "main.p4")
    text = (tmp_path / "out/main.p4i").read_text()
    assert "A comment" not in text
    assert '# 1 "part/a b.p4"' not in text, "it has no tokens of its own"
    assert f'"{ROUTER}"\n' in text
    assert compiled("p4c-bm2-ss", "-I", "part", "-E", "main.p4") == text
    from_source = (tmp_path / "out/main.json").read_bytes()
    compiled("p4c", "-e", "-o", "out", "main.p4")
    assert (tmp_path / "out/main.json").read_bytes() == from_source, "with the lines of the source"
    plain = (tmp_path / "out/plain.p4").read_text()
    assert not [line for line in plain.splitlines() if line.startswith("#")]
    for each in (text, plain):
        (tmp_path / "again.p4").write_text(each)
        compiled("p4c", "-o", "again", "--p4runtime-files", "again.txt", "again.p4")
        compiled("p4c", "-I", "part", "-o", "out", "--p4runtime-files", "out.txt", "main.p4")
        assert (tmp_path / "again.txt").read_text() == (tmp_path / "out.txt").read_text()
    rule = (tmp_path / "out/main.d").read_text()
    assert rule.startswith("main.o: main.p4 part/a\\ b.p4 ")
    assert "\npart/a\\ b.p4:\n" in rule
    assert f"\n{ROUTER}:\n" in rule
    assert "main.p4:\n" not in rule
    assert "v1model.p4" not in rule, "it is no file here"
    alone = compiled("p4c-bm2-ss", "-I", "part", "-M", "-MT", "x.json", "main.p4")
    assert alone == rule.splitlines()[0].replace("main.o", "x.json") + "\n"
    (tmp_path / "main.p4").write_text("#error no\n")
    wrong = holdfast("p4c", "-E", "-o", "none", "main.p4", cwd=tmp_path)
    assert (wrong.returncode, (tmp_path / "none").exists()) == (1, False)
    assert "error[" in wrong.stderr


def test_a_target_macro_is_defined(tmp_path: Path) -> None:
    source = tmp_path / "target.p4"
    source.write_text(f'#ifdef __TARGET_BMV2__\n#include "{ROUTER}"\n#else\n#error no target\n#endif\n')
    outcome = CliRunner().invoke(app, ["p4c-bm2-ss", str(source)])
    assert outcome.exit_code == 0, outcome.stderr


def test_clients_of_bmv2_find_their_messages(tmp_path: Path) -> None:
    """Check that p4.tmp is there beside the official messages, in either order, and that a device reads what it makes."""
    shims.write(tmp_path)
    ask = "c = p4config_pb2.P4DeviceConfig(reassign=True, device_data=b'text'); print(c.SerializeToString().hex())"
    imports = ["from p4.tmp import p4config_pb2", "from p4.v1 import p4runtime_pb2"]
    for order in (imports, imports[::-1]):
        found = subprocess.run(
            [sys.executable, "-c", "\n".join([*order, "p4runtime_pb2.WriteRequest()", ask])],
            capture_output=True,
            text=True,
            env=os.environ | {"PYTHONPATH": str(tmp_path / shims.MODULES)},
            check=False,
        )
        assert found.returncode == 0, found.stderr
        assert device_config.artifact(bytes.fromhex(found.stdout)) == b"text"
