"""Operations of what runs: a Unix socket for its operators, and an HTTP server for those who watch.

A gateway, a switch, a collector and a live network say what they answer; who may ask, how much and how long is decided here.

- :mod:`directory`: where the sockets of this machine are, and who may have put one there.
- :mod:`clients`: clients of a listening socket, few at a time, each with a bounded question and bounded patience.
- :mod:`verbs`: operators' requests and answers as models, over a Unix socket with a line of JSON each.
- :mod:`pages`: ``/metrics``, ``/snapshot`` and ``/events`` over HTTP.
- :mod:`exposition`: families of metrics as Prometheus' text and as JSON.
- :mod:`events`: what happens, for those who listen.
"""
