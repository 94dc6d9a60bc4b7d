"""An IPv4 router and the controller that fills it with shortest paths."""

from holdfast.apps.router.controller import RouterController, compile_router

__all__ = ["RouterController", "compile_router"]
