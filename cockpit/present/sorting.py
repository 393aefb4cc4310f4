"""Rows in the order of named columns: `cards,-submitted_at` (minus: largest first). Cells without a fact come last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from cockpit.present.columns import Column, Context, Fraction

Row = TypeVar("Row")


def sorted_rows(rows: Sequence[Row], keys: Sequence[tuple[Column, bool]], context: Context) -> list[Row]:
    """`keys` are columns with whether they descend, the most important first. Stable."""
    ordered = list(rows)
    for column, descending in reversed(keys):
        facts = column.facts(ordered, context)
        order = sorted(
            range(len(ordered)),
            key=lambda index, facts=facts: _comparable(facts[index]),  # type: ignore[misc]  # mypy cannot infer a lambda's default
            reverse=descending,
        )
        present = [index for index in order if facts[index] is not None]
        absent = [index for index, fact in enumerate(facts) if fact is None]
        ordered = [ordered[index] for index in present + absent]
    return ordered


def _comparable(fact: Any) -> tuple[int, Any]:  # noqa: ANN401 - a fact of any kind
    if isinstance(fact, bool | int | float):
        return 0, fact
    if isinstance(fact, Fraction):
        return 0, fact.used
    return (1, "") if fact is None else (1, str(fact).casefold())
