from __future__ import annotations

import re
from datetime import UTC

import pytest
from msgspec.structs import replace

from cockpit.errors import CockpitError
from cockpit.model.ids import JobId, member_id
from cockpit.model.job import ArrayTask
from cockpit.present.columns import Context, TableView
from cockpit.present.filters import FilterError, compile_filter, quoted, whole_word_hint
from cockpit.present.folding import own_ids
from cockpit.present.sorting import sorted_rows
from cockpit.present.tables.holds import HOLDS
from cockpit.present.tables.jobs import JOBS
from cockpit.present.tables.nodes import NODES
from tests.doubles.samples import HOUR, NOW, five_jobs, hold_row, job_row, node_row, queued_row

CONTEXT = Context(now=NOW, zone=UTC, user="bob")


def passing(text: str) -> list[int]:
    matches = compile_filter(text, JOBS)
    return [row.id for row in five_jobs() if matches(row, CONTEXT)]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", [4711, 4720, 4715, 4722, 4699]),
        ("bert", [4715]),
        ("BERT", [4715]),
        ("4711", [4711]),
        ("state:failed", [4715]),
        ("state:error", [4715]),
        ("state:held", [4715, 4722]),
        ("state:running,queued", [4711, 4720, 4722, 4699]),
        ("state!=queued", [4711, 4715, 4699]),
        ("!state:queued", [4711, 4715, 4699]),
        ("user:me", [4720, 4715]),
        ("creator:bob", [4720, 4715]),
        ("cards>=4", [4711, 4720]),
        ("cards:0.5", [4715]),
        ("cards<1 !cards:0", [4715]),
        ("wait>2h", [4720, 4722]),
        ("elapsed<=1h59m", [4715]),
        ("memory>=16G", [4711, 4720, 4715, 4722, 4699]),
        ("memory>16G", []),
        ("name~bert", [4715]),
        ("!name~e", [4711, 4722]),
        ('why~"n07 has 3"', [4720]),
        ('"exit 3"', [4715]),
        ("reason:held", [4722]),
        ("node:n07", [4711, 4715, 4699]),
        ("placed_on:none", [4720, 4722]),
        ("started_at:none", [4720, 4722]),
        ("ended_at>=2026-10-05T11:30+00:00", [4715]),
        ("exit:3", [4715]),
        ("spec~a100", [4720, 4715]),
        ("name:[bold]red", [4699]),
        ("前処理", [4722]),
        ("  state:running   user:ann ", [4711, 4699]),
    ],
)
@pytest.mark.req("UI-22")
def test_terms(text: str, ids: list[int]) -> None:
    assert passing(text) == ids


@pytest.mark.parametrize(
    ("text", "ids"),
    [("id:4700_3", [4703]), ("id=4700_3,4711", [4703, 4711]), ("id!=4700_3", [4711]), ("id:4703", [4703])],
)
@pytest.mark.req("UI-22")
def test_a_task_is_found_as_its_id_is_written(text: str, ids: list[int]) -> None:
    first = five_jobs()[0]
    task = replace(first, id=JobId(4703), array=ArrayTask(JobId(4700), 3))
    matches = compile_filter(text, JOBS)
    assert [row.id for row in (task, first) if matches(row, CONTEXT)] == ids


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("stat:failed", "did you mean state?"),
        ("xyzzy:1", "Columns: id, name"),
        ("cards>many", "cards wants a number, not many"),
        ("wait>soon", "wait_seconds wants a duration such as"),
        ("memory>=big", "memory_mib wants memory such as"),
        ("started>noon", "started_at wants a moment such as"),
        ("name>b", "name wants a word after : or ~, not b"),
        ('name:"open', "is not closed"),
        ("cards>=", "not nothing"),
        ("cards>=1_0", "cards wants a number, not 1_0"),
        ("cards<nan", "cards wants a number, not nan"),
        ("\x1b[1m:x\x1b", ""),
    ],
)
@pytest.mark.req("UI-22")
def test_errors_name_the_problem_and_the_nearest_name(text: str, says: str) -> None:
    if not says:
        assert passing(text) == []
        return
    with pytest.raises(CockpitError) as wrong:
        compile_filter(text, JOBS)
    assert says in str(wrong.value)


def test_a_fraction_is_compared_by_its_total() -> None:
    matches = compile_filter("cards>=8 cards_free<7 memory<1T !card_model:H100", NODES)
    assert matches(node_row(), CONTEXT)


def test_time_left_of_a_hold() -> None:
    assert compile_filter("left<4h left>3h", HOLDS)(hold_row(), CONTEXT)


def test_sorting_by_several_columns_keeps_cells_without_a_fact_last() -> None:
    rows = [
        queued_row(1),
        job_row(2, started_at=NOW - HOUR),
        job_row(3, started_at=NOW - 2 * HOUR),
        job_row(4, user="bob"),
    ]
    column = {name: JOBS.find(name) for name in ("start", "user", "name")}
    up = sorted_rows(rows, [(column["start"], False)], CONTEXT)
    down = sorted_rows(rows, [(column["start"], True)], CONTEXT)
    assert [row.id for row in up] == [3, 4, 2, 1]
    assert [row.id for row in down] == [2, 3, 4, 1]
    both = sorted_rows(rows, [(column["user"], True), (column["name"], False)], CONTEXT)
    assert [row.id for row in both] == [4, 1, 2, 3]
    # Each order differs from that of the rows and from that of the other column.
    named = [job_row(n, user=user, name=name) for n, user, name in ((1, "b", "y"), (2, "a", "x"), (3, "b", "x"))]
    by_both = sorted_rows(named, [(column["user"], False), (column["name"], False)], CONTEXT)
    assert [row.id for row in by_both] == [2, 3, 1]


KEPT = {"big": "cards>=4", "mine": "user:me", "mine-big": "@mine @big", "round": "@and-round", "and-round": "x @round"}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("@big", [4711, 4720]),
        ("@mine-big", [4720]),
        ("!@mine-big", [4711, 4715, 4722, 4699]),
        ("@mine state:failed", [4715]),
        ('"@big"', []),
    ],
)
@pytest.mark.req("UI-22")
def test_a_saved_filter_is_a_term(text: str, ids: list[int]) -> None:
    matches = compile_filter(text, JOBS, saved=lambda table: KEPT if table == "jobs" else {})
    assert [row.id for row in five_jobs() if matches(row, CONTEXT)] == ids


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("@bgi", "there are @and-round, @big, @mine"),
        ("@round", "@round contains itself"),
        ("@", "no filter of jobs is saved as @;"),
    ],
)
def test_a_filter_that_was_not_saved_is_named(text: str, says: str) -> None:
    with pytest.raises(CockpitError) as wrong:
        compile_filter(text, JOBS, saved=lambda _: KEPT)
    assert says in str(wrong.value)


@pytest.mark.parametrize("name", ['a"b', "a\\", "two words", "x,y", "é @x", '\\"'])
def test_any_text_can_be_a_quoted_value(name: str) -> None:
    matches = compile_filter(f"name~{quoted(name)}", JOBS)
    assert matches(job_row(1, name=f"<{name}>"), CONTEXT)
    assert not matches(job_row(1, name="other"), CONTEXT)


@pytest.mark.req("UI-30", "UI-22")
@pytest.mark.parametrize(
    ("text", "table", "hint"),
    [
        ("state:faild", JOBS, "state is never faild; did you mean failed?"),
        ("!state:queued,runing", JOBS, "state is never runing; did you mean running?"),
        ("kind=sesion", JOBS, "kind is never sesion"),
        ("status:idel", NODES, "status is never idel; did you mean idle?"),
    ],
)
def test_an_impossible_value_of_a_column_is_refused_with_the_valid_ones(text: str, table: TableView, hint: str) -> None:
    with pytest.raises(FilterError, match=re.escape(hint)):
        compile_filter(text, table)


@pytest.mark.req("UI-22")
@pytest.mark.parametrize("text", ["state:FAILED", "state:held", "state:none", "state:Queued,timeout", "kind:batch"])
def test_values_match_in_any_case_and_by_their_synonyms(text: str) -> None:
    compile_filter(text, JOBS)


@pytest.mark.req("UI-22")
def test_escaped_text_is_found_as_it_is_shown() -> None:
    rows = [job_row(1, name="a\x1b[31mred"), job_row(2, name="前処理"), job_row(3, name="red")]
    shown = JOBS.find("name").texts(rows, CONTEXT)[0]
    for text in (f"name~{quoted(shown)}", quoted(shown)):
        assert [row.id for row in compile_filter(text, JOBS).passing(rows, CONTEXT)] == [1]


def test_jobs_of_several_clusters_are_shown_by_their_own_ids() -> None:
    whole = JobId(member_id(3, JobId(20)))
    array = replace(queued_row(member_id(3, JobId(30))), array=ArrayTask(whole, 4))
    part = replace(queued_row(member_id(3, JobId(21))), component=(whole, 1))
    shown = own_ids([array, part, queued_row(7)])
    assert [row.id for row in shown] == [30, 21, 7]
    assert (shown[0].array.array, shown[1].component) == (20, (20, 1))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("name:bert", "name~bert finds it in 1."),
        ("name=bert", "name~bert finds it in 1."),
        ('name:"bert"', 'name~"bert" finds it in 1.'),
        ("name:bert-eval", ""),
        ("name:nobody", ""),
        ("!name:bert", ""),
        ("name~bert", ""),
        ("id:47", ""),
        ("bert", ""),
    ],
)
def test_a_filter_that_wants_whole_words_names_the_one_for_parts(text: str, hint: str) -> None:
    said = whole_word_hint(text, JOBS, five_jobs(), Context(now=NOW))
    assert said.endswith(hint)
    assert bool(said) == bool(hint)
