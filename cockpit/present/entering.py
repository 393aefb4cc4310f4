"""What a person is told on entering a container."""

from __future__ import annotations


def entry_notice(*, kept: bool, remounted: bool, cards_freed: bool) -> str:
    """One sentence about a kept container; nothing about one whose command still runs."""
    if not kept:
        return ""
    gone = "its processes and /tmp are gone" if remounted else "its processes are gone"
    cards = "; its cards are free (debug_hold: {cards: keep} keeps them)" if cards_freed else ""
    return f"The files are as the job left them; {gone}{cards}."
