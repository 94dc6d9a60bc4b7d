"""Common parts of all experiments' reports."""
