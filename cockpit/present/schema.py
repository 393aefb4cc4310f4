"""JSON Schema (2020-12) of a table's JSON, from its columns."""

from __future__ import annotations

from typing import Any, Final

from cockpit.present.columns import Column, TableView, ValueKind

_FRACTION: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"used": {"type": "number"}, "total": {"type": "number"}},
    "required": ["used", "total"],
}

_TYPES: Final[dict[ValueKind, dict[str, Any]]] = {
    ValueKind.TEXT: {"type": "string"},
    ValueKind.INTEGER: {"type": "integer"},
    ValueKind.NUMBER: {"type": "number"},
    ValueKind.SECONDS: {"type": "integer"},
    ValueKind.MIB: {"type": "integer"},
    ValueKind.MOMENT: {"type": "string", "format": "date-time"},
    ValueKind.WORDS: {"type": "array", "items": {"type": "string"}},
    ValueKind.FRACTION: _FRACTION,
    ValueKind.MEMORY_FRACTION: _FRACTION,
    ValueKind.RECORD: {"type": "object"},
}


def table_schema(table: TableView, version: int) -> dict[str, Any]:
    """The schema of `{"version": …, "rows": […]}`. Columns may come any time, none goes without a new version."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": table.name,
        "description": table.help,
        "type": "object",
        "properties": {"version": {"const": version}, "rows": {"type": "array", "items": row_schema(table)}},
        "required": ["version", "rows"],
    }


def row_schema(table: TableView) -> dict[str, Any]:
    """The schema of one row, every column of which is always there."""
    return {
        "type": "object",
        "properties": {column.id: column_schema(column) for column in table.columns},
        "required": [column.id for column in table.columns],
    }


def column_schema(column: Column) -> dict[str, Any]:
    """The schema of one column's JSON."""
    schema = dict(column.schema or _TYPES[column.kind])
    if column.nullable and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    return {**schema, "description": column.help}
