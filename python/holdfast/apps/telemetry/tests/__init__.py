"""What measures the collector, and is not shipped."""
