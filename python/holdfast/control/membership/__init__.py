"""Members of multicast groups: IGMP and MLD as routers speak them, and the channels that their hosts want.

``messages``: the messages of both protocols, with ``igmp`` and ``mld`` for the bytes and ``frames`` for Ethernet around them.
``filters``: the sources that one port wants of one group. ``querier``: a router's part on one port. ``channels``: the channels that
all ports together want. ``overlay``: these parts for a controller. ``members``: hosts whose memberships are named instead. No
program and no table of a switch is known here.
"""
