"""TCP between namespaces, compared with the simulation: its runs and its bounds, for tests and ``benches/live_agreement.py``."""
