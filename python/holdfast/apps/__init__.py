"""Applications: each folder holds a P4 program, its controller, and a README with its tables, keys and counters."""
