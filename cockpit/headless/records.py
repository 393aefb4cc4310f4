"""Rows for programs: JSON, JSON Lines and CSV of the same columns, without characters that a terminal obeys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import asdict

from cockpit.model.text import is_visible
from cockpit.present.columns import Column, Context, Fraction
from cockpit.present.safe import safe

if TYPE_CHECKING:
    from cockpit.headless.services import Call

JSON_VERSION: Final = 1
"""Version of the JSON output. It changes only if programs that read it could break."""
PIECE_ROWS: Final = 500
"""Rows made, encoded and written at a time: memory that is used again is a third faster than new memory."""
# Beginnings of cells that spreadsheets compute (OWASP, CSV Injection).
FORMULA_STARTS: Final = ("=", "+", "-", "@")


def json_document(columns: Sequence[Column], rows: Sequence[Any], context: Context) -> Iterator[bytes]:
    """Yield the document `{"version": 1, "rows": [...]}`, with one row per line, in pieces."""
    yield b'{"version": %d, "rows": [' % JSON_VERSION
    comma = b"\n"
    for lines in json_lines(columns, rows, context):
        # Safe to replace: a line break inside of a value is escaped in JSON.
        yield comma + lines.removesuffix(b"\n").replace(b"\n", b",\n")
        comma = b",\n"
    yield b"\n]}\n"


def json_lines(columns: Sequence[Column], rows: Sequence[Any], context: Context) -> Iterator[bytes]:
    """Yield one JSON object per row with the columns' ids as keys, in pieces."""
    record = record_type(columns)
    for start in range(0, len(rows), PIECE_ROWS):
        yield encoded_lines(records(record, columns, rows[start : start + PIECE_ROWS], context))


def record_type(columns: Sequence[Column]) -> type[msgspec.Struct]:
    """Return the record type for the columns: structs encode four times as fast as dicts."""
    return msgspec.defstruct("Record", [column.id for column in columns])


def records(
    record: type[msgspec.Struct], columns: Sequence[Column], rows: Sequence[Any], context: Context
) -> list[Any]:
    """Yield one record per row."""
    return list(map(record, *(column.json(rows, context) for column in columns)))


def encoded_lines(values: Sequence[Any]) -> bytes:
    """Return one JSON value per line. Characters that a terminal might obey are \\u escapes of the same value."""
    try:
        lines = msgspec.json.Encoder().encode_lines(values)
    except UnicodeEncodeError:
        lines = _with_lone_surrogates(values)
    # Most data are plain, and are not decoded line by line.
    return lines if _plain(lines) else b"\n".join(map(_escape, lines.split(b"\n")))


def tell_report(call: Call, report: msgspec.Struct, page: Iterable[str]) -> None:
    """Print a single answer: as JSON with a version if that is requested, else the lines of `page`."""
    if call.args.output == "json":
        call.streams.write(encoded_lines([{"version": JSON_VERSION, **asdict(report)}]))
        return
    call.streams.lines(page)


def csv_text(columns: Sequence[Column], rows: Sequence[Any], context: Context, *, header: bool) -> str:
    """Return CSV (RFC 4180 with LF): values as in JSON, lists joined by spaces, and no cell that a spreadsheet would
    run as a formula."""
    lines = [",".join(column.id for column in columns)] if header else []
    values = [column.json(rows, context) for column in columns]
    lines.extend(",".join(map(csv_cell, row)) for row in zip(*values, strict=True))
    return "".join(f"{line}\n" for line in lines)


def csv_cell(value: object) -> str:
    """Return one cell of CSV."""
    if value is None:
        return ""
    # Before the test for formulas: a negative number is none.
    if isinstance(value, int | float):
        return str(value)
    text = safe(_csv_text_of(value))
    # The apostrophe makes a spreadsheet take the cell as text.
    if text.startswith(FORMULA_STARTS):
        text = "'" + text
    return '"' + text.replace('"', '""') + '"' if '"' in text or "," in text else text


def _csv_text_of(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Fraction):
        return f"{value.used}/{value.total}"
    if isinstance(value, tuple | list) and all(isinstance(part, str | int) for part in value):
        return " ".join(map(str, value))
    return encoded_lines([value]).decode().strip()


def _plain(data: bytes) -> bool:
    """Return whether the data need no escape. JSON has already escaped the characters below the space."""
    # What is left is DEL, and what is beyond ASCII: other control characters (C1), and invisible ones.
    return bool(data) and data.isascii() and b"\x7f" not in data


def _escape(line: bytes) -> bytes:
    text = line.decode()
    return line if is_visible(text) else "".join(char if is_visible(char) else _u(char) for char in text).encode()


def _u(char: str) -> str:
    # Beyond 16 bits, JSON escapes a character by two surrogates.
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _with_lone_surrogates(values: Sequence[Any]) -> bytes:
    """Encode values with lone surrogates, which msgspec refuses: a file name that is not UTF-8 has them in Python."""
    import json

    return "".join(json.dumps(msgspec.to_builtins(value, str_keys=True)) + "\n" for value in values).encode("ascii")
