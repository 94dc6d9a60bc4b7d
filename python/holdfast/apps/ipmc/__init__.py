"""IP multicast: routers with (S,G) and (*,G) entries, and the controller that plans their trees."""

from holdfast.apps.ipmc.controller import IpmcController, compile_ipmc
from holdfast.apps.ipmc.planning import Channel, Forwarding, plan

__all__ = ["Channel", "Forwarding", "IpmcController", "compile_ipmc", "plan"]
