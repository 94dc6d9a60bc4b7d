"""The extension of griffe that gives mkdocstrings this project's docstrings as Markdown; ``docs/zensical.toml`` names its path.

Griffe is in the site's environment alone, so nothing else is here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import griffe

sys.path.append(str(Path(__file__).parent))
from site_docstrings import markdown


class Roles(griffe.Extension):
    """Turns the docstring of each object into Markdown."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object that griffe has read."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
