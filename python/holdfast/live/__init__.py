"""Real time: switches and hosts on Linux interfaces, and controllers in processes of their own.

``hosts``: a network namespace for each host of a topology; ``traffic_host`` is the program that runs in it.
``switch``: a switch without links, with ``control`` for its ports; ``benchmark`` measures it. ``remote_control``: controllers that
reach their switches by gRPC. Simulation is not known here.
"""
