"""Tests of the operations room, and of what gateways, switches, collectors and networks show in it."""
