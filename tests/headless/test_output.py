from __future__ import annotations

import csv
import io
import json

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.config.places import user_name
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.records import csv_cell
from cockpit.model.ids import JobId
from cockpit.model.job import ArrayTask
from cockpit.model.requests import RequestOutcome
from cockpit.present.moments import iso
from cockpit.present.tables.jobs import JOBS
from cockpit.present.units import duration
from tests.doubles.memory_backend import MemoryBackend
from tests.doubles.samples import HOUR, MINUTE, NOW, five_jobs, job_row, queued_row
from tests.headless.conftest import Desk

GOLDEN = """\
  ID  NAME       USER  STATE              QUEUE  PRIO  NODES  CARDS     TIME    LIMIT  START  WHY
4711  llama-sft  ann   running            –         –      2     16  2:00:00  8:00:00  10:00  –
4720  vit-sweep  bob   queued             –         –      1      4        –  8:00:00  –      \
waits for 4 A100 on one node; n07 has 3 free, n12 has 2 free
4715  bert-eval  bob   error · held 3:59  –         –      1    0.5  1:59:00  8:00:00  10:00  exit 3
4722  前処理     ann   queued             –         –      1      0        –  8:00:00  –      held by ann since 11:02
4699  [bold]red  ann   running · ending   –         –      1      0  2:00:00  8:00:00  10:00  is being stopped
"""

GOLDEN_80 = """\
  ID  NAME       USER  STATE              CARDS     TIME  WHY
4711  llama-sft  ann   running               16  2:00:00  –
4720  vit-sweep  bob   queued                 4        –  waits for 4 A100 on o…
4715  bert-eval  bob   error · held 3:59    0.5  1:59:00  exit 3
4722  前処理     ann   queued                 0        –  held by ann since 11:…
4699  [bold]red  ann   running · ending       0  2:00:00  is being stopped
"""


@pytest.mark.req("UI-40")
def test_the_table_without_a_terminal_is_written_in_full(desk: Desk) -> None:
    done = desk("jobs")
    assert done.out.decode() == GOLDEN
    assert (done.code, done.err) == (0, "")


def test_the_table_fits_the_terminal_by_leaving_out_and_cutting(desk: Desk) -> None:
    assert desk("jobs", terminal=True, columns=80).out.decode() == GOLDEN_80


@pytest.mark.req("UI-40")
def test_json_has_a_version_and_the_facts(desk: Desk) -> None:
    document = json.loads(desk("jobs", "-o", "json").out)
    assert document["version"] == 1
    by_id = {row["id"]: row for row in document["rows"]}
    failed = by_id[4715]
    assert failed["state"] == "error"
    assert failed["held_until"] == iso(NOW - MINUTE + 4 * HOUR)
    assert (failed["cards"], failed["exit_code"], failed["why"]) == (0.5, 3, "exit 3")
    assert by_id[4720]["held_until"] is None
    assert by_id[4720]["reason"]["type"] == "not_enough_free"
    assert by_id[4722]["reason"] == {"type": "held", "by": "ann", "since": iso(NOW - 58 * MINUTE)}


@pytest.mark.req("UI-40")
def test_json_jsonl_csv_and_wide_are_the_same_rows_cell_for_cell(desk: Desk) -> None:
    rows = json.loads(desk("jobs", "-o", "json").out)["rows"]
    assert [json.loads(line) for line in desk("jobs", "-o", "jsonl").lines] == rows
    table = list(csv.DictReader(io.StringIO(desk("jobs", "-o", "csv").out.decode())))
    assert [list(row) for row in table] == [list(row) for row in rows]
    for cells, row in zip(table, rows, strict=True):
        assert all(cells[key] == csv_cell_of(value) for key, value in row.items())


def csv_cell_of(value: object) -> str:
    match value:
        case None:
            return ""
        case dict():
            return msgspec.json.encode(value).decode()
        case list():
            return " ".join(value)
        case _:
            return str(value)


@pytest.mark.parametrize("column", [column.id for column in JOBS.columns])
@pytest.mark.req("UI-40")
def test_each_table_cell_agrees_with_json(desk: Desk, column: str) -> None:
    rows = json.loads(desk("jobs", "-o", "json").out)["rows"]
    cells = desk("jobs", "--columns", column, "--no-header").lines
    assert len(cells) == len(rows)
    for cell, row in zip(cells, rows, strict=True):
        assert cell.strip().startswith(words_of(column, row[column]))


def words_of(column: str, value: object) -> str:
    """The table's words for a JSON value, written a second time."""
    if value is None or value in ("", []):
        return "–" if value != "" else ""
    if isinstance(value, dict):
        return str(value["type"])
    if isinstance(value, list):
        return ", ".join(value)
    if column.endswith("_seconds"):
        return duration(value)
    if column == "memory_mib":
        return f"{value // 1024}G"
    return str(value)[11:16] if column.endswith(("_at", "_until")) else str(value)


def test_rows_and_columns_are_chosen_and_sorted(desk: Desk) -> None:
    done = desk("jobs", "--filter", "user:ann", "--sort", "-name", "--columns", "name,id", "-o", "csv", "--no-header")
    assert done.lines == ["前処理,4722", "llama-sft,4711", "[bold]red,4699"]


@pytest.mark.parametrize("option", ["--columns", "--sort"])
def test_an_unknown_column_is_reported_with_the_nearest(desk: Desk, option: str) -> None:
    done = desk("jobs", option, "nam")
    assert (done.code, done.out) == (64, b"")
    assert "did you mean name?" in done.err


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("plain", "plain"),
        ('say "hi", twice', '"say ""hi"", twice"'),
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("@SUM(1)", "'@SUM(1)"),
        (-3, "-3"),
        (0.5, "0.5"),
        ("a\nb\x1b", "a\\nb\\x1b"),
        (None, ""),
    ],
)
def test_cells_of_csv(value: object, cell: str) -> None:
    assert csv_cell(value) == cell


def test_an_empty_list_is_an_empty_document_and_a_hint_on_a_terminal(desk: Desk) -> None:
    desk.backend.job_rows = []
    assert json.loads(desk("jobs", "-o", "json").out)["rows"] == []
    assert desk("jobs").err == ""
    assert "cockpit submit" in desk("jobs", terminal=True).err


@pytest.mark.req("UI-40")
def test_the_whole_history_is_requested_only_with_the_option(desk: Desk) -> None:
    desk("jobs")
    desk("jobs", "--all")
    assert desk.backend.asked == [("jobs", False), ("jobs", True)]
    missing = "Ended jobs of before March are not known here."
    desk.backend.engine_status = replace(desk.engine.status(), trouble=(missing,))
    assert (desk("jobs", "--all").err, desk("jobs").err) == (f"{missing}\n", "")


def test_ten_thousand_rows_are_all_written(desk: Desk) -> None:
    desk.backend.job_rows = [job_row(number) for number in range(1, 10_001)]
    assert len(json.loads(desk("jobs", "-o", "json").out)["rows"]) == 10_000


@pytest.mark.req("UI-01", "UI-40")
def test_arrays_are_folded_on_request_after_filtering_and_before_sorting(desk: Desk) -> None:
    array = [(10 + index, ArrayTask(JobId(10), index, 2, 4)) for index in range(4)]
    running = [job_row(number, array=task, name="sweep", partitions=("gpu",)) for number, task in array[:1]]
    waiting = [queued_row(number, array=task, name="sweep", priority=90 + number) for number, task in array[1:]]
    desk.backend.job_rows = [*running, *waiting, queued_row(20, priority=95)]
    columns = ("--columns", "id,state,priority", "--no-header")
    assert [line.split()[0] for line in desk("jobs", *columns).lines] == ["10_0", "10_1", "10_2", "10_3", "20"]
    folded = desk("jobs", "--fold", *columns, "--sort", "-priority")
    assert [line.split() for line in folded.lines] == [
        ["10_[0-3%2]", "3", "queued,", "1", "running", "103"],
        ["20", "queued", "95"],
    ]
    filtered = desk("jobs", "--fold", *columns, "--filter", "state:queued array:10")
    assert filtered.lines == ["10_[1-3%2]  3 queued  103"]
    (row, _) = json.loads(desk("jobs", "--fold", "-o", "json").out)["rows"]
    assert (row["id"], row["array"], row["task"], row["tasks"], row["state"]) == (10, 10, None, 4, "queued")
    assert desk("jobs", "--fold", "--watch").code == 64


@pytest.mark.req("UI-22")
def test_a_saved_filter_is_applied_by_its_name(desk: Desk) -> None:
    desk.saved = {"jobs": {"anns": "user:ann"}}
    done = desk("jobs", "--filter", "@anns state:running", "--columns", "id", "-o", "csv", "--no-header")
    assert done.lines == ["4711", "4699"]
    assert "there are @anns" in desk("jobs", "--filter", "@bobs").err
    assert "no filter of nodes is saved as @anns" in desk("nodes", "--filter", "@anns").err


@pytest.mark.req("UI-22")
@pytest.mark.parametrize(("text", "saved"), [("user:me", {}), ("user:ME", {}), ("@mine", {"mine": "user:me"})])
def test_me_is_the_user_that_the_cluster_knows(desk: Desk, text: str, saved: dict[str, str]) -> None:
    desk.backend.engine_status = replace(desk.engine.status(), user="ann")
    desk.backend.job_rows, desk.saved = five_jobs(), {"jobs": saved}
    assert desk("jobs", "--filter", text, "--columns", "id", "-o", "csv", "--no-header").lines == [
        "4711",
        "4722",
        "4699",
    ]


@pytest.mark.req("UI-22")
def test_me_is_the_user_of_this_system_where_no_engine_was_asked(desk: Desk) -> None:
    desk.backend.job_rows = [job_row(7, user=user_name()), job_row(8, user="somebody else")]
    assert desk("jobs", "--filter", "user:me", "--columns", "id", "-o", "csv", "--no-header").lines == ["7"]


@pytest.mark.req("UI-22")
def test_a_filter_without_me_asks_nobody_for_the_users_name(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer may wait for a directory service."""
    monkeypatch.delattr(MemoryBackend, "status")
    desk.saved = {"jobs": {"mine": "user:me"}}
    for text in ("user:ann", "user:mel"):
        assert desk("jobs", "--filter", text).code == ExitCode.OK


@pytest.mark.req("UI-40")
def test_only_the_jobs_of_a_request_are_listed(desk: Desk) -> None:
    rows = five_jobs()

    async def request(_: str) -> RequestOutcome:
        return RequestOutcome(known=True, jobs=(rows[1].id,))

    rows[1] = replace(rows[1], ended_at=NOW, held_until=None)
    desk.backend.job_rows, desk.backend.request = rows, request
    found = json.loads(desk("jobs", "--request", "mine", "-o", "json").out)
    assert [row["id"] for row in found["rows"]] == [rows[1].id]


@pytest.mark.req("UI-40")
def test_the_tasks_of_a_request_are_folded_on_request(desk: Desk) -> None:
    tasks = [queued_row(10 + index, array=ArrayTask(JobId(10), index, None, 3)) for index in range(3)]

    async def request(_: str) -> RequestOutcome:
        return RequestOutcome(known=True, jobs=(10, 11, 12))

    desk.backend.job_rows, desk.backend.request = [*tasks, job_row(20)], request
    words = ("jobs", "--request", "mine", "--columns", "id", "--no-header")
    assert desk(*words).lines == ["10_0", "10_1", "10_2"]
    assert desk(*words, "--fold").lines == ["10_[0-2]"]
