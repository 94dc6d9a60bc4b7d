"""What the reports of all experiments share."""
