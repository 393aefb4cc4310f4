"""Filters and orders of every column of every table, against the facts that they are about."""

from __future__ import annotations

import importlib
import pkgutil
from operator import ge, gt, le, lt
from typing import Any

import msgspec
import pytest

import cockpit.config
import cockpit.present
from cockpit.present.columns import NOTHING, TableView, ValueKind
from cockpit.present.filters import compile_filter
from cockpit.present.sorting import comparables, sorted_places, sorted_rows
from cockpit.present.tables.all import TABLES
from tests.present.test_every_table import CONTEXT, rows_of

COMPARED = {">": gt, ">=": ge, "<": lt, "<=": le}
FIGURES = {ValueKind.INTEGER: "", ValueKind.NUMBER: "", ValueKind.SECONDS: "s", ValueKind.MIB: "M"}
"""Kinds of figures, with the unit of their facts."""

every_table = pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)


def passing(text: str, table: TableView, rows: list[Any]) -> list[int]:
    """The places of the rows that pass."""
    kept = set(map(id, compile_filter(text, table).passing(rows, CONTEXT)))
    return [place for place, row in enumerate(rows) if id(row) in kept]


def places(wanted: list[bool]) -> list[int]:
    return [place for place, each in enumerate(wanted) if each]


@pytest.mark.req("UI-22")
@every_table
def test_a_column_of_figures_is_compared_with_one(table: TableView) -> None:
    rows = rows_of(table.name)
    for column in (each for each in table.columns if each.kind in FIGURES):
        facts = column.facts(rows, CONTEXT)
        whole = sorted({fact for fact in facts if isinstance(fact, int)})
        for wanted in whole[len(whole) // 2 :][:1]:
            written = f"{wanted}{FIGURES[column.kind]}"
            for sign, compare in COMPARED.items():
                expected = places([fact is not None and compare(fact, wanted) for fact in facts])
                assert passing(f"{column.id}{sign}{written}", table, rows) == expected, column.id
            equal = places([fact == wanted for fact in facts])
            assert passing(f"{column.id}:{written}", table, rows) == equal, column.id
            others = places([fact != wanted for fact in facts])
            assert passing(f"!{column.id}:{written}", table, rows) == others, column.id


@pytest.mark.req("UI-22")
@every_table
def test_the_text_of_a_cell_is_found_by_its_column(table: TableView) -> None:
    rows = rows_of(table.name)
    for column in table.columns:
        cells = column.texts(rows, CONTEXT)
        for text in [each for each in cells if each.strip() and each != NOTHING and '"' not in each][:3]:
            expected = {place for place, each in enumerate(cells) if text.casefold() in each.casefold()}
            found = passing(f'{column.id}~"{text.upper()}"', table, rows)
            assert expected <= set(found), column.id
            others = passing(f'!{column.id}~"{text}"', table, rows)
            assert set(others) == set(range(len(rows))) - set(found), column.id


@pytest.mark.req("UI-23")
@pytest.mark.parametrize("descending", [False, True])
@every_table
def test_rows_are_sorted_by_any_column_and_those_without_a_value_are_last(table: TableView, descending: bool) -> None:
    rows = rows_of(table.name)
    for column in table.columns:
        found = sorted_places(rows, [(column, descending)], CONTEXT)
        values = comparables(column, column.facts(rows, CONTEXT))
        known = places([value is not None for value in values])
        absent = places([value is None for value in values])
        in_order = sorted(known, key=values.__getitem__, reverse=descending)
        assert found == [*in_order, *absent], column.id
        assert sorted_rows(rows, [(column, descending)], CONTEXT) == [rows[place] for place in found]


def _structs() -> list[Any]:
    """Every record of the packages whose values are handed from one part of the screen to another."""
    found = []
    for package in (cockpit.present, cockpit.config):
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(each.name)
            found += [
                one
                for one in vars(module).values()
                if isinstance(one, type) and issubclass(one, msgspec.Struct) and one.__module__ == module.__name__
            ]
    return found


@pytest.mark.parametrize("kind", _structs(), ids=lambda kind: kind.__name__)
def test_shown_rows_are_immutable(kind: Any) -> None:
    assert kind.__struct_config__.frozen
