"""The filter language: `state:failed user:ann cards>=4 wait>2h name~bert !spot "two words"`.

Terms are separated by blanks, and a row must pass all of them. `key:value` is equality (a comma separates alternatives,
`none` is a cell without a fact, `me` is the user), `~` contains, `> >= < <=` compare numbers, durations, memory and
moments, `!` before a term negates it, and quotes keep words with blanks together. A bare word is searched in every
column. Case does not matter. `@name` is the filter that was saved under that name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from operator import ge, gt, le, lt
from typing import Any, Final, TypeVar

import msgspec

from cockpit.errors import CockpitError
from cockpit.model.jobrow import JobRows
from cockpit.model.quantity import parse_duration, parse_memory
from cockpit.model.reasons import Held
from cockpit.present.columns import FRACTIONS, Column, Context, TableView, ValueKind
from cockpit.present.moments import parse_moment
from cockpit.present.nearest import nearest
from cockpit.present.row_filters import Mask, all_of, any_of, containing, fact_is, negated
from cockpit.present.safe import safe
from cockpit.present.saved import SAVED, Saved, none_saved
from cockpit.present.searching import SearchMemory, anywhere
from cockpit.present.states import STATE_ALIASES


class Operand(msgspec.Struct, frozen=True):
    """The number to compare with, in the unit of the column's facts."""

    wanted: float
    of_totals: bool = False
    """Whether the column's facts are fractions, of which the total is compared."""

    def numbers(self, facts: list[Any]) -> list[float | None]:
        """Return the figure to compare for each fact: the total for a fraction; None: nothing to compare."""
        return [None if fact is None else fact.total for fact in facts] if self.of_totals else facts


def read_operand(kind: ValueKind, text: str) -> Operand | str:
    """Return the operand, or the sentence about the operand that this kind of column needs."""
    if kind not in _READERS:
        return "a word after : or ~"
    read, wants = _READERS[kind]
    number = read(text)
    return Operand(number, kind in FRACTIONS) if isinstance(number, int | float) else wants


def _number(text: str) -> float | None:
    """Return the figure that the text writes in plain digits; None for what only Python reads as one, such as `1_2` or
    `nan`."""
    return float(text) if _FIGURE.fullmatch(text) else None


_FIGURE: Final = re.compile(r"[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,2})?", re.ASCII)
_NUMBER: Final = (_number, "a number")
_MEMORY: Final = (parse_memory, "memory such as 512M or 4G")

_READERS: Final[dict[ValueKind, tuple[Callable[[str], float | str | None], str]]] = {
    ValueKind.INTEGER: _NUMBER,
    ValueKind.NUMBER: _NUMBER,
    ValueKind.FRACTION: _NUMBER,
    ValueKind.MIB: _MEMORY,
    ValueKind.MEMORY_FRACTION: _MEMORY,
    ValueKind.SECONDS: (parse_duration, "a duration such as 90s, 10m, 2h or 1d"),
    ValueKind.MOMENT: (parse_moment, "a moment such as 2026-10-05 or 2026-10-05T09:30"),
}


Row = TypeVar("Row")

TERM: Final = re.compile(
    r"""\s*(?P<not>!)?(?:(?P<key>[A-Za-z_]\w*)(?P<op>>=|<=|!=|[:=~<>]))?(?P<value>(?:"(?:[^"\\]|\\.)*"|[^\s"])*)(?P<junk>")?""",
    re.ASCII | re.VERBOSE,
)
NONE_WORD: Final = "none"
ME: Final = "me"
HELD: Final = "held"


class FilterError(CockpitError):
    """A filter that cannot be parsed; the text says what is wrong, and what was probably meant."""


class Filter:
    """A parsed filter text: the terms that a row must pass."""

    def __init__(self, terms: Sequence[Mask]) -> None:
        self._terms = terms

    def __call__(self, row: object, context: Context) -> bool:
        """Return whether the row passes every term."""
        return bool(self.passing((row,), context))

    def passing(self, rows: Iterable[Row], context: Context) -> list[Row]:
        """Return the rows that pass, in their order."""
        left = list(rows)
        # Term by term over the rows that are left: a first term that few rows pass makes all others cheap.
        for term in self._terms:
            left = list(compress(left, term(left, context)))
        return left

    def passing_jobs(self, rows: JobRows, context: Context) -> JobRows:
        """Return the rows that pass, without making an object of each row."""
        for term in self._terms:
            rows = rows.where(term(rows, context))
        return rows


def compile_filter(
    text: str, table: TableView, memory: SearchMemory | None = None, saved: Saved = none_saved
) -> Filter:
    """Compile the text to a filter. `memory` speeds up repeated searches for bare words; `saved` is called only where
    the text names a saved filter.

    Raises `FilterError`.
    """
    return Filter(list(_terms(text, table, memory, saved, ())))


def whole_word_hint(text: str, table: TableView, rows: Any, context: Context) -> str:  # noqa: ANN401 - rows of any kind
    """Return which term of a filter that leaves nothing would match parts of words; empty: none would."""
    for term in _split(text):
        column = table.find(term["key"] or "")
        if (
            column is None
            or column.kind is not ValueKind.TEXT
            or term["not"] is not None
            or term["op"] not in {":", "="}
        ):
            continue
        value = term["value"].strip('"')
        # A user who types `name:bert` often means names with bert in them.
        matches = sum(containing(column, value)(rows, context))
        if matches and not sum(_equal(column, table, value)(rows, context)):
            return (
                f"No {column.id} is {safe(value)}: {safe(term[0].strip())} wants the whole of it; "
                f"{column.id}~{safe(term['value'])} finds it in {matches}."
            )
    return ""


def _terms(
    text: str, table: TableView, memory: SearchMemory | None, saved: Saved, inside: tuple[str, ...]
) -> Iterator[Mask]:
    """Yield the mask of each term. `inside`: the names of the saved filters that contain this text."""
    for term in _split(text):
        # In quotes a word with @ is searched, as the quote comes before the sign.
        if term["key"] is None and term["value"].startswith(SAVED):
            name = term["value"].removeprefix(SAVED)
            terms = list(_terms(_saved_text(name, table, saved, inside), table, memory, saved, (*inside, name)))
            yield negated(all_of(terms)) if term["not"] is not None else all_of(terms)
        else:
            yield _term(term, table, memory)


def _saved_text(name: str, table: TableView, saved: Saved, inside: tuple[str, ...]) -> str:
    """Return the text of a saved filter. Raises `FilterError` for an unknown name and for a filter that contains
    itself."""
    known = saved(table.name)
    # Saved filters are files that the user may edit: without this one that names itself would never end.
    if name in inside:
        raise FilterError(f"filter: @{safe(name)} contains itself")
    if name not in known:
        names = ", ".join(f"{SAVED}{each}" for each in sorted(known))
        raise FilterError(
            f"filter: no filter of {table.name} is saved as @{safe(name)}; "
            + (f"there are {safe(names)}" if names else f'a word in quotes is searched: "@{safe(name)}"')
        )
    return known[name]


def quoted(text: str) -> str:
    """Return the text quoted, so that a filter reads it as one value whatever characters it has."""
    escaped = re.sub(r'(["\\])', r"\\\1", text)
    return f'"{escaped}"'


def _split(text: str) -> list[re.Match[str]]:
    """Return the terms of a filter text. Raises `FilterError` for a quote that is not closed."""
    terms, position = [], 0
    end = len(text.rstrip())
    while position < end:
        term = TERM.match(text, position)
        # The pattern matches everything but a quote without its end.
        if term is None or term.end() == position or term["junk"]:
            raise FilterError(f"filter: a quote in {safe(text[position:].strip())} is not closed")
        terms.append(term)
        position = term.end()
    return terms


def _term(term: re.Match[str], table: TableView, memory: SearchMemory | None) -> Mask:
    value = re.sub(r'"((?:[^"\\]|\\.)*)"', lambda quoted: re.sub(r"\\(.)", r"\1", quoted[1]), term["value"])
    mask = anywhere(table, value, memory) if term["key"] is None else _keyed(term["key"], term["op"], value, table)
    # `!key!=value` negates twice.
    return negated(mask) if (term["not"] is not None) != (term["op"] == "!=") else mask


def _keyed(key: str, op: str, value: str, table: TableView) -> Mask:
    """Return the mask of a term with a key. Raises `FilterError` for an unknown column or a wrong value."""
    column = table.find(key)
    if column is None:
        hint = nearest(key, table.names())
        raise FilterError(
            f"filter: {table.name} have no column {safe(key)}"
            + (f"; did you mean {hint}?" if hint else ".")
            + f" Columns: {', '.join(column.id for column in table.columns + table.keys)}."
        )
    if op == "~":
        return containing(column, value)
    if op in {":", "=", "!="}:
        return any_of([_equal(column, table, part) for part in value.split(",")])
    return _compared(column, op, value)


def _check_value(column: Column, value: str) -> None:
    """Raise `FilterError` where the column has only certain values and this is not one of them."""
    known = [*map(str, column.values)]
    aliases = [*STATE_ALIASES, HELD] if column.id == "state" else []
    if known and value.casefold() not in {each.casefold() for each in (*known, *aliases)}:
        hint = nearest(value, [*known, *aliases])
        raise FilterError(
            f"filter: {column.id} is never {safe(value)}"
            + (f"; did you mean {hint}?" if hint else ".")
            + f" Values: {', '.join(known)}."
        )


def _equal(column: Column, table: TableView, value: str) -> Mask:
    """Return the mask of rows that equal the value: `none`, a state, a word, a task's id or a number."""
    if value.casefold() == NONE_WORD:
        return fact_is(column, lambda fact, _: fact in {None, "", ()})
    if column.id == "state" and value.casefold() == HELD and (held_until := table.find("held_until")) is not None:
        return _held(held_until, table.find("reason"))
    if column.kind is ValueKind.RECORD:
        wanted = value.casefold()
        # A record is compared by its words, since users cannot write its JSON.
        return lambda rows, context: [wanted in text.casefold().split(", ") for text in column.texts(rows, context)]
    if column.kind in {ValueKind.TEXT, ValueKind.WORDS}:
        _check_value(column, value)
        return _same_word(column, value)
    # The fact of a task's id is one large number; users write what they see.
    if column.id == "id" and TASK.fullmatch(value):
        return lambda rows, context: [value == text for text in column.texts(rows, context)]
    operand = _operand(column, value)
    return lambda rows, context: [number == operand.wanted for number in operand.numbers(column.facts(rows, context))]


def _held(held_until: Column, reason: Column | None) -> Mask:
    """Return the mask of jobs whose containers are held after they failed, and of queued jobs that are on hold.

    To users both are a state; in the model they are a property beside the state, which stays `error`, and the reason of
    a job whose state is `queued`.
    """
    container = fact_is(held_until, lambda fact, _: fact is not None)
    return container if reason is None else any_of([container, fact_is(reason, lambda fact, _: isinstance(fact, Held))])


def _same_word(column: Column, value: str) -> Mask:
    # Words of Slurm and Kubernetes find the states that they mean here.
    wanted = str(STATE_ALIASES.get(value.casefold(), value)).casefold() if column.id == "state" else value.casefold()

    def same(fact: Any, context: Context) -> bool:  # noqa: ANN401 - a fact of any kind
        sought = context.user.casefold() if wanted == ME and column.id == "user" else wanted
        words = fact if isinstance(fact, tuple) else (fact,)
        return any(word is not None and str(word).casefold() == sought for word in words)

    return fact_is(column, same)


def _compared(column: Column, op: str, value: str) -> Mask:
    operand = _operand(column, value)
    compare, wanted = _COMPARISONS[op], operand.wanted

    def holds(rows: Sequence[Any], context: Context) -> list[bool]:
        numbers = operand.numbers(column.facts(rows, context))
        return [number is not None and compare(number, wanted) for number in numbers]

    return holds


def _operand(column: Column, value: str) -> Operand:
    operand = read_operand(column.kind, value)
    if isinstance(operand, str):
        raise FilterError(f"filter: {column.id} wants {operand}, not {safe(value) or 'nothing'}")
    return operand


TASK: Final = re.compile(r"\d+_\d+", re.ASCII)
"""Pattern of an array task's id, such as `123_4`; it is not a number."""

_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {">": gt, ">=": ge, "<": lt, "<=": le}
