"""Programs that test 1+1 protection for long: a soak and a differential run. They are not shipped."""
