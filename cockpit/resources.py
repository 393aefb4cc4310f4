"""Data files that ship with cockpit: themes and recorded clusters.

They lie beside the package in a checkout and inside it in a wheel; both are read through `importlib.resources`.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def theme_files() -> list[Traversable]:
    """Return the themes that ship with cockpit: TOML files sorted by name."""
    return sorted((file for file in _folder("themes").iterdir() if file.name.endswith(".toml")), key=lambda f: f.name)


def fixture(path: str) -> Traversable:
    """Return a file or folder of `fixtures/`, such as `clusters/campus/nodes.toml`.

    Raises FileNotFoundError when cockpit ships no such file.
    """
    file = _folder("fixtures")
    for part in path.split("/"):
        file = file / part
    if ".." in path.split("/") or not (file.is_file() or file.is_dir()):
        raise FileNotFoundError(f"no fixture {path!r} ships with cockpit")
    return file


def _folder(name: str) -> Traversable:
    inside = files("cockpit") / name
    return inside if inside.is_dir() else files("cockpit") / ".." / name
