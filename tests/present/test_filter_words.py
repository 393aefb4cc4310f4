"""What may complete a filter."""

from __future__ import annotations

import pytest

from cockpit.present.filter_words import filter_words
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.nodes import NODES
from tests.doubles.samples import job_row

SAVED = {"mine": "user:me"}


def words(text: str, *rows: object, table: object = JOBS) -> list[str]:
    return [each.line for each in filter_words(text, table, rows, SAVED)]


@pytest.mark.req("UI-22", "UI-30")
def test_columns_come_with_the_sign_that_fits_them() -> None:
    assert words("sta")[0] == "state:"
    assert words("card")[0] == "cards>="
    assert "!user:" in words("!us")
    assert words("@m") == ["@mine"]
    assert words("train") == []


@pytest.mark.req("UI-22", "UI-30")
def test_values_are_those_of_the_column_or_of_the_rows() -> None:
    assert words("name~x state:que") == ["name~x state:queued"]
    assert "state:held" in words("state:")
    rows = [job_row(1, name="two words", user="ann"), job_row(2, name="b,c", user="bob")]
    assert words("user:", *rows) == ["user:me", "user:ann", "user:bob"]
    assert words("user:ann,b", *rows) == ["user:ann,bob"]
    assert words("name:tw", *rows) == ['name:"two words"']
    assert words("name:b", *rows) == ['name:"b,c"']


@pytest.mark.req("UI-22", "UI-30")
def test_nothing_is_offered_within_quotes_for_figures_or_an_unknown_column() -> None:
    assert words('name:"two ') == []
    assert words("cards>=") == []
    assert words("nothing:") == []
    assert words("state>", table=NODES) == []
