"""``holdfast compare``: every mechanism with the same scenario and failures, and with the same measures.

A :mod:`world` is what is simulated. ``inputs`` is what scenarios of all worlds have, ``competitor`` what competes, ``ranking`` what
follows from runs; ``world`` makes the runs and writes tables, summary and report (``page``, ``drawing``, ``formats``).

Networks are a world (``results``): ``scenario`` and ``traffic_file`` are what is compared upon, ``flows`` its unit,
``mechanisms`` the registry of what is compared. ``runs`` and ``measures`` are a run and its instruments, ``rows`` what they leave,
``live`` a run in real time, with :mod:`holdfast.live.traffic_host` in each host. ``comparison`` is what the runs say, ``advice``
and ``doubts`` the same in words, ``report`` and ``terminal`` show it. ``gateways`` is another world.
"""
