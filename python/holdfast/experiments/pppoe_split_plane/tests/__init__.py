"""Checks of the committed results, and what writes the README's tables."""
