"""Translate the records in an attempt's folder into the engine's terms. The functions read files, and so may block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.model.attempt import ExitStatus
from cockpit.model.spec import HoldCards
from cockpit.runtime.containers.entering import EntryFacts
from cockpit.runtime.containers.shim.identity import boot_id

if TYPE_CHECKING:
    from cockpit.model.ids import Millis
    from cockpit.runtime.containers.shim.attempt import Attempt, Record

NEVER_BEGAN = "the holder of its container was killed from outside before the command began"


def exit_status(attempt: Attempt, record: Record | None) -> ExitStatus:
    """Return how a replica ended. `record`: its exit record; None if its holder died without writing one."""
    if record is None:
        if not may_have_begun(attempt):
            return ExitStatus(lost=NEVER_BEGAN, unstarted=True)
        return ExitStatus(lost=_how_lost(attempt))
    return ExitStatus(
        code=record.get("code"),
        signal=record.get("signal"),
        oom=record.get("oom", False),
        lost=record.get("lost", ""),
        hook=record.get("hook", ""),
        unstarted=record.get("unstarted", False),
    )


def may_have_begun(attempt: Attempt) -> bool:
    """Return whether the command may have run. After a reboot it is assumed: records may not have reached the disk."""
    identity = attempt.read("shim.json")
    if identity is not None and identity["boot_id"] != boot_id():
        return True
    return any(attempt.read(name) is not None for name in ("beginning.json", "started.json", "exit.json"))


def entry_facts(attempt: Attempt) -> EntryFacts:
    """Return what a user should know when entering the container."""
    identity = attempt.read("shim.json") or {}
    kept = attempt.read("exit.json") is not None
    keeps_cards = (attempt.read("kept.json") or {}).get("cards") == HoldCards.KEEP
    return EntryFacts(
        kept=kept,
        remounted=was_made_again(attempt) and not is_of_podman(attempt),
        plain=identity.get("plain", False),
        cards_freed=kept and not keeps_cards and bool(attempt.plan()["kept_env"] or attempt.plan()["devices"]),
    )


def is_of_podman(attempt: Attempt) -> bool:
    return bool((attempt.read("plan.json") or {}).get("podman"))


def was_made_again(attempt: Attempt) -> bool:
    """Return whether the container was made a second time, after the holder that ran the command had gone."""
    return bool((attempt.read("shim.json") or {}).get("remounted"))


def mark_kept(attempt: Attempt, cards: HoldCards, until: Millis | None = None) -> None:
    """Mark the container as held. If a killed holder left no exit record, write one, so that it can be entered."""
    # Before the exit record below: with that record but without this mark, `enter` would take the cards for freed.
    attempt.write("kept.json", {"cards": cards.value, "until": until})
    if attempt.read("exit.json") is None:
        # In the order of `Holder._end`: `running` is gone before a record says that the command has ended.
        attempt.forget("running")
        attempt.write_exit({"lost": _how_lost(attempt)})


def _how_lost(attempt: Attempt) -> str:
    identity = attempt.read("shim.json")
    if identity is not None and identity["boot_id"] != boot_id():
        return "the machine was restarted while it ran"
    return "its container was killed from outside: the holder process is gone, and everything in it with it"
