"""Modules that are loaded once something of them is used, for what many commands never use."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for the module of that name; mypy is shown the module itself, under `TYPE_CHECKING`."""

    __spec__ = None  # what an import looks at, to see whether another one is under way

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:  # noqa: ANN401 - whatever the module has
        found = getattr(import_module(self._name), attribute)
        setattr(self, attribute, found)  # found at once the next time
        return found
