"""The choice of the emulator: the fastest one that is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cockpit.errors import CockpitError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cockpit.tui.emulator.base import Emulator

NEITHER: Final = "The terminal pane needs pyghostty or pyte: pip install 'cockpit-cluster[terminal]'."


def new_emulator(columns: int, rows: int) -> Emulator:
    """Make the fastest emulator that is installed. Raises `CockpitError` where there is none."""
    for make in EMULATORS.values():
        try:
            return make(columns, rows)
        except (ImportError, OSError):  # OSError: its library does not load on this machine
            continue
    raise CockpitError(NEITHER)


def _ghostty(columns: int, rows: int) -> Emulator:
    from cockpit.tui.emulator.ghostty import GhosttyEmulator

    return GhosttyEmulator(columns, rows)


def _pyte(columns: int, rows: int) -> Emulator:
    from cockpit.tui.emulator.pyte_emulator import PyteEmulator

    return PyteEmulator(columns, rows)


EMULATORS: Final[Mapping[str, Callable[[int, int], Emulator]]] = {"ghostty": _ghostty, "pyte": _pyte}
"""Each emulator by name, best first. Calling one raises `ImportError` where its package is not installed."""
