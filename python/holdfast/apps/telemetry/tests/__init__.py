"""Measurements of the collector, which are not shipped."""
