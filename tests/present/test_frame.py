from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.present.frame import Key, TopBar, key_at, key_row, note_fits, top_bar, view_at, view_row
from cockpit.present.spans import Line, Span, line_width
from tests.doubles.samples import overview

STANDING = TopBar(cluster="lab-a", access="rw", user="alice")
KEYS = [Key("?", "help", action="help"), Key("x", "cancel", False, "cancel"), Key("Enter", "open", action="open")]
VIEWS = (("1", "Jobs"), ("2", "Nodes"))


def text(line: Line) -> str:
    return "".join(span.text for span in line)


@pytest.mark.req("UI-01", "UI-24")
@pytest.mark.parametrize(
    ("columns", "right"),
    [
        (120, "● 2 running   ◌ 2 queued   ✗ 1 held   cards 1.5/16 ━·········"),
        (74, "● 2   ◌ 2   ✗ 1   cards 1.5/16 ━·········"),
        (60, "● 2   ◌ 2   ✗ 1   cards 1.5/16"),
        (45, "● 2   ◌ 2   ✗ 1"),
        (30, ""),
    ],
)
def test_the_top_bar_is_shorter_on_a_narrow_screen(columns: int, right: str) -> None:
    shown = top_bar(STANDING, overview(), columns)
    assert text(shown).startswith(" cockpit  lab-a  rw · alice")
    assert text(shown).removeprefix(" cockpit  lab-a  rw · alice").strip() == right
    assert line_width(shown) <= columns


@pytest.mark.req("UI-29")
def test_stale_data_has_a_badge_with_reason_and_age_before_figures_are_dropped() -> None:
    stale = STANDING._replace(trouble="The engine does not answer", age="12 s old")
    assert "⚠ The engine does not answer · 12 s old" in text(top_bar(stale, overview(), 120))
    assert "⚠ The engine does not answer · 12 s old" in text(top_bar(stale, overview(), 80))
    assert "⚠ The engine" in text(top_bar(stale, overview(), 50))
    assert "⚠" not in text(top_bar(STANDING, overview(), 120))


@pytest.mark.req("UI-01", "UI-29")
def test_fresh_data_is_live_at_any_width_and_old_data_shows_its_time() -> None:
    fresh = STANDING._replace(fresh=True)
    assert text(top_bar(fresh, overview(), 120)).endswith("   live ")
    assert text(top_bar(fresh, overview(), 80)).endswith("   ● 2   ◌ 2   ✗ 1   cards 1.5/16 ━·········   live ")
    assert text(top_bar(fresh, overview(), 45)).endswith("   live ")
    old = STANDING._replace(age="75 s old", heard="14:03:12")
    assert "⚠ 75 s old · heard 14:03:12" in text(top_bar(old, overview(), 120))


@pytest.mark.req("UI-01")
def test_starting_or_suspended_jobs_are_counted_where_there_are_any() -> None:
    some = replace(overview(), jobs_by_state={"running": 2, "staging": 1, "starting": 2, "suspended": 4})
    assert "● 2 running   ◌ 0 queued   ◍ 3 starting   ⏸ 4 suspended" in text(top_bar(STANDING, some, 140))


@pytest.mark.req("TR-03")
def test_trouble_of_an_engine_is_shown_unless_it_does_not_answer() -> None:
    ill = replace(overview(), trouble=("The disk is full.",))
    assert "⚠ engine in trouble" in text(top_bar(STANDING, ill, 80))
    assert "⚠ no containers" in text(top_bar(STANDING, replace(ill, trouble=(), plain=True), 80))
    assert "⚠ not all is shown" in text(top_bar(STANDING, replace(ill, hidden=True), 80))
    assert "⚠" not in text(top_bar(STANDING, replace(ill, trouble=(), hidden=True), 80))
    assert "engine in trouble" not in text(top_bar(STANDING._replace(age="12 s old"), ill, 120))


def test_read_only_and_the_demo_are_highlighted() -> None:
    shown = top_bar(STANDING._replace(access="ro", badge="DEMO 60×"), overview(), 120)
    assert Span("  ro", "warning") in shown
    assert Span("  DEMO 60×", "demo") in shown


def test_hostile_names_are_escaped() -> None:
    assert "\x1b" not in text(top_bar(STANDING._replace(cluster="a\x1b[31m"), None, 120))


def test_the_current_view_is_highlighted_and_the_note_is_at_the_right_where_it_fits() -> None:
    row = view_row(VIEWS, "Nodes", (Span("/ name~bert"),), 60)
    assert Span("Nodes", "strong") in row
    assert text(row).endswith("/ name~bert ")
    long = (Span("/ " + "x" * 90),)
    assert text(view_row(VIEWS, "Jobs", long, 60)).split() == ["1", "Jobs", "2", "Nodes"]
    assert not note_fits(VIEWS, "Jobs", long, 60)


@pytest.mark.req("UI-24")
def test_view_names_are_spaced_closer_for_a_note_and_never_dropped() -> None:
    views, note = [("1", "Jobs"), ("2", "Nodes"), ("3", "Queues")], (Span("/ " + "x" * 67),)
    for columns in range(30, 140):
        row = text(view_row(views, "Nodes", note, columns))
        assert all(name in row for _, name in views)
        assert ("/ xxx" in row) == note_fits(views, "Nodes", note, columns)
        assert view_at(views, row.index(" 3 "), columns, "Nodes", note) == "Queues"
    assert not note_fits(views, "Nodes", note, 90)
    assert note_fits(views, "Nodes", note, 100)
    narrow = text(view_row(views, "Nodes", note, 20))
    assert narrow.split() == ["1", "Jobs", "2", "Nodes", "3"]


def test_keys_that_do_not_fit_are_omitted_completely() -> None:
    assert text(key_row(KEYS, 80)) == " ? help  x cancel  Enter open "
    assert text(key_row(KEYS, 20)) == " ? help  x cancel "
    assert [span.role for span in key_row(KEYS, 80)] == ["accent", "text", "muted", "muted", "accent", "text"]


@pytest.mark.req("UI-26")
def test_a_click_finds_the_key_or_view_that_is_drawn_there() -> None:
    shown = text(key_row(KEYS, 80))
    for key in KEYS:
        assert key_at(KEYS, shown.index(key.label)) == key.action
    assert key_at(KEYS, len(shown)) == ""
    views = text(view_row(VIEWS, "Jobs", (), 80))
    assert [view_at(VIEWS, views.index(name)) for _, name in VIEWS] == ["Jobs", "Nodes"]
    assert view_at(VIEWS, 70) == ""


def test_wide_gaps_are_taken_exactly_as_long_as_the_names_fit() -> None:
    views = [("1", "Jobs"), ("2", "Nodes"), ("3", "Queues")]
    starts = [text(view_row(views, "Nodes", (), columns)).rstrip() for columns in range(20, 140)]
    assert all(len(row) <= columns for columns, row in enumerate(starts, 20))
    first_whole = next(columns for columns, row in enumerate(starts, 20) if row.split()[-1] == "Queues")
    assert len(starts[first_whole - 20]) + 1 >= first_whole, "as soon as they fit"
