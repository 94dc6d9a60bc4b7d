"""A broadband network gateway: PPPoE sessions of IPv4 and IPv6, on one switch or on several behind a load balancer."""

from holdfast.apps.bng.controller import SingleGateway, SplitCables, SplitGateway
from holdfast.apps.bng.edges import AccessPort, ControlRates, CorePort, Edges, Rate, Route
from holdfast.apps.bng.program import BALANCER_REASONS, REASONS, compile_balancer, compile_bng
from holdfast.apps.bng.single import SinglePlane
from holdfast.apps.bng.split import AuthenticationPlane, Balancer, ForwardingPlane, SplitPlane

__all__ = [
    "BALANCER_REASONS",
    "REASONS",
    "AccessPort",
    "AuthenticationPlane",
    "Balancer",
    "ControlRates",
    "CorePort",
    "Edges",
    "ForwardingPlane",
    "Rate",
    "Route",
    "SingleGateway",
    "SinglePlane",
    "SplitCables",
    "SplitGateway",
    "SplitPlane",
    "compile_balancer",
    "compile_bng",
]
