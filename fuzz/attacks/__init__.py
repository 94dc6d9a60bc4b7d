"""Attackers of each room: sequences of their steps, beside honest users, and laws that are checked after each step.

Worlds and clients are written from the RFCs, and know the rooms by their public surface alone.
"""
