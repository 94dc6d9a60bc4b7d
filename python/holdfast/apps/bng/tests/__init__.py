"""What tests and measurements of the live gateway share."""
