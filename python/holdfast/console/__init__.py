"""The console of a running network: verbs for people, scripts and programs, on both clocks. See the README beside this file."""

from holdfast.console.session import Result, Session

__all__ = ["Result", "Session"]
