"""``python -m holdfast``: the command, also where its script is not on the path."""

from holdfast.cli import main

main()
