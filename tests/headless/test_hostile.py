"""Hostile text in every field, through every verb: asserted on the bytes that reach the terminal."""

from __future__ import annotations

import json

import msgspec
import pytest

from cockpit.model.ids import NodeName
from cockpit.model.view import SliceUse
from tests.doubles import samples
from tests.headless.conftest import Desk
from tests.present.corpus import HOSTILE, is_harmless

COMMANDS = (
    ("jobs",),
    ("jobs", "-o", "wide"),
    ("jobs", "-o", "json"),
    ("jobs", "-o", "jsonl"),
    ("jobs", "-o", "csv"),
    ("job", "4715"),
    ("job", "4715", "-o", "json"),
    ("job", "4715", "-o", "wide"),
    ("nodes", "--all"),
    ("nodes", "--all", "-o", "json"),
    ("holds",),
    ("holds", "-o", "csv"),
    ("events",),
    ("events", "-o", "jsonl"),
    ("overview",),
    ("logs", "4715"),
)

SHOW_LOGS = (("job", "4715"), ("logs", "4715"))
"""A log keeps its tabs."""


def hostile_desk(text: str) -> Desk:
    desk = Desk()
    backend = desk.backend
    node = NodeName(text)
    fields = dict.fromkeys(("name", "user", "command", "project", "pool", "output", "algorithm"), text)
    backend.job_rows = [
        samples.failed_row(4715, **fields, card_models=(text,), placed_on=(node,)),
        samples.queued_row(1, reason=msgspec.structs.replace(samples.WAITS, card_models=(text,))),
    ]
    spec = msgspec.structs.replace(samples.job().spec, name=text, command=text, output=text)
    detail = samples.detail()
    backend.details[4715] = msgspec.structs.replace(
        detail, row=backend.job_rows[0], job=msgspec.structs.replace(detail.job, spec=spec), log_tail=text
    )
    row = samples.node_row(text, os=text, kernel=text, driver_version=text, pool=text, state_reason=text)
    backend.node_rows = [msgspec.structs.replace(row, slices=(SliceUse(0, None, 1000, row.jobs[0], text, text),))]
    backend.hold_rows = [msgspec.structs.replace(samples.hold_row(), name=text, user=text, nodes=(node,))]
    backend.event_records = [msgspec.structs.replace(record, actor=text) for record in backend.event_records]
    backend.glance = msgspec.structs.replace(samples.overview(), cluster=text)
    backend.log = text.encode("utf-8", "surrogatepass")
    return desk


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
@pytest.mark.req("TR-05")
def test_hostile_text_is_escaped_for_the_terminal(text: str) -> None:
    desk = hostile_desk(text)
    for command in COMMANDS:
        done = desk(*command, terminal=True, columns=200)
        assert done.code == 0, (command, done.err)
        shown = done.out.decode().replace("\t", "") if command in SHOW_LOGS else done.out.decode()
        assert is_harmless(shown.replace("\n", "")), command


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
@pytest.mark.req("TR-05")
def test_json_keeps_the_value_that_it_escapes(text: str) -> None:
    printed = hostile_desk(text)("jobs", "-o", "json").out.decode()
    (row, _) = json.loads(printed)["rows"]
    assert row["name"] == text
    assert is_harmless(printed.replace("\n", "")), "a pipe may end in a pager"


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
@pytest.mark.req("TR-05")
def test_a_hostile_command_line_is_quoted_escaped(text: str) -> None:
    desk = Desk()
    for command in ((text,), ("job", text), ("jobs", "--filter", f"{text}:1 x>1"), ("jobs", "--columns", text)):
        done = desk(*command, terminal=True)
        assert is_harmless(done.err.replace("\n", "")), command


def test_markup_is_a_name_like_any_other() -> None:
    assert "[bold]red[/bold]" in hostile_desk("[bold]red[/bold]")("jobs").out.decode()


def test_a_log_goes_unchanged_to_a_program() -> None:
    desk = Desk()
    desk.backend.log = bytes(range(256))
    assert desk("logs", "4715").out == bytes(range(256))
