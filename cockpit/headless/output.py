"""Defines the options that every list shares, and writes rows in the chosen form.

Rows pass through these steps: filter (`--filter`), fold several into one (`fold`), sort (`--sort`), choose the columns
(`--columns`), write.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from cockpit.headless.arguments import UsageError
from cockpit.headless.streams import Streams
from cockpit.model.jobrow import JobRows
from cockpit.present.columns import Column, Context, Table
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from cockpit.present.filters import Filter

Fold = Callable[[Sequence[Any]], Sequence[Any]]
"""Function that combines rows, such as the tasks of an array, into fewer rows."""


class Form(StrEnum):
    """The forms in which rows are written. All but `table` have every column."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


FORMS_HELP = f"{', '.join(form for form in Form)}; all but table have every column"


def add_output_options(parser: ArgumentParser, *, select: bool = True) -> None:
    """Add `-o` and `--columns` to a parser; with `select` also `--filter` and `--sort`."""
    parser.add_argument(
        "-o", "--output", choices=[str(form) for form in Form], default=str(Form.TABLE), metavar="FORM", help=FORMS_HELP
    )
    parser.add_argument("--no-header", action="store_true", help="no line of column titles")
    parser.add_argument("--columns", metavar="A,B", help="only these columns, in this order")
    if select:
        parser.add_argument("--filter", metavar="TERMS", help="only rows such as 'state:failed cards>=4 !name~test'")
        parser.add_argument("--sort", metavar="A,-B", help="by these columns; a minus sorts the largest first")


def is_page(args: Namespace) -> bool:
    """Return whether a single thing is shown as a page rather than as a row of a table."""
    return args.output == Form.TABLE and not args.columns and not getattr(args, "watch", False)


def write_rows(
    table: Table,
    rows: Sequence[Any],
    args: Namespace,
    context: Context,
    streams: Streams,
    fold: Fold | None = None,
) -> None:
    """Filter, fold and sort the rows, and write them in the chosen form."""
    shown = chosen_rows(table, rows, args, context, fold)
    columns = chosen_columns(table, args)
    if args.output == Form.TABLE and not args.columns:
        columns = tuple(each for each in columns if not each.rare or any(each.facts(shown, context)))
    write = _WRITERS.get(Form(args.output), _write_grid)
    write(columns, shown, args, context, streams)
    if not rows:
        streams.hint(table.empty)
    elif not shown:
        from cockpit.present.filters import whole_word_hint

        hint = whole_word_hint(args.filter or "", table, rows, context)
        streams.hint(" ".join(filter(None, (f"The filter leaves none of {len(rows)}.", hint))))


def chosen_columns(table: Table, args: Namespace) -> tuple[Column, ...]:
    """Return the columns of `--columns`, else those of the form."""
    if args.columns:
        return tuple(named_column(table, name.strip()) for name in args.columns.split(","))
    return table.default if args.output == Form.TABLE else table.columns


def named_column(table: Table, name: str) -> Column:
    """Return the column of this name. Raises `UsageError`, which suggests the nearest name."""
    column = table.find(name)
    if column is not None:
        return column
    hint = nearest(name, table.names())
    known = ", ".join(column.id for column in table.columns)
    raise UsageError(
        f"{table.name} have no column {safe(name)}"
        + (f"; did you mean {hint}?" if hint else "")
        + f"\nColumns: {known}"
    )


def chosen_rows(
    table: Table, rows: Sequence[Any], args: Namespace, context: Context, fold: Fold | None = None
) -> Sequence[Any]:
    """Return the rows filtered, folded and sorted, as the options say."""
    if getattr(args, "filter", None):
        wanted = row_filter(table, args)
        rows = wanted.passing_jobs(rows, context) if isinstance(rows, JobRows) else wanted.passing(rows, context)
    if fold is not None:
        rows = fold(rows)
    if getattr(args, "sort", None):
        from cockpit.present.sorting import sorted_rows

        keys = [
            (named_column(table, key.strip().removeprefix("-")), key.strip().startswith("-"))
            for key in args.sort.split(",")
        ]
        rows = sorted_rows(rows, keys, context)
    return rows


def row_filter(table: Table, args: Namespace) -> Filter:
    """Compile the filter of `--filter`. Raises `FilterError`."""
    from cockpit.present.filters import compile_filter

    return compile_filter(args.filter or "", table, saved=args.saved_filters)


def _write_grid(
    columns: Sequence[Column], rows: Sequence[Any], args: Namespace, context: Context, streams: Streams
) -> None:
    from cockpit.headless.grid import grid_lines

    is_terminal = streams.stdout.isatty()
    width = streams.columns if is_terminal and args.output == Form.TABLE else None
    header = not args.no_header and bool(rows or not is_terminal)
    lines = grid_lines(columns, rows, context, header=header, room=width)
    streams.text("\n".join([*lines, ""]))


def _write_json(
    columns: Sequence[Column], rows: Sequence[Any], _: Namespace, context: Context, streams: Streams
) -> None:
    from cockpit.headless.records import json_document

    streams.write_all(json_document(columns, rows, context))


def _write_jsonl(
    columns: Sequence[Column], rows: Sequence[Any], _: Namespace, context: Context, streams: Streams
) -> None:
    from cockpit.headless.records import json_lines

    streams.write_all(json_lines(columns, rows, context))


def _write_csv(
    columns: Sequence[Column], rows: Sequence[Any], args: Namespace, context: Context, streams: Streams
) -> None:
    from cockpit.headless.records import csv_text

    streams.text(csv_text(columns, rows, context, header=not args.no_header))


_WRITERS = {Form.JSON: _write_json, Form.JSONL: _write_jsonl, Form.CSV: _write_csv}
