"""Words for the progress of copies."""

from __future__ import annotations

from typing import Final

from cockpit.model.staging import Progress
from cockpit.present import units

_MIB: Final = 1 << 20


def percent(progress: Progress | None) -> str:
    """Return `43%`; `–` where nothing is copied or the total is unknown."""
    return f"{100 * progress.done // progress.total}%" if progress is not None and progress.total else "–"


def copying_sentence(progress: Progress | None) -> str:
    """Return the sentence about a copy in progress: `copies its files: 1.2G of 2G, 310M a second, 3 s left`."""
    if progress is None:
        return "its files are copied; it starts with the others of its replicas"
    if not progress.total:
        return "looks through what it has to copy"
    done, total = units.memory(progress.done // _MIB), units.memory(progress.total // _MIB)
    rate = f", {units.memory(progress.rate // _MIB)} a second" if progress.rate >= _MIB else ""
    left = f", {units.spoken(progress.seconds_left)} left" if progress.seconds_left else ""
    return f"copies its files: {done} of {total}{rate}{left}"
