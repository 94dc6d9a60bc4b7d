"""Runs a session of p4runtime-shell in a process of its own. It does not know the session."""

import json
import os
import sys
import traceback
from collections.abc import Callable

import p4runtime_sh.shell as sh


def say(step, **what):
    print(json.dumps({"step": step, **what}), flush=True)


def run(session: Callable[[], None]) -> None:
    """Run a session, then end the process with status 0 if the session succeeded, else 1."""
    code = 1
    try:
        session()
        sh.teardown()
        code = 0
    except Exception:  # noqa: BLE001 - printed, and reported by the exit code
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)  # the shell's threads would keep a failed session alive
