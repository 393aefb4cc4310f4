from __future__ import annotations

import gzip
import json
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest

from cockpit.formats.traces.swf import MOST
from cockpit.headless.streams import Progress, Streams
from cockpit.model.ids import Millis

LOG = """; MaxProcs: 999
2 1 0 5 4 -1 -1 4 5 -1 1 1 -1 -1 -1 -1 -1 -1
1 0 0 9 3 -1 -1 3 10 -1 1 2 -1 -1 -1 -1 -1 -1
3 2 0 3 1 -1 -1 1 3 -1 1 2 -1 -1 -1 -1 -1 -1
4 2 0 3 9 -1 -1 9 3 -1 1 2 -1 -1 -1 -1 -1 -1
"""


class _Terminal(BytesIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def log(tmp_path: Path) -> Path:
    file = tmp_path / "log.swf"
    file.write_text(LOG)
    return file


@pytest.mark.req("SC-20")
def test_json_is_one_object_with_exact_figures(desk, log) -> None:
    done = desk("replay", str(log), "--procs", "4", "--check", "-o", "json")
    assert done.code == 0
    told = json.loads(done.out)
    assert told.pop("jobs_per_second") == 3000, "the clock stands still here, which counts as a millisecond"
    assert isinstance(told.pop("peak_rss_mib"), int)
    assert told == {
        "version": 1,
        "policy": "easy",
        "processors": 4,
        "jobs": 3,
        "skipped": 1,
        "identical_waits": 2,
        "first_difference": {"job": 2, "waits": 8, "log": 0},
        "mean_bounded_slowdown": (1 + 1.3 + 1) / 3,
        "mean_wait": 8 / 3,
        "utilisation": 50 / 56,
    }
    assert done.err == "Not replayed: 1 line (more processors than there are).\n"


@pytest.mark.req("SC-20")
@pytest.mark.parametrize("policy", ["easy", "conservative", "multifactor"])
@pytest.mark.parametrize("limit", [4294967295, MOST])
def test_a_very_large_time_limit_is_accepted(desk, tmp_path, policy: str, limit: int) -> None:
    """Logs say so that there was none."""
    fields = f"-1 10 4 -1 -1 4 {limit} -1 1 1 1 -1 -1 -1 -1 -1"
    file = tmp_path / "endless.swf"
    file.write_text(f"1 0 {fields}\n2 5 {fields}\n")
    told = json.loads(desk("replay", str(file), "--procs", "4", "--policy", policy, "-o", "json").out)
    assert (told["jobs"], told["mean_wait"]) == (2, 2.5)


def test_a_page_for_people(desk, log) -> None:
    done = desk("replay", str(log), "--procs", "4", "--check")
    assert done.lines[:4] == [
        "policy                 easy on 4 processors",
        "jobs                   3, 1 not replayed",
        "waits as in the log    2 of 3",
        "first difference       job 2 waits 8 s, in the log 0 s",
    ]


def test_without_a_check_no_schedule_is_compared(desk, log) -> None:
    told = json.loads(desk("replay", str(log), "--procs", "4", "-o", "json").out)
    assert told["identical_waits"] is None
    assert told["first_difference"] is None


@pytest.mark.parametrize("name", ["out.swf", "out.swf.gz"])
def test_the_schedule_it_writes_is_a_log_that_it_reproduces(desk, log, tmp_path, name) -> None:
    written = tmp_path / name
    desk("replay", str(log), "--procs", "4", "--write", str(written))
    data = written.read_bytes()
    text = gzip.decompress(data).decode() if name.endswith(".gz") else data.decode()
    assert [line.split()[:3] for line in text.splitlines() if not line.startswith(";")] == [
        ["1", "0", "0"],
        ["2", "1", "8"],
        ["3", "2", "0"],
    ]
    told = json.loads(desk("replay", str(written), "--procs", "4", "--check", "-o", "json").out)
    assert (told["identical_waits"], told["first_difference"]) == (3, None)


@pytest.mark.parametrize(
    ("header", "processors"),
    [("; MaxProcs: 4", 4), (";MaxNodes: 7\n; MaxProcs: 5 ", 5), ("; MaxNodes: 6\n; MaxProcs: -1", 6)],
)
def test_without_a_number_the_machine_is_that_of_the_header(desk, tmp_path, header: str, processors: int) -> None:
    log = tmp_path / "log.swf"
    log.write_text(LOG.replace("; MaxProcs: 999", header))
    assert json.loads(desk("replay", str(log), "-o", "json").out)["processors"] == processors


def test_a_log_may_come_from_stdin(desk, log) -> None:
    done = desk("replay", "-", "--procs", "4", "-o", "json", stdin=log.read_bytes())
    assert json.loads(done.out)["jobs"] == 3


def test_a_bar_is_drawn_only_on_a_terminal(desk, log) -> None:
    assert b"jobs" not in desk("replay", str(log), "--procs", "4").err.encode().replace(b"Not replayed", b"")
    shown = desk("replay", str(log), "--procs", "4", terminal=True).err
    assert f"\r[{'#' * 30}] 3 of 3 jobs\r{' ' * 44}\r" in shown
    shown = desk("replay", str(log), "--procs", "4", "--predict", "2", terminal=True).err
    assert "] 3 of 3 jobs, now to predict\r" in shown


@pytest.mark.req("UI-27")
def test_a_bar_is_drawn_from_the_first_item_on_and_leaves_nothing_behind(desk) -> None:
    err = _Terminal()
    streams = Streams(stdin=BytesIO(), stdout=BytesIO(), stderr=err, now=lambda: Millis(0))
    with Progress(streams, 200, "jobs"):
        pass
    assert err.getvalue() == b"", "no bar was drawn, so there is nothing to remove"
    with Progress(streams, 200, "jobs") as progress:
        for done in (0, 1, 2, 3, 4):
            progress.at(done)
    empty = f"[{'.' * 30}]"
    *bars, blanks, end = err.getvalue().decode().split("\r")[1:]
    assert bars == [f"{empty} {done} of 200 jobs" for done in (0, 2, 4)], "drawn again after each hundredth"
    assert (blanks, end) == (" " * len(bars[-1]), "")


@pytest.mark.req("UI-27")
def test_an_interrupted_replay_clears_its_bar_and_prints_the_remaining_time(desk) -> None:
    err = _Terminal()
    clock = iter(range(0, 100_000, 2000))
    streams = Streams(stdin=BytesIO(), stdout=BytesIO(), stderr=err, now=lambda: Millis(next(clock)))
    with suppress(KeyboardInterrupt), Progress(streams, 20_000, "jobs") as progress:
        progress.at(5000)
        raise KeyboardInterrupt
    *_, bar, blanks, end = err.getvalue().decode().split("\r")
    assert (bar, end) == (f"[{'#' * 7}{'.' * 23}] 5 000 of 20 000 jobs, 6 s left", "")
    assert blanks == " " * len(bar)


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("nowhere.swf", "--procs", "4"), 66, "There is no file nowhere.swf"),
        (("LOG", "--procs", "0"), 64, "at least one processor"),
        (("LOG", "--procs", "4", "--policy", "best"), 64, "best"),
        (("LOG", "--procs", "4", "--write", "/nowhere/x.swf"), 65, "/nowhere/x.swf: cannot be written"),
    ],
)
def test_an_invalid_replay_is_reported(desk, log, words, code, says) -> None:
    done = desk("replay", *(str(log) if word == "LOG" else word for word in words))
    assert done.code == code
    assert says in done.err


def test_a_log_without_a_header_requires_the_number_of_processors(desk, log) -> None:
    done = desk("replay", "-", stdin=log.read_bytes().replace(b"; MaxProcs: 999", b"; Version: 2"))
    assert (done.code, done.out) == (64, b"")
    assert "its header has no MaxProcs; say with --procs N" in done.err


WAITING = """; MaxProcs: 4
1 0 0 60 4 -1 -1 4 600 -1 1 1 -1 -1 -1 -1 -1 -1
2 100 0 60 4 -1 -1 4 600 -1 1 1 -1 -1 -1 -1 -1 -1
3 120 40 30 4 -1 -1 4 600 -1 1 1 -1 -1 -1 -1 -1 -1
4 130 60 20 4 -1 -1 4 100 -1 1 1 -1 -1 -1 -1 -1 -1
"""


@pytest.mark.req("SC-12")
def test_the_accuracy_of_predictions_is_a_page_for_people(desk) -> None:
    def page(*options: str) -> list[str]:
        return desk("replay", "-", "--predict", "9", *options, stdin=WAITING.encode()).lines

    assert page() == [
        "jobs                   2 that waited",
        "likely start           off by 15 s in the median, 15 s in the mean",
        "within a minute        100.0%, within ten 100.0%",
        "likely range           holds for 100.0%, as wide as 16.96 waits in the median",
        "end of the range       holds for 100.0% (100.0% by time limits alone)",
        "end ÷ wait             17.38 in the median (17.00 by time limits alone)",
        "no later than          promised to 1 job, holds for 100.0%",
    ]
    assert page("--policy", "conservative")[-1] == "no later than          promised to 2 jobs, holds for 100.0%"
    assert json.loads("".join(page("-o", "json")))["jobs"] == 2


@pytest.mark.req("SC-12")
def test_predictions_that_promise_nothing_say_so(desk) -> None:
    lines = desk("replay", "-", "--predict", "1", "--seed", "0", stdin=WAITING.encode()).lines
    assert (lines[0], lines[-1]) == (
        "jobs                   1 that waited",
        "no later than          promised to none of them",
    )


@pytest.mark.req("SC-12")
def test_a_log_in_which_no_job_waits_has_nothing_to_predict(desk) -> None:
    done = desk("replay", "-", "--procs", "99", "--predict", "9", stdin=WAITING.encode())
    assert done.code == 65
    assert "No job waits" in done.err


@pytest.mark.req("SC-20")
@pytest.mark.parametrize(("policy", "starts"), [("easy", [0, 5000, 5050]), ("multifactor", [0, 5050, 5000])])
def test_users_who_used_the_machine_less_go_first_only_by_the_policy_with_factors(
    desk, tmp_path, policy: str, starts: list[int]
) -> None:
    """Job 1 of user 2 runs for long; then jobs 2 of the same user and 3 of another one wait for the whole machine."""
    jobs = ((1, 0, 5000, 2), (2, 10, 50, 2), (3, 20, 50, 1))
    log = "".join(
        f"{job} {at} -1 {runs} 4 -1 -1 4 {runs} -1 1 {user} 1 -1 1 -1 -1 -1\n" for job, at, runs, user in jobs
    )
    file = tmp_path / "schedule.swf"
    desk("replay", "-", "--procs", "4", "--policy", policy, "--write", str(file), stdin=log.encode())
    rows = [line.split() for line in file.read_text().splitlines() if not line.startswith(";")]
    assert [int(at) + int(waited) for _, at, waited, *_ in rows] == starts


def test_a_packed_schedule_is_the_same_file_each_time(desk, log, tmp_path) -> None:
    for name in ("a.swf.gz", "b.swf.gz"):
        desk("replay", str(log), "--procs", "4", "--write", str(tmp_path / name))
    assert (tmp_path / "a.swf.gz").read_bytes() == (tmp_path / "b.swf.gz").read_bytes()
    assert (tmp_path / "a.swf.gz").read_bytes()[4:8] == bytes(4), "without the time of writing"
