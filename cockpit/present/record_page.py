"""One row as a page: a line for each column, so that nothing of it has to be cut."""

from __future__ import annotations

from collections.abc import Sequence

from cockpit.present.columns import NOTHING, Column, Context
from cockpit.present.width import pad


def record_lines(columns: Sequence[Column], row: object, context: Context) -> list[str]:
    """`label  text` for each column that has something to say."""
    room = max(len(column.title) for column in columns) + 2
    texts = [(column.title.lower(), column.texts((row,), context)[0]) for column in columns]
    return [f"{pad(label, room)}{text}" for label, text in texts if text not in {"", NOTHING}]
