"""Tests of the control plane, and what they run in."""
