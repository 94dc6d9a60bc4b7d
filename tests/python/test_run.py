"""``holdfast run`` with modelled hosts: arguments, scripts, controllers and entries. Live: ``tests/live/test_run_live.py``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from holdfast_command import COMMAND, holdfast, holdfast_process

from holdfast.console import controllers
from holdfast.errors import ConsoleError
from holdfast.p4runtime.client import GrpcClient

ROOT = Path(__file__).parents[2]
ROUTER = ROOT / "python/holdfast/apps/router/router.p4"
EXAMPLES = ROOT / "examples"


def run(*arguments: object, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return holdfast("run", *map(str, arguments), stdin=stdin)


def script(folder: Path, text: str) -> Path:
    file = folder / "script.txt"
    file.write_text(text)
    return file


def test_a_script_is_the_same_each_time_and_says_what_it_does(tmp_path: Path) -> None:
    file = script(tmp_path, "mechanism reroute\npingall\nexpect lost 0\niperf h1 h2 100ms\nlinks\n")
    words = ("run", str(ROUTER), "ring:3", "--simulated", "--seed", "3", "--script", str(file))
    # A process of its own has other hashes of texts.
    said = [holdfast_process(*words), holdfast(*words)]
    assert said[0].returncode == 0, said[0].stderr
    assert said[0].stderr == ""
    assert "6 pairs, 0 without an answer" in said[0].stdout
    assert said[0].stdout == said[1].stdout


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("nodes\npingall\nexpect lost 0\n", "{script}:3: expected lost 0, and lost is 6\n"),
        ("\n# nothing\npnigall\n", "{script}:3: there is no verb or host 'pnigall'; did you mean 'pingall'?\n"),
        ("h1 ls\n", "{script}:1: 'HOST COMMAND...' is a verb of live networks (--live)\n"),
    ],
)
def test_a_script_that_fails_has_status_1_and_says_where(tmp_path: Path, text: str, error: str) -> None:
    file = script(tmp_path, text)
    done = run(ROUTER, "ring:3", "--simulated", "--script", file)
    assert done.returncode == 1
    assert done.stderr == "error: " + error.format(script=file)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["{router}", "ring:3", "--live", "--simulated"], "--live and --simulated exclude each other"),
        (["{router}", "ring:3", "x.txt"], "run takes a program and a topology, or a topology alone, not 3 files"),
        (["{router}", "ring:3", "--web", "127.0.0.1:8080"], "the address of the page is written --web=127.0.0.1:8080"),
        (["{router}", "rong:3", "--simulated", "--web"], "rong"),
        (["{router}", "ring:3", "--simulated", "--grpc", "50051"], "--grpc is '50051'; it must be ADDRESS:PORT"),
        (["{router}", "ring:3", "--script", "nowhere.txt"], "--script: there is no file 'nowhere.txt'"),
        (["nowhere.p4", "ring:3", "--simulated"], "there is no file 'nowhere.p4'"),
        (["ring:3", "--simulated"], "switch 's1' has no program: give one, as in holdfast run PROGRAM TOPOLOGY"),
        (["{router}", "ring:3", "--simulated", "--controller", "no.py"], "--controller: there is no file 'no.py'"),
        (["{router}", "ring:3", "--simulated", "--runtime", "no"], "--runtime: there is no directory 'no'"),
        (
            ["{router}", "ring:3", "--simulated", "--runtime", "{apps}"],
            "--runtime: '{apps}' has no entries of any switch",
        ),
        (["{router}", "rong:3", "--simulated"], "rong"),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments: list[str], error: str) -> None:
    places = {"router": ROUTER, "apps": ROUTER.parent}
    done = run(*(each.format(**places) for each in arguments))
    assert done.returncode in (1, 2)
    assert done.stdout == ""
    assert error.format(**places) in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_the_prompt_reads_lines_and_goes_on_after_a_mistake() -> None:
    done = run(ROUTER, "ring:3", "--simulated", stdin="nodse\nnodes\nh1 ping h2 -c 1\nquit\nnodes\n")
    assert done.returncode == 0
    assert done.stderr == "error: there is no verb or host 'nodse'; did you mean 'nodes'?\n"
    assert done.stdout.startswith("ring_3: 3 switches, 3 hosts, simulated (as demanded)\n")
    assert done.stdout.count("10.0.1.1/24") == 1
    assert "h1 -> h2: 1 sent, 0 received, 1 lost" in done.stdout


def test_entries_of_a_directory_are_written(tmp_path: Path) -> None:
    for name, port in (("s1", 1), ("s2", 2)):
        other = 2 if name == "s1" else 1
        (tmp_path / f"{name}.yaml").write_text(
            f"""tables:
  ipv4_lpm:
    - match: {{hdr.ipv4.dst_addr: 10.0.{other}.0/24}}
      action: forward
      params: {{port: {port}, src_mac: "02:00:00:00:00:aa", dst_mac: "02:00:00:00:00:bb"}}
    - match: {{hdr.ipv4.dst_addr: 10.0.{3 - other}.0/24}}
      action: forward
      params: {{port: 3, src_mac: "02:00:00:00:00:aa", dst_mac: "02:00:00:00:00:0{3 - other}"}}
"""
        )
    file = script(
        tmp_path, "switch s1 tables RouterIngress.ipv4_lpm\nexpect entries 2\nswitch s3 tables\nexpect entries 0\n"
    )
    done = run(ROUTER, "ring:3", "--simulated", "--runtime", tmp_path, "--script", file)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("example", sorted(path.parent.name for path in EXAMPLES.glob("*/check.txt")))
def test_examples(example: str) -> None:
    """Run the command in the first line of the example's script, in its folder, in two processes."""
    folder = EXAMPLES / example
    words = re.match(r"# holdfast run (.*)\n", (folder / "check.txt").read_text())[1].split()  # type: ignore[index]
    said = [each("run", *words, "--simulated", cwd=folder) for each in (holdfast_process, holdfast)]
    assert said[0].returncode == 0, said[0].stdout + said[0].stderr
    assert said[0].stdout == said[1].stdout


CONTROLLER = """
from holdfast import Controller


class Quiet(Controller):
    def __init__(self, *, reaction_delay_ms: float, ports: int = 2, fail: str = "") -> None:
        super().__init__(reaction_delay_ms=reaction_delay_ms)
        self.ports, self.fail = ports, fail
        if fail == "new":
            nonsense()

    def on_start(self) -> None:
        if self.fail == "start":
            self.deeper()

    def on_port_change(self, switch: str, port: int, up: bool) -> None:
        if self.fail == "event":
            self.deeper()

    def deeper(self) -> None:
        raise ValueError("of my own")


class Other(Quiet):
    pass


def made(number=1):
    return Quiet(reaction_delay_ms=number)
"""


def test_a_controller_is_a_class_or_a_function_with_arguments(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(CONTROLLER)
    quiet = controllers.load(f"{file}:Quiet")
    assert quiet.reaction_delay_ps == 1_000_000_000
    assert controllers.load(f"{file}:Quiet(ports=3, reaction_delay_ms=2)").ports == 3  # type: ignore[attr-defined]
    assert controllers.load(f"{file}:made(number=5)").reaction_delay_ps == 5_000_000_000
    for spec, error in (
        (f"{file}", "has several controllers; write one of "),
        (f"{file}:Quite", "has no controller 'Quite'; did you mean 'Quiet'?"),
        (f"{file}:Quiet(3)", "'Quiet(3)' is no NAME or NAME(argument=value), such as Hub(ports=4)"),
        (f"{file}:Quiet(ports=open('x'))", "is no NAME or NAME(argument=value)"),
        (f"{file}:Quiet(reaction_delay_ms=-1)", "reaction_delay_ms"),
        (f"{file}:Quiet(wrong=1)", "TypeError: Quiet.__init__() got an unexpected keyword argument 'wrong'"),
    ):
        with pytest.raises(ConsoleError, match=re.escape(error)):
            controllers.load(spec)
    # Several controllers of a file share its module.
    quiet, other = (controllers.load(f"{file}:{name}") for name in ("Quiet", "Other"))
    assert isinstance(other, type(quiet))
    for name, text, error in (
        ("none.py", "import holdfast\n", r"has no subclass of holdfast.Controller"),
        ("wrong.py", "x = = 1\n", "SyntaxError"),
    ):
        file = tmp_path / name
        file.write_text(text)
        with pytest.raises(ConsoleError, match=error):
            controllers.load(str(file))


@pytest.mark.parametrize("when", ["new", "start", "event"])
def test_a_failure_of_a_controller_shows_its_own_lines(tmp_path: Path, when: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(CONTROLLER)
    verbs = script(tmp_path, "link s1-s2 down\nwait 1s\n")
    done = run(ROUTER, "ring:3", "--simulated", "--controller", f"{file}:Quiet(fail='{when}')", "--script", verbs)
    assert done.returncode == 1
    assert str(file) in done.stderr
    assert ("nonsense()" if when == "new" else "self.deeper()") in done.stderr
    assert "holdfast/network.py" not in done.stderr
    assert ("NameError" if when == "new" else "ValueError: of my own") in done.stderr


def test_a_prompt_goes_on_after_the_failure_of_a_controller(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(CONTROLLER)
    verbs = "link s1-s2 down\nwait 1s\nlink s1-s2 up\nwait 1s\nnodes\nquit\n"
    done = run(ROUTER, "ring:3", "--simulated", "--controller", f"{file}:Quiet(fail='event')", stdin=verbs)
    assert done.returncode == 0
    assert done.stderr.count("ValueError: of my own") >= 2
    assert "10.0.1.1/24" in done.stdout


def test_a_simulation_at_a_prompt_takes_clients_from_outside() -> None:
    command = [*COMMAND, "run", str(ROUTER), "ring:3", "--simulated"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        while (
            found := re.match(r"P4Runtime at (\S+), device ids: s1 1, s2 2, s3 3", process.stdout.readline())
        ) is None:
            pass
        with GrpcClient(found[1], device_id=2) as client:
            assert client.is_primary
            parameters = {"port": 1, "src_mac": 1, "dst_mac": 2}
            client.insert("ipv4_lpm", {"dst_addr": "10.0.1.0/24"}, "forward", parameters)
            process.stdin.write("switch s2 tables ipv4_lpm\nquit\n")
            process.stdin.flush()
            assert "10.0.1.0/24 -> RouterIngress.forward(port=1" in process.stdout.read()
