"""The tables of the README from the committed results, and the tests of both."""
