"""IP multicast: routers with (S,G) and (*,G) entries, and the controller that plans their trees."""

from holdfast.apps.ipmc.controller import IpmcController, compile_ipmc
from holdfast.apps.ipmc.planning import Root, tree
from holdfast.control.membership.members import channel, channel_of

__all__ = ["IpmcController", "Root", "channel", "channel_of", "compile_ipmc", "tree"]
