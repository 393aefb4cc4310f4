"""Lines for a view without rows: why it is empty, and what to do first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cockpit.present import units
from cockpit.present.spans import ACCENT, MUTED, STRONG, Line, Span, line

INDENT = "   "


def empty_lines(capacity: str, hidden: int, keys: Mapping[str, str], *, demo: bool) -> Iterator[Line]:
    """Yield the lines of an empty Jobs view. `capacity`: a sentence about the cluster; `hidden`: number of jobs that a
    filter hides; `keys`: the first key of each action by the action's id."""
    yield line()
    # A list that a filter empties is not an empty cluster: the way back comes first, not how to submit.
    if hidden:
        yield line(Span(f"{INDENT}No job matches.", STRONG), Span(f" {_hidden_words(hidden)}", MUTED))
        yield line()
        yield _offers(keys, ("back", "show them all"), ("filter", "another filter"))
        return
    yield line(Span(f"{INDENT}{capacity} No jobs yet.", STRONG))
    yield line()
    demo_offer = () if demo else ((":demo", "open a simulated cluster"),)
    yield _offers(keys, ("new", "submit one"), *demo_offer, ("help", "help"))


def no_cards_lines(hidden: int, keys: Mapping[str, str]) -> Iterator[Line]:
    """Yield the lines of an empty Cards view. `hidden`: number of cards and slices that a filter hides."""
    yield line()
    if hidden:
        yield line(Span(f"{INDENT}No card matches.", STRONG))
        yield line()
        yield _offers(keys, ("back", "show them all"), ("filter", "another filter"))
        return
    yield line(Span(f"{INDENT}No node of this cluster has a card.", STRONG))
    yield line()
    yield line(
        Span(INDENT),
        Span("cockpit doctor", ACCENT),
        "  says which cards of this machine were found, and what is missing",
    )
    yield line(
        Span(INDENT), Span("cards", ACCENT), "           of a node in cluster.toml declare cards that were not found"
    )
    yield line()
    yield _offers(keys, ("nodes", "the nodes"), ("jobs", "the jobs"))


def _hidden_words(hidden: int) -> str:
    return f"{units.counted(hidden, 'job')} {'is' if hidden == 1 else 'are'} hidden."


def _offers(keys: Mapping[str, str], *offers: tuple[str, str]) -> Line:
    """Return a line of offers such as `n  submit one`; an action without a key is shown as the command to type."""
    shown = [Span(INDENT)]
    for action, words in offers:
        shown += [Span(keys.get(action, action), ACCENT), Span(f"  {words}       ")]
    return tuple(shown)
