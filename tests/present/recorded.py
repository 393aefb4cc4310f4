"""Recorded texts: what is shown stays as it was when somebody last looked at it and found it good.

`SNAPSHOTS=write make test TESTS=tests/present` records them anew; look at the difference before it is kept.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from cockpit.present.spans import TEXT, Line

FOLDER = Path(__file__).with_name("snapshots")


def assert_as_recorded(name: str, lines: Iterable[str]) -> None:
    """Compares lines with the recorded ones of that name."""
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    file = FOLDER / f"{name}.txt"
    if os.environ.get("SNAPSHOTS") == "write":
        file.write_text(text)
    assert text.splitlines() == file.read_text().splitlines(), f"{name} looks different; see {__name__}"


def with_roles(line: Line) -> str:
    """A line's text; what has a role of its own stands in braces behind the role."""
    return "".join(each.text if each.role == TEXT or not each.text else f"{{{each.role}:{each.text}}}" for each in line)
