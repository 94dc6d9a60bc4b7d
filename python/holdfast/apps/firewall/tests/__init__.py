"""The model of the firewall and the comparison with it; not in the wheel."""
