"""Rows by column are the rows they were made of."""

from __future__ import annotations

from msgspec.structs import astuple

from cockpit.model.jobrow import FIELDS, JobRow, JobRows
from cockpit.present.columns import values
from tests.doubles.samples import queued_row

ROWS = [queued_row(number, name=f"job-{number}") for number in range(1, 7)]


def by_column(rows: list[JobRow]) -> JobRows:
    return JobRows([list(column) for column in zip(*map(astuple, rows), strict=True)])


def test_job_rows_are_a_sequence():
    rows = by_column(ROWS)
    assert list(rows) == ROWS
    assert (len(rows), rows[2], rows[-1]) == (6, ROWS[2], ROWS[-1])
    assert list(rows[1:3]) == ROWS[1:3]
    assert list(JobRows.joined([rows[:2], rows[2:]])) == ROWS


def test_rows_that_match_keep_their_order():
    assert list(by_column(ROWS).where([row.id % 2 == 0 for row in ROWS])) == ROWS[1::2]


def test_every_column_has_what_the_rows_have():
    rows = by_column(ROWS)
    for field in FIELDS:
        assert values(rows, field) == values(ROWS, field)
