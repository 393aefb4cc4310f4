"""The filter language: `state:failed user:ann cards>=4 wait>2h name~bert !spot "two words"`.

Terms stand beside each other and all must hold. `key:value` is equality (a comma separates alternatives, `none` is a
cell without a fact, `me` is the asker), `~` contains, `> >= < <=` compare numbers, durations, memory and moments, `!`
before a term negates it, quotes keep spaces together. A bare word is searched in every column. Case does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from cockpit.errors import CockpitError
from cockpit.present.columns import Column, Context, Kind, Table
from cockpit.present.nearest import nearest
from cockpit.present.operands import Operand, read_operand
from cockpit.present.safe import safe
from cockpit.present.states import STATE_ALIASES

Matches = Callable[[Any, Context], bool]
"""Whether a row passes."""

TERM: Final = re.compile(
    r"""\s*(?P<not>!)?(?:(?P<key>[A-Za-z_]\w*)(?P<op>>=|<=|!=|[:=~<>]))?(?P<value>(?:"(?:[^"\\]|\\.)*"|[^\s"])*)(?P<junk>")?""",
    re.ASCII | re.VERBOSE,
)
NONE_WORD: Final = "none"
ME: Final = "me"


class FilterError(CockpitError):
    """A filter that cannot be read: what, and what is near it."""


def compile_filter(text: str, table: Table) -> Matches:
    """What the text asks for, as a function. Raises `FilterError`."""
    terms = [_term(found, table) for found in _split(text)]
    return lambda row, context: all(term(row, context) for term in terms)


def _split(text: str) -> list[re.Match[str]]:
    found, position = [], 0
    end = len(text.rstrip())
    while position < end:
        term = TERM.match(text, position)
        if term is None or term.end() == position or term["junk"]:
            raise FilterError(f"filter: a quote in {safe(text[position:].strip())} is not closed")
        found.append(term)
        position = term.end()
    return found


def _term(found: re.Match[str], table: Table) -> Matches:
    value = re.sub(r'"((?:[^"\\]|\\.)*)"', lambda quoted: re.sub(r"\\(.)", r"\1", quoted[1]), found["value"])
    matches = _anywhere(value, table) if found["key"] is None else _keyed(found["key"], found["op"], value, table)
    negated = (found["not"] is not None) != (found["op"] == "!=")
    return (lambda row, context: not matches(row, context)) if negated else matches


def _anywhere(word: str, table: Table) -> Matches:
    wanted = word.casefold()
    return lambda row, context: any(wanted in _text(column, row, context) for column in table.columns)


def _keyed(key: str, op: str, value: str, table: Table) -> Matches:
    column = table.find(key)
    if column is None:
        hint = nearest(key, table.names())
        raise FilterError(
            f"filter: {table.name} have no column {safe(key)}"
            + (f"; did you mean {hint}?" if hint else "")
            + f" Columns: {', '.join(column.id for column in table.columns + table.keys)}."
        )
    if op == "~":
        wanted = value.casefold()
        return lambda row, context: wanted in _text(column, row, context)
    if op in {":", "=", "!="}:
        return _any_of([_equal(column, part) for part in value.split(",")])
    return _compared(column, op, value)


def _any_of(alternatives: list[Matches]) -> Matches:
    if len(alternatives) == 1:
        return alternatives[0]
    return lambda row, context: any(matches(row, context) for matches in alternatives)


def _equal(column: Column, value: str) -> Matches:
    if value.casefold() == NONE_WORD:
        return lambda row, context: column.fact(row, context) in {None, "", ()}
    if column.id == "state" and value.casefold() == "held":
        return lambda row, _: row.held_until is not None
    if column.kind in {Kind.TEXT, Kind.WORDS, Kind.RECORD}:
        return _same_word(column, value)
    operand = _operand(column, value)
    return lambda row, context: operand.number(column.fact(row, context)) == operand.wanted


def _same_word(column: Column, value: str) -> Matches:
    wanted = str(STATE_ALIASES.get(value.casefold(), value)).casefold() if column.id == "state" else value.casefold()

    def matches(row: Any, context: Context) -> bool:  # noqa: ANN401 - a row of any table
        sought = context.user.casefold() if wanted == ME and column.id == "user" else wanted
        return sought in _words(column, row, context)

    return matches


def _words(column: Column, row: object, context: Context) -> set[str]:
    if column.kind is Kind.RECORD:
        return set(_text(column, row, context).split(", "))
    fact = column.fact(row, context)
    return {str(word).casefold() for word in (fact if isinstance(fact, tuple) else (fact,)) if word is not None}


def _text(column: Column, row: object, context: Context) -> str:
    """What is searched in: the cell as shown, and the fact where the cell shows less."""
    fact = column.fact(row, context)
    shown = column.texts((row,), context)[0]
    return f"{shown}\n{fact}".casefold() if column.kind is Kind.TEXT and fact is not None else shown.casefold()


def _compared(column: Column, op: str, value: str) -> Matches:
    operand = _operand(column, value)
    compare = _COMPARISONS[op]

    def matches(row: Any, context: Context) -> bool:  # noqa: ANN401 - a row of any table
        number = operand.number(column.fact(row, context))
        return number is not None and compare(number, operand.wanted)

    return matches


def _operand(column: Column, value: str) -> Operand:
    operand = read_operand(column.kind, value)
    if isinstance(operand, str):
        raise FilterError(f"filter: {column.id} wants {operand}, not {safe(value) or 'nothing'}")
    return operand


_COMPARISONS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
}
