"""Helpers of the live gateway's tests and measurements."""
