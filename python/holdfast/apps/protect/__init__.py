"""P4-Protect: 1+1 path protection for IPv4."""

from holdfast.apps.protect.controller import Connection, Flow, ProtectController, compile_protect

__all__ = ["Connection", "Flow", "ProtectController", "compile_protect"]
