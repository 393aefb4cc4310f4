"""The words that may complete a filter: names of columns, values of the column whose name is typed, saved filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cockpit.present.columns import ValueKind, values
from cockpit.present.filters import HELD, ME, TERM, quoted
from cockpit.present.saved import SAVED

if TYPE_CHECKING:
    from cockpit.present.columns import Column, TableView

MOST_VALUES: Final = 200
"""Largest number of values of a column that are offered, in order of their text."""
MOST_ROWS: Final = 20_000
"""Largest number of rows whose values are looked at, as it happens at each letter."""
_WORDS: Final = frozenset({ValueKind.TEXT, ValueKind.WORDS})


class FilterWord(NamedTuple):
    """A text that a filter may continue with, and what it means."""

    line: str
    """The whole filter with the word at its end."""
    word: str
    about: str = ""


def filter_words(text: str, table: TableView, rows: Sequence[Any], saved: Mapping[str, str]) -> Iterator[FilterWord]:
    """Yield what may complete the last term of the filter; nothing for a bare word that begins no column's name.

    `rows` are all rows of the table: their values are offered where a column may have any text.
    """
    head, last = _last_term(text)
    if last is None:
        return
    sign = "!" if last.startswith("!") else ""
    term = TERM.fullmatch(last)
    if term is None or term["key"] is None:
        begun = last.removeprefix("!").casefold()
        yield from _names(f"{head}{sign}", begun, table, saved)
    elif (column := table.find(term["key"])) is not None and term["op"] in {":", "=", "!="}:
        before, comma, begun = term["value"].rpartition(",")
        lead = f"{head}{sign}{term['key']}{term['op']}{before}{comma}"
        yield from _values(lead, begun.strip('"').casefold(), column, table, rows)


def _last_term(text: str) -> tuple[str, str | None]:
    """Return the text before the last term, and that term; None within quotes, where a blank ends nothing."""
    head, blank, last = text.rpartition(" ")
    return f"{head}{blank}", None if text.count('"') % 2 and "," not in last else last


def _names(head: str, begun: str, table: TableView, saved: Mapping[str, str]) -> Iterator[FilterWord]:
    for column in (*table.columns, *table.keys):
        # Figures are compared more often than they are equal to one.
        sign = ":" if column.kind in _WORDS else ">="
        names = (name for name in (column.id, *column.aliases) if name.startswith(begun))
        for name in islice(names, 1):
            yield FilterWord(f"{head}{name}{sign}", f"{name}{sign}", column.help)
    for name, filter_text in saved.items():
        if f"{SAVED}{name}".casefold().startswith(begun):
            yield FilterWord(f"{head}{SAVED}{name}", f"{SAVED}{name}", filter_text)


def _values(lead: str, begun: str, column: Column, table: TableView, rows: Sequence[Any]) -> Iterator[FilterWord]:
    known: Iterable[tuple[str, str]] = ((str(each), "") for each in column.values)
    if column.id == "state" and table.find("held_until") is not None:
        known = (*known, (HELD, "a held container, or a queued job on hold"))
    elif not column.values:
        known = [
            *((ME, "your own") for _ in "1" if column.id == "user"),
            *((each, "") for each in _texts(column, rows, begun)),
        ]
    for word, about in known:
        if word.casefold().startswith(begun):
            yield FilterWord(f"{lead}{_as_value(word)}", word, about)


def _texts(column: Column, rows: Sequence[Any], begun: str) -> list[str]:
    """Return the different texts of the column that begin so: those that are its rows' own attributes."""
    if column.kind not in _WORDS or column.derive is not None:
        return []
    facts = {fact for fact in values(rows[:MOST_ROWS], column.field) if fact is not None}
    words = {word for fact in facts for word in (fact if isinstance(fact, tuple) else (fact,))}
    # Jobs may have as many names as there are jobs: not all of them are sorted.
    return nsmallest(MOST_VALUES, (text for text in map(str, words) if text and text.casefold().startswith(begun)))


def _as_value(word: str) -> str:
    return word if TERM.fullmatch(word) and not set(word) & {" ", ",", '"'} else quoted(word)
