"""Shorternet: forwarding by a header of four bytes, with a lossless gateway to IP at its edge."""

from holdfast.apps.shorternet.contexts import Context, Contexts, Flow
from holdfast.apps.shorternet.controller import ShorternetController, compile_shorternet

__all__ = ["Context", "Contexts", "Flow", "ShorternetController", "compile_shorternet"]
