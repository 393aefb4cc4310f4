"""Verifies an engine's store for `cockpit doctor`, briefly or whole (`--journal`), and reports in sentences."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cockpit.errors import StoreError
from cockpit.present import units
from cockpit.present.units import counted, grouped
from cockpit.runtime.findings import Finding, missing, note, ok
from cockpit.store.verifying import first_structural_damage, verify

if TYPE_CHECKING:
    from pathlib import Path

    from cockpit.store.verifying import Damage, Verified

_RESTORE = (
    "Stop the engine (`cockpit engine stop`; jobs keep running), keep a copy of {folder}, then restore it from a "
    "backup. Until then the engine may refuse to start."
)
_HISTORY = (
    "The engine starts without it: a later snapshot or record has what matters. Restore it from a backup if you need "
    "this part of the history."
)


_BRIEF_BYTES = 512 << 20
"""Larger files are not read by plain `doctor`, which users expect to answer in a few seconds."""


def brief_findings(state_folder: Path) -> list[Finding]:
    """Return whether the store's file is whole; nothing where there is none, or none that this user may read."""
    file = state_folder / "journal.db"
    if not os.access(file, os.R_OK):
        return []
    size = file.stat().st_size
    if size > _BRIEF_BYTES:
        return [note("journal", f"{file} ({units.size(size)}) was not read", "Run `cockpit doctor --journal`.")]
    try:
        damage = first_structural_damage(file)
    except StoreError as error:
        return [missing("journal", str(error), "`cockpit doctor --journal` says more.")]
    if damage:
        advice = f"`cockpit doctor --journal` lists the damage. {_restore(state_folder)}"
        return [missing("journal", f"{file} is damaged: {damage}", advice)]
    return [ok("journal", f"{file} has no damaged page")]


def journal_findings(state_folder: Path) -> list[Finding]:
    """Return what is wrong with the journal, without changing it. Raises `StoreError` when there is no store."""
    file = state_folder / "journal.db"
    verified = verify(file, state_folder / "archive")
    damages = [_damage(each, state_folder) for each in verified.damages]
    if verified.more:
        damages.append(
            missing(
                "more damage", f"{counted(verified.more, 'further thing')} of the same kinds", _restore(state_folder)
            )
        )
    whole = [] if damages else [ok("journal", f"{file} is whole")]
    return [*whole, *damages, *_looked_at(verified)]


def _damage(damage: Damage, folder: Path) -> Finding:
    return missing(damage.where, damage.what, _restore(folder) if damage.needed else _HISTORY)


def _restore(folder: Path) -> str:
    return _RESTORE.format(folder=folder)


def _looked_at(verified: Verified) -> list[Finding]:
    """Return what was verified, and what cannot be verified because an older cockpit wrote it."""
    summary = (
        f"{counted(verified.events, 'event')}, {grouped(verified.archived)} archived, "
        f"{counted(verified.snapshots, 'snapshot')}, {counted(verified.answers, 'answer')} to requests, "
        f"{counted(verified.ended, 'ended job')}"
    )
    findings = [ok("checked", summary)]
    if verified.unchecked:
        findings.append(
            note(
                "without checksum",
                f"{counted(verified.unchecked, 'event')} can be read, but not verified",
                "An older cockpit wrote them, before events had checksums. There is nothing to do.",
            )
        )
    return findings
