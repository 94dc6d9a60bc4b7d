"""The password of ``holdfast bng dial``: from a file, the environment or a terminal, and never a word of a command line."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast import interpreter
from holdfast.cli import app
from holdfast.subscribers import dialer, passwords
from holdfast.subscribers.subscriber import Account

ROOT = Path(__file__).parents[4]


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[Account]:
    accounts: list[Account] = []

    async def online(interface: str, account: Account, *more: object) -> None:
        accounts.append(account)

    monkeypatch.setattr(dialer, "dial", online)
    return accounts


def dial(*words: str, **how: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["bng", "dial", "eth0", "--user", "alice", *words], **how)  # type: ignore[arg-type]
    return done.exit_code, " ".join(re.sub(r"[│╭╮╰╯─]", " ", done.output).split()) + str(done.exception or "")


def test_a_password_on_the_command_line_is_refused_with_what_to_do(dialled: list[Account]) -> None:
    code, said = dial("--password", "hunter2", env={passwords.VARIABLE: "secret"})
    assert code == 2
    assert "every user of this machine can read it" in said
    assert "--password-file" in said
    assert "hunter2" not in said
    assert not dialled


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"secret", "secret"),
        (b"secret\n", "secret"),
        (b"secret\r\nmore\n", "secret"),
        (b"\xff \n", "\udcff "),
        (b"", ""),
    ],
)
def test_the_first_line_of_a_file_is_the_password(
    content: bytes, wanted: str, dialled: list[Account], tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    file.chmod(0o600)
    assert dial("--password-file", str(file), env={passwords.VARIABLE: "other"})[0] == 0
    assert dial("--password-file", "-", input=content)[0] == 0
    assert [each.password for each in dialled] == [wanted] * 2


def test_a_file_that_others_read_and_none_at_all_are_refused(dialled: list[Account], tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret")
    file.chmod(0o644)
    code, said = dial("--password-file", str(file))
    assert code != 0
    assert "chmod o-r" in said
    code, said = dial("--password-file", str(tmp_path / "none"))
    assert code != 0
    assert "No such file" in said
    assert dial("--password-file", "-", input=b"x" * 5000)[0] != 0
    code, said = dial(env={passwords.VARIABLE: None})
    assert code != 0
    assert "no password" in said
    assert not dialled


def test_the_environment_has_the_password_and_hands_it_on_to_nobody(
    dialled: list[Account], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(passwords.VARIABLE, "secret")
    assert passwords.password("alice", None) == "secret"
    assert passwords.VARIABLE not in os.environ


def test_a_terminal_is_asked_and_shows_nothing(tmp_path: Path) -> None:
    program = tmp_path / "ask.py"
    program.write_text("from holdfast.subscribers import passwords\nprint(repr(passwords.password('alice', None)))")
    controller, terminal = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name != passwords.VARIABLE}
    process = subprocess.Popen(
        interpreter.script(program),
        stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, env=environment, start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
    )  # fmt: skip
    os.close(terminal)
    seen, end_s = b"", time.monotonic() + 60
    while b"Password of alice:" not in seen and time.monotonic() < end_s:
        seen += os.read(controller, 1000)
    os.write(controller, b"hunter2\n")
    assert process.communicate(timeout=60)[0] == b"'hunter2'\n"
    os.set_blocking(controller, False)
    with suppress(OSError):
        seen += os.read(controller, 1000)
    os.close(controller)
    assert b"hunter2" not in seen


def test_no_text_and_no_program_puts_a_secret_on_a_command_line() -> None:
    """Check the examples in documents, and the programs of this repository."""
    option = re.compile(r"""--(password|secret|passphrase)(["']\s*,\s*["']|[ =])[\w$]""")
    assert option.search("--password secret")
    assert option.search('"--secret", "x"')
    for kind in ("*.md", "*.py", "Makefile", "*.sh"):
        for file in ROOT.rglob(kind):
            parts = file.relative_to(ROOT).parts
            if file == Path(__file__) or parts[0].startswith(".") or "target" in parts:
                continue
            assert not option.search(file.read_text()), file
