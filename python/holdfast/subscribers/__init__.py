"""The control plane of a broadband network gateway: PPPoE, PPP, addresses and accounting. It knows no P4 and no P4Runtime.

`plane.py` is the interface between the control plane and the user plane. `holdfast.apps.bng` implements it with P4 switches.
"""
