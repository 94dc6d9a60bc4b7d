"""Real time: switches and hosts on Linux interfaces, and controllers in processes of their own.

``hosts``: a network namespace for each host of a topology; ``traffic_host`` and ``tcp_host`` are the programs that run in them.
``switch``: a switch without links, with ``control`` for its ports; ``benchmark`` measures it. ``tcp`` runs TCP on either clock, and
``agreement`` compares the two. ``remote_control``: controllers that reach their switches by gRPC. Simulation is not known here.
"""
