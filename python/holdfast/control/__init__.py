"""The parts that controllers are composed of: link states, routes, table entries. No application is known here."""
