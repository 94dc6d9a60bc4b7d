"""Fixtures and options of all Python tests."""

from hypothesis import HealthCheck, settings

# How long an example takes says something of the machine and what else it does, not of the code.
settings.register_profile("holdfast", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("holdfast")
