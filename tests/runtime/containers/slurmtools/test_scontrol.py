"""The scontrol of a batch script's container: what it shows without a daemon, and what it says of the rest."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from cockpit.runtime.containers.slurmtools import scontrol

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.req("LA-71")
RECORD = """JobId=7 JobName=train
   JobState=RUNNING
   StartTime=@1800000000@ EndTime=@0@
   RunTime=@since 1800000000@ RunAgain=@since 0@
"""
DAY, START = 86_400, 1_800_000_000


@pytest.fixture
def show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "job").write_text(RECORD)
    monkeypatch.setattr(scontrol, "RECORD", tmp_path / "job")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "a[1-2],b")
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()

    def run(*words: str) -> tuple[int, str, str]:
        code = scontrol.main([*words])
        said = capsys.readouterr()
        return code, said.out, said.err

    yield run
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("show", "hostnames"), "a1\na2\nb\n"),
        (("sh", "host"), "a1\na2\nb\n"),
        (("show", "hostnames", "c[08-10]"), "c08\nc09\nc10\n"),
        (("show", "hostlist", "b,a2,a1"), "b,a[2,1]\n"),
        (("show", "hostlistsorted", "b,a10,a9,a"), "a,a[9-10],b\n"),
        (("show", "hostlist", "a1", "a2"), "a[1-2]\n"),
        (("-V",), "slurm 22.05 (cockpit)\n"),
        (("show", "--version"), "slurm 22.05 (cockpit)\n"),
    ],
)
def test_lists_of_hosts_are_written_out_and_shortened(show, words: tuple[str, ...], shown: str) -> None:
    assert show(*words) == (0, shown, "")


@pytest.mark.parametrize(
    ("lasted", "clock"),
    [(-5, "00:00:00"), (59, "00:00:59"), (3600 + 62, "01:01:02"), (DAY - 1, "23:59:59"), (3 * DAY + 1, "3-00:00:01")],
)
def test_the_scripts_own_job_is_shown_with_times_of_now(
    show, lasted: int, clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: START + lasted + 0.5)
    code, text, _ = show("show", "job")
    lines = text.split("\n")
    assert (code, lines[:2], lines[4:]) == (0, ["JobId=7 JobName=train", "   JobState=RUNNING"], ["", ""])
    assert lines[2] == "   StartTime=2027-01-15T08:00:00 EndTime=Unknown"
    assert lines[3] == f"   RunTime={clock} RunAgain=Unknown"


@pytest.mark.parametrize("words", [("job", "7"), ("jobs", "7"), ("jobid", "7"), ("job", "JobId=7"), ("job", "70_3")])
def test_the_job_is_known_by_its_id_and_as_a_task_of_its_array(
    show, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "70")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    code, text, _ = show("show", *words)
    assert (code, text.startswith("JobId=7 ")) == (0, True)


@pytest.mark.parametrize("option", ["-o", "--oneliner"])
def test_a_job_is_shown_in_one_line_where_that_is_wanted(show, option: str) -> None:
    code, text, _ = show(option, "show", "job")
    assert (code, text.count("\n"), text.startswith("JobId=7 JobName=train JobState=RUNNING StartTime=")) == (
        0,
        1,
        True,
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "job", "8"), "job 8: only the script's own job is known here; `cockpit job 8` shows others"),
        (("requeue", "7"), "requeue: does not work in a container; outside of it run `cockpit requeue ID`"),
        (("update", "x=1"), "update: does not work in a container; outside of it run `cockpit edit ID`"),
        (("requeuehold", "7"), "requeuehold: does not work in a container; outside of it run `cockpit requeue ID`"),
        ((), f"nothing to do: {scontrol.USAGE}; outside of it `cockpit --help` lists what there is"),
        (("ping",), f"ping: {scontrol.USAGE}; outside of it `cockpit --help` lists what there is"),
        (("show",), f"show : {scontrol.USAGE}"),
        (("show", "hostlist"), f"show hostlist: {scontrol.USAGE}"),
        (("show", "nodes"), f"show nodes: {scontrol.USAGE}"),
    ],
)
def test_what_does_not_work_in_a_container_is_said_with_what_does(show, words: tuple[str, ...], said: str) -> None:
    assert show(*words) == (1, "", f"scontrol: error: {said}\n")


def test_an_invalid_list_of_hosts_is_named(show) -> None:
    code, text, error = show("show", "hostnames", "a[1-")
    assert (code, text, error.startswith("scontrol: error: ")) == (1, "", True)
