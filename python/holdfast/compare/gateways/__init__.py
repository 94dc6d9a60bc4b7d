"""``holdfast compare gateways``: subscribers behind gateways of one plane or of several, of which something fails.

``scenario`` is what is compared upon, ``mechanisms`` the gateways that are compared. ``simulation`` is a network of one of them,
with control planes, modelled subscribers (``access``), a RADIUS server (``radius_server``) and the core (``core``). ``runs`` is a
run and what it measures, ``comparison`` what the runs say, ``report`` the words, tables and pictures; ``results`` is the world.
"""
