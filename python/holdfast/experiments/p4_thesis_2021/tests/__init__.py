"""The tables of the README from the committed results, the fit of the rates, and the tests of both."""
