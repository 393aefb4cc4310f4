from __future__ import annotations

from datetime import UTC

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.model.spec import NodeSpec
from cockpit.present.columns import Context
from cockpit.present.empty_views import empty_lines
from cockpit.present.job.answer import PanelContext
from cockpit.present.job.tabs import TABS, head_line, tab_lines
from cockpit.present.spans import Line, Span
from tests.doubles.samples import NOW, detail, waiting_detail

AROUND = PanelContext(Context(now=NOW, zone=UTC), 120, 30, {"shell": "s"}, lambda _: None)


def texts(lines: list[Line]) -> list[str]:
    return ["".join(span.text for span in line).rstrip() for line in lines]


@pytest.mark.req("UI-03")
def test_the_spec_is_the_job_file_with_units() -> None:
    lines = tab_lines("spec", detail(), AROUND)
    shown = texts(lines)
    assert "  name: bert-eval" in shown
    assert "    memory: 16G" in shown
    assert "    cards: 0.5" in shown
    assert Span("command", "accent") in lines[shown.index("  command: python eval.py")]


@pytest.mark.req("UI-03", "JT-09")
def test_the_spec_marks_the_placed_alternative() -> None:
    known = detail()
    several = replace(known.job.spec, specs=(NodeSpec(cpus=64), *known.job.spec.specs))
    attempt = replace(known.job.attempt, spec_index=1)
    lines = tab_lines("spec", replace(known, job=replace(known.job, spec=several, attempt=attempt)), AROUND)
    assert texts(lines)[0] == "  Spec 2 of 2 was placed; the others are withdrawn."


@pytest.mark.req("UI-03")
def test_events_are_in_columns_with_the_acting_user() -> None:
    assert texts(tab_lines("events", detail(), AROUND))[:3] == [
        "  WHEN   WHO     WHAT",
        "  11:00  bob     was submitted as bert-eval by bob",
        "  11:01  engine  was placed on n03 with 0.5 of a card",
    ]


@pytest.mark.req("UI-03")
def test_replicas_are_in_columns() -> None:
    assert texts(tab_lines("replicas", detail(), AROUND))[:2] == [
        "  RANK  NODE  CARDS  STARTED  LIMITS     STATE",
        "  0     n03   1(2)   10:00    cgroup v1  exit 3",
    ]
    assert "not been placed" in texts(tab_lines("replicas", waiting_detail(), AROUND))[0]


def test_the_why_tab_offers_the_held_container_by_key_and_by_command() -> None:
    shown = texts(tab_lines("why", detail(), AROUND))
    assert shown[1] == "  s open shell"
    assert "    open shell    cockpit shell 4715" in shown


def test_the_header_shows_the_position_in_the_queue() -> None:
    (head,) = texts([head_line(waiting_detail(), AROUND)])
    assert head.startswith(" 4720 vit-sweep  ann  ◌ queued")
    assert head.endswith("place 3 in the queue")


def test_hostile_text_is_escaped() -> None:
    spec = msgspec.structs.replace(detail().job.spec, command="\x1b[31mred")
    hostile = msgspec.structs.replace(detail(), job=msgspec.structs.replace(detail().job, spec=spec))
    for tab in set(TABS) - {"logs"}:
        assert "\x1b" not in "\n".join(texts(tab_lines(tab, hostile, AROUND)))


def test_an_empty_list_says_what_to_do_first() -> None:
    keys = {"new": "n", "help": "?", "back": "Esc", "filter": "/"}
    first = texts(list(empty_lines("This machine: 16 CPUs, 128G, 2 × RTX 4090.", 0, keys, demo=False)))
    assert first[1] == "   This machine: 16 CPUs, 128G, 2 × RTX 4090. No jobs yet."
    assert first[3].split() == ["n", "submit", "one", ":demo", "open", "a", "simulated", "cluster", "?", "help"]
    assert ":demo" not in "".join(texts(list(empty_lines("", 0, keys, demo=True))))
    hidden = texts(list(empty_lines("", 193, keys, demo=False)))
    assert hidden[1] == "   No job matches. 193 jobs are hidden."
    assert hidden[3].split() == ["Esc", "show", "them", "all", "/", "another", "filter"]


@pytest.mark.req("UI-03", "JT-09")
def test_the_spec_of_a_job_without_a_choice_or_without_a_place_marks_none() -> None:
    assert texts(tab_lines("spec", detail(), AROUND))[0] == "  name: bert-eval"
    waits = waiting_detail()
    several = replace(waits.job.spec, specs=(NodeSpec(cpus=64), *waits.job.spec.specs))
    lines = texts(tab_lines("spec", replace(waits, job=replace(waits.job, spec=several)), AROUND))
    assert lines[0] == "  name: bert-eval"
    assert "  specs:" in lines
