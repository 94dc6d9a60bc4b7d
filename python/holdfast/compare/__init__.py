"""``holdfast compare``: every mechanism on the same topology, traffic and failures, with the same measures.

``scenario`` and ``traffic_file`` are what is compared upon, ``flows`` its unit, ``mechanisms`` the registry of what is compared.
``runs`` and ``measures`` are a run and its instruments, ``rows`` what they leave, ``live`` a run in real time, with
:mod:`holdfast.live.traffic_host` in each host. ``comparison`` is what the runs say, ``advice`` the same in words; ``report``,
``drawing``, ``results`` and ``terminal`` show and write it.
"""
