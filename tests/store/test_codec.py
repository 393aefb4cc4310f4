from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from cockpit.errors import StoreError
from cockpit.model.events import EVENT_VERSION, EventBody, ShellOpened
from cockpit.model.ids import JobId
from cockpit.store import codec
from tests.store.samples import event, submitted

GOLDEN = (Path(__file__).parent / "data" / "events.jsonl").read_bytes().splitlines()
"""One event of each type, as version 1 wrote it. Lines are added, never changed: old journals look like this."""


def contains(whole: object, part: object) -> bool:
    """Whether every key and value of `part` is in `whole`, which may have gained more."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(key in whole and contains(whole[key], part[key]) for key in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(contains, whole, part))
    return whole == part


@pytest.mark.parametrize("line", GOLDEN, ids=lambda line: json.loads(line)["body"]["type"])
def test_recorded_events_of_older_versions_are_read_completely(line: bytes) -> None:
    record = codec.from_line(line)
    assert contains(json.loads(msgspec.json.encode(record)), json.loads(line))


def test_every_type_of_event_has_a_golden_line() -> None:
    kept = {json.loads(line)["body"]["type"] for line in GOLDEN}
    assert kept >= {kind.__struct_config__.tag for kind in get_args(EventBody)}


@pytest.mark.parametrize("line", GOLDEN, ids=lambda line: json.loads(line)["body"]["type"])
def test_row_and_line_hold_the_same_event(line: bytes) -> None:
    record = codec.from_line(line)
    row = codec.to_row(record)
    assert codec.from_row(row) == record
    assert codec.from_line(codec.to_line(row)) == record
    assert row[5] == json.loads(line)["body"]["type"]
    assert row[7] == json.loads(line)["body"].get("job")


def test_a_field_of_the_future_is_ignored() -> None:
    line = json.loads(GOLDEN[0])
    line["body"]["colour"] = {"later": [1]}
    assert codec.from_line(json.dumps(line).encode()) == codec.from_line(GOLDEN[0])


def test_an_event_type_of_the_future_is_refused_by_number() -> None:
    row = list(codec.to_row(submitted(7)))
    row[8:] = '{"type": "job_teleported", "job": 7}', None
    with pytest.raises(StoreError, match=r"event 7 cannot be read: .*job_teleported.*newer"):
        codec.from_row(row)


def test_an_event_version_of_the_future_is_refused() -> None:
    record = msgspec.structs.replace(submitted(7), version=EVENT_VERSION + 1)
    with pytest.raises(StoreError, match="event 7 cannot be read: its version is 2"):
        codec.from_row(codec.to_row(record))


@pytest.mark.parametrize("line", [b"", b"\xff\n", b'{"seq": 1}', b'{"seq": 1, "at"'])
def test_a_damaged_line_is_reported_in_one_sentence(line: bytes) -> None:
    with pytest.raises(StoreError, match="archived event cannot be read"):
        codec.from_line(line)


def test_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(StoreError, match="Event 1 holds text that is not Unicode"):
        codec.to_row(event(1, ShellOpened(JobId(1), rank=0, command=("\udcff",))))


@pytest.mark.parametrize("text", ["\x1b]0;title\x07", "a\0b", "[bold]", "'; DROP TABLE events; --", "\u2028", "𝔘"])
def test_hostile_text_is_read_back_unchanged(text: str) -> None:
    record = event(1, ShellOpened(JobId(1), rank=0, command=(text,)))
    row = codec.to_row(record)
    assert codec.from_row(row) == record
    assert codec.from_line(codec.to_line(row)) == record
    assert codec.to_line(row).count(b"\n") == 1


CHANGES = {
    "seq": 8,
    "at": 1,
    "actor": "mallory",
    "origin": "timer",
    "request": "1000:other",
    "type": "job_held",
    "version": 0,
    "job": 8,
    "body": '{"type":"job_held","job":7,"by":"anna"}',
    "checksum": b"12345678",
}


@pytest.mark.req("TR-11")
@pytest.mark.parametrize("column", codec.COLUMNS)
def test_a_row_that_was_changed_in_any_column_is_damaged(column: str) -> None:
    row = dict(zip(codec.COLUMNS, codec.to_row(submitted(7)), strict=True))
    changed = {**row, column: CHANGES[column]}
    with pytest.raises(codec.Damaged, match=f"event {changed['seq']} is damaged: .* checksum.* restore it"):
        codec.from_row(tuple(changed.values()))


@pytest.mark.req("TR-11")
@pytest.mark.parametrize("part", [b"/home/anna", b'"at":', b"submitted", b"output"])
def test_an_archived_line_that_was_changed_is_damaged(part: bytes) -> None:
    line = codec.to_line(codec.to_row(submitted(7)))
    assert codec.from_line(line) == submitted(7)
    assert part in line
    changed = line.replace(b'"at":', b'"at":1', 1) if part == b'"at":' else line.replace(part, part[::-1], 1)
    with pytest.raises(StoreError):
        codec.from_line(changed)


@pytest.mark.req("TR-12")
def test_an_event_from_before_there_were_checksums_is_read() -> None:
    row = (*codec.to_row(submitted(7))[:-1], None)
    assert codec.from_row(row) == submitted(7)
    assert codec.from_line(codec.to_line(row)) == submitted(7)
