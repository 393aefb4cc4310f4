"""Defines the options that every list shares, and writes rows in the chosen form. A table is plain text without escape
sequences, and is cut to the terminal where there is one.

Rows pass through these steps:

1. Filter them (`--filter`).
2. Fold several into one (`fold`).
3. Sort them (`--sort`).
4. Choose the columns (`--columns`).
5. Write them in the chosen form.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from cockpit.headless.arguments import UsageError
from cockpit.headless.streams import Streams
from cockpit.model.jobrow import JobRows
from cockpit.present.columns import Column, Context, TableView
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe
from cockpit.present.width import aligned, widest

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
    table: TableView, rows: Sequence[Any], args: Namespace, context: Context, streams: Streams, fold: Fold | None = None
) -> None:
    """Filter, fold and sort the rows, and write them in the chosen form."""
    # 1, 2 and 3.
    shown = chosen_rows(table, rows, args, context, fold)
    # 4
    columns = chosen_columns(table, args)
    # In a plain table, columns that are empty in most clusters are shown only where a row has a value.
    if args.output == Form.TABLE and not args.columns:
        columns = tuple(each for each in columns if not each.rare or any(each.facts(shown, context)))
    # 5
    write = _write_grid if args.output in {Form.TABLE, Form.WIDE} else _write_records
    write(columns, shown, args, context, streams)
    # On stderr and only for people: a program reads an empty list.
    if not rows:
        streams.hint(table.empty)
    elif not shown:
        from cockpit.present.filters import whole_word_hint

        hint = whole_word_hint(args.filter or "", table, rows, context)
        streams.hint(" ".join(filter(None, (f"The filter leaves none of {len(rows)}.", hint))))


def chosen_columns(table: TableView, args: Namespace) -> tuple[Column, ...]:
    """Return the columns of `--columns`, else those of the form."""
    if args.columns:
        return tuple(named_column(table, name.strip()) for name in args.columns.split(","))
    return table.default if args.output == Form.TABLE else table.columns


def named_column(table: TableView, name: str) -> Column:
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
    table: TableView, rows: Sequence[Any], args: Namespace, context: Context, fold: Fold | None = None
) -> Sequence[Any]:
    """Return the rows filtered, folded and sorted, as the options say."""
    # 1
    if getattr(args, "filter", None):
        wanted = row_filter(table, args)
        # Rows of jobs are filtered by column, which is much faster for long queues.
        rows = wanted.passing_jobs(rows, context) if isinstance(rows, JobRows) else wanted.passing(rows, context)
    # 2: after the filter, which is about single tasks, and before sorting, which is about what is shown.
    if fold is not None:
        rows = fold(rows)
    # 3
    if getattr(args, "sort", None):
        from cockpit.present.sorting import sorted_rows

        keys = [
            (named_column(table, key.strip().removeprefix("-")), key.strip().startswith("-"))
            for key in args.sort.split(",")
        ]
        rows = sorted_rows(rows, keys, context)
    return rows


def row_filter(table: TableView, args: Namespace) -> Filter:
    """Compile the filter of `--filter`. Raises `FilterError`."""
    from cockpit.present.filters import compile_filter

    return compile_filter(args.filter or "", table, saved=args.saved_filters)


def _write_grid(
    columns: Sequence[Column], rows: Sequence[Any], args: Namespace, context: Context, streams: Streams
) -> None:
    is_terminal = streams.stdout.isatty()
    # A terminal cuts a table to its width; other forms, files and pipes get everything.
    width = streams.columns if is_terminal and args.output == Form.TABLE else None
    # Without rows the titles alone would look like an empty row on a terminal; a program may want them.
    header = not args.no_header and bool(rows or not is_terminal)
    lines = grid_lines(columns, rows, context, header=header, limit=width)
    streams.text("\n".join([*lines, ""]))


def _write_records(
    columns: Sequence[Column], rows: Sequence[Any], args: Namespace, context: Context, streams: Streams
) -> None:
    from cockpit.headless.records import csv_text, json_document, json_lines

    match args.output:
        case Form.JSON:
            streams.write_all(json_document(columns, rows, context))
        case Form.JSONL:
            streams.write_all(json_lines(columns, rows, context))
        case _:
            streams.text(csv_text(columns, rows, context, header=not args.no_header))


GAP: Final = "  "
COMFORTABLE: Final = 20
"""A text column may be cut to this before spare columns are left out."""
NARROWEST: Final = 8
"""A text column is never cut below this."""


def grid_lines(
    columns: Sequence[Column], rows: Sequence[Any], context: Context, *, header: bool, limit: int | None
) -> list[str]:
    """Return a header and one line per row. `limit`: the width of the terminal; None: nothing is cut."""
    cells = [[column.title] * header + column.texts(rows, context) for column in columns]
    widths = list(map(widest, cells))
    # Columns are left out before those that stay are narrowed.
    kept = range(len(columns)) if limit is None else kept_columns(columns, widths, limit)
    columns, cells, widths = [columns[at] for at in kept], [cells[at] for at in kept], [widths[at] for at in kept]
    if limit is not None:
        widths = fit_widths(widths, [not column.right for column in columns], limit)
    shaped = [
        aligned(texts, column_width, right=column.right)
        for texts, column_width, column in zip(cells, widths, columns, strict=True)
    ]
    return [GAP.join(line).rstrip() for line in zip(*shaped, strict=True)]


def kept_columns(columns: Sequence[Column], widths: Sequence[int], limit: int) -> Sequence[int]:
    """Return the indexes of the columns to show: spare ones are left out, the last one first, until the rest fits."""
    # Numbers, at the right, are never cut, since a cut number is a wrong one.
    least = [wide if column.right else min(wide, COMFORTABLE) for column, wide in zip(columns, widths, strict=True)]
    kept = list(range(len(columns)))
    for at in reversed(kept):
        if _total([least[index] for index in kept]) <= limit:
            break
        if columns[at].spare:
            kept = [index for index in kept if index != at]
    return kept


def fit_widths(widths: Sequence[int], may_shrink: Sequence[bool], limit: int) -> list[int]:
    """Return widths that fit: the widest column that may shrink gives way, one place at a time, the last one first."""
    fit = list(widths)
    for _ in range(_total(fit) - limit):
        candidates = [at for at, wide in enumerate(fit) if may_shrink[at] and wide > NARROWEST]
        # Nothing can shrink any more: the terminal wraps the lines.
        if not candidates:
            break
        fit[max(candidates, key=lambda at: (fit[at], at))] -= 1
    return fit


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(GAP) * (len(widths) - 1)
