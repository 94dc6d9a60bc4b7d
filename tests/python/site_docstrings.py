"""Reads this project's docstrings for the site: roles of Sphinx become code, its blocks become fenced ones.

``griffe_roles.py`` gives it each of them.
"""

from __future__ import annotations

import re
import textwrap

_ROLE = re.compile(r":(?:class|func|meth|mod|attr|data|exc):`(~?)([^`]+)`")
_BLOCK = re.compile(
    r"^(?P<head>.*?)(?:\.\. code-block:: (?P<language>\w+)|::)[ ]*\n\n(?P<body>(?:(?:[ ]{4}.*)?\n)+)", re.MULTILINE
)


def markdown(text: str) -> str:
    """Return a docstring in reStructuredText as Markdown."""

    def role(found: re.Match[str]) -> str:
        name = found[2].rpartition(".")[2] if found[1] else found[2]
        return f"`{name}`"

    def block(found: re.Match[str]) -> str:
        head = found["head"].strip()
        head = f"{head}{':' * (not found['language'])}\n\n" if head else ""
        body = textwrap.dedent(found["body"]).strip("\n")
        return f"{head}```{found['language'] or 'python'}\n{body}\n```\n\n"

    return _BLOCK.sub(block, _ROLE.sub(role, text) + "\n").strip()
