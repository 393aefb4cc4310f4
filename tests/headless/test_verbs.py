from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from msgspec.structs import replace

from cockpit.errors import SpecErrors, Unreachable
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.streams import Streams
from cockpit.model.attempt import Attempt, ExitStatus, Replica
from cockpit.model.capabilities import EMBEDDED, ENGINE, Capabilities
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import JobState
from cockpit.model.mounts import Algorithm, Dataset
from cockpit.model.node import Allocation
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import Dependency, DependencyKind, JobSpec
from tests.doubles.samples import NOW, hold_row, job, overview
from tests.doubles.tensorboard import stand_in
from tests.headless.conftest import Desk

JOB_PAGE = """\
4715 bert-eval · bob · ✗ error · held 3:59
Exit 3.

command       python eval.py
asks for      1 node with 4 CPUs, 16G and 0.5 A100
ran on        n03
times         submitted 09:00 · started 10:00 · ended 11:59 · 1:59:00 of 8:00:00
output        /data/out
algorithm     /data/algo
volume        scratch = /scratch
project       ann

Replicas
  0  n03 card 1(2) · started 10:00 · exit 3 · limits: cgroup v1

Held until 15:59, 3:59 left
  open shell    cockpit shell 4715
  extend hold   cockpit holds extend 4715 --by 2h
  end hold      cockpit holds end 4715

Last lines
  loading
  RuntimeError: device-side assert

Events
  11:00  bob  was submitted as bert-eval by bob
  11:01  engine  was placed on n03 with 0.5 of a card
  11:02  engine  replica 0 started (limits: cgroup v1)
  11:03  engine  replica 0 ended: exit 3
  11:04  engine  ended: error (exit); held until 15:59
"""


@pytest.mark.req("JT-40")
def test_the_details_of_a_held_job(desk: Desk) -> None:
    assert desk("job", "4715").out.decode() == JOB_PAGE


@pytest.mark.req("SC-14")
def test_the_details_of_a_waiting_job_begin_with_the_reason(desk: Desk) -> None:
    assert desk("job", "4720").lines[:4] == [
        "4720 vit-sweep · ann · ◌ queued",
        "Waits for 4 A100 on one node; n07 has 3 free, n12 has 2 free.",
        "Place 3 in the queue, after 4722 and 4718.",
        "Starts about 13:00 (in 1 h), no later than 14:00.",
    ]


def test_the_details_of_a_job_as_json(desk: Desk) -> None:
    (row,) = json.loads(desk("job", "4715", "-o", "json").out)["rows"]
    assert (row["id"], row["state"], row["attempt"]) == (4715, "error", 1)
    assert row["replicas"][0]["exit_code"] == 3
    assert row["events"][-1]["event"] == "job_ended"


def test_an_unknown_job_is_reported(desk: Desk) -> None:
    done = desk("job", "9")
    assert (done.code, done.out, done.err) == (66, b"", "there is no job 9; see cockpit jobs\n")


@pytest.mark.req("UI-41")
def test_submit_prints_the_id_as_the_last_word_of_a_line_each(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text("one two")
    done = desk("submit", str(tmp_path / "two.yaml"), "-", stdin=b"three")
    assert done.lines == ["submitted one as 100", "submitted two as 101", "submitted three as 102"]
    (submitted,) = desk.backend.asked
    assert [spec.output for spec in submitted[1:]] == [str(tmp_path), str(tmp_path), str(Path.cwd())]
    assert not any(spec.hold for spec in submitted[1:])


@pytest.mark.req("JT-06", "UI-41")
def test_submit_reports_missing_folders_at_once(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "data").touch()

    def read(_source: str, _text: str, folder: str) -> list[JobSpec]:
        code, lost = Algorithm(path=f"{tmp_path}/code"), Dataset(name="lost", path=f"{tmp_path}/lost\x1b[2J")
        below = Dataset(name="below", path=f"{tmp_path}/data/below")
        image = f"tar:{tmp_path}/none.tar"
        return [JobSpec(name="one", command="true", output=folder, algorithm=code, datasets=(lost, below), image=image)]

    desk.read_jobs, desk.backend.capabilities = read, ENGINE
    done = desk("submit", "-", stdin=b"x")
    later = "is not there now; the job fails if it is not when it starts"
    assert done.err.splitlines() == [
        f"stdin: datasets[0]: {tmp_path}/lost\\x1b[2J {later}",
        f"stdin: datasets[1]: {tmp_path}/data/below {later}",
        f"stdin: image: {tmp_path}/none.tar {later}",
    ]
    assert done.lines == ["submitted one as 100"]
    desk.backend.capabilities = EMBEDDED
    assert desk("submit", "-", stdin=b"x").err == ""


def test_submit_held(desk: Desk) -> None:
    desk("submit", "--hold", "-", stdin=b"one")
    assert desk.backend.asked[0][1].hold


def test_one_invalid_file_submits_no_job_and_all_errors_are_reported(desk: Desk, tmp_path: Path) -> None:
    def read_jobs(source: str, text: str, _folder: str) -> list[JobSpec]:
        if text == "wrong":
            raise SpecErrors([f"{source}: nodes: is 0; at least 1"])
        return [JobSpec(name="ok", command="true", output="/o")]

    desk.read_jobs = read_jobs
    files = {"ok.yaml": b"ok", "wrong.yaml": b"wrong", "latin.yaml": b"\xff"}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    done = desk("submit", *(str(tmp_path / name) for name in [*files, "absent.yaml"]))
    assert (done.code, done.out, desk.backend.asked) == (65, b"", [])
    told = done.err.splitlines()
    assert told[0].endswith("wrong.yaml: nodes: is 0; at least 1")
    assert told[1].endswith("latin.yaml: byte 0 is not UTF-8; save it as UTF-8")
    assert told[2].endswith("absent.yaml: cannot be read: No such file or directory")


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        ({"state": JobState.SUCCEEDED, "exit": ExitStatus(code=0)}, 0),
        ({"state": JobState.ERROR, "exit": ExitStatus(code=3)}, 3),
        ({"state": JobState.ERROR, "exit": ExitStatus(signal=9)}, 137),
        ({"state": JobState.EXPIRED, "exit": ExitStatus(code=0)}, 255),
        ({"state": JobState.STOPPED, "exit": None}, 255),
        ({"state": JobState.ERROR, "exit": ExitStatus(lost="gone")}, 255),
    ],
)
@pytest.mark.req("UI-41")
def test_wait_exits_with_the_code_of_the_job(desk: Desk, ended: dict[str, object], code: int) -> None:
    desk.backend.ended[7] = job(7, **ended)
    done = desk("wait", "7")
    assert (done.code, done.out) == (code, b"")


def test_wait_for_several_exits_with_the_first_that_failed(desk: Desk) -> None:
    for number, code in ((1, 0), (2, 4), (3, 5)):
        state = JobState.ERROR if code else JobState.SUCCEEDED
        desk.backend.ended[number] = job(number, state=state, exit=ExitStatus(code=code))
    assert desk("wait", "1", "2", "3").code == 4


def test_wait_gives_up_after_its_time_over_all_jobs(desk: Desk) -> None:
    desk.backend.ended = {1: job(1, state=JobState.SUCCEEDED), 2: None}
    desk.clock[0] += 0
    assert desk("wait", "1", "2", "--timeout", "1.5").code == 124
    assert desk.backend.asked == [("wait", 1, 1.5), ("wait", 2, 1.5)]


@pytest.mark.req("JT-36")
def test_cancel_asks_for_confirmation_on_a_terminal_with_no_as_the_default(desk: Desk) -> None:
    refused = desk("cancel", "4711", terminal=True, stdin=b"\n")
    assert (refused.code, refused.out, desk.backend.asked) == (71, b"", [])
    assert refused.err == "Cancel 4711? [y/N] "
    agreed = desk("cancel", "4711", "4712", terminal=True, stdin=b"y\n")
    assert agreed.err == "Cancel 2 jobs (4711, 4712)? [y/N] "
    assert agreed.lines == ["cancelled 4711", "cancelled 4712"]


@pytest.mark.req("JT-37")
def test_deleting_several_asks_once_with_their_number(desk: Desk) -> None:
    refused = desk("delete", "4715", "4716_3", terminal=True, stdin=b"\n")
    assert (refused.code, refused.err) == (71, "Delete 2 jobs (4715, 4716_3)? [y/N] ")
    assert desk.backend.asked == []
    assert desk("delete", "4715", "4716", "--yes", terminal=True).lines == ["deleted 4715", "deleted 4716"]


@pytest.mark.req("JT-36")
def test_cancel_asks_for_no_confirmation_in_a_script_or_with_yes(desk: Desk) -> None:
    desk("cancel", "1")
    desk("cancel", "2", "--now")
    desk("cancel", "3", "--yes", terminal=True)
    desk("cancel", "4", "--grace", "5m")
    assert desk.backend.asked == [("cancel", 1, None), ("cancel", 2, 0), ("cancel", 3, None), ("cancel", 4, 300)]
    assert desk("cancel", "5", "--grace", "5m", "--now").code == ExitCode.USAGE


@pytest.mark.req("JT-25", "SC-10")
def test_dependencies_may_be_given_beside_the_file(desk: Desk) -> None:
    desk("submit", "--dependency", "afterok:7_2,singleton", "-", stdin=b"one")
    wanted = (Dependency(DependencyKind.AFTER_OK, JobId(7), 2), Dependency(DependencyKind.SINGLETON))
    assert desk.backend.asked[0][1].dependencies == wanted
    refused = desk("submit", "--dependency", "afterok:7?afterok:8", "-", stdin=b"one")
    assert refused.code == ExitCode.USAGE
    assert "comma instead of each ?" in refused.err


@pytest.mark.parametrize(("verb", "done"), [("hold", "held"), ("release", "released")])
def test_hold_and_release(desk: Desk, verb: str, done: str) -> None:
    assert desk(verb, "4720", "4722").lines == [f"{done} 4720", f"{done} 4722"]
    assert desk.backend.asked == [(verb, 4720), (verb, 4722)]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (RefusalKind.INVALID, 65),
        (RefusalKind.NOT_FOUND, 66),
        (RefusalKind.CONFLICT, 67),
        (RefusalKind.UNAVAILABLE, 75),
        (RefusalKind.DENIED, 77),
    ],
)
@pytest.mark.req("UI-40")
def test_each_refusal_has_its_exit_code(desk: Desk, kind: RefusalKind, code: int) -> None:
    desk.backend.refusal = Refusal(kind, "no, because")
    for command in (["release", "1"], ["submit", "-"], ["holds", "extend", "1", "--by", "2h"]):
        done = desk(*command, stdin=b"x")
        assert (done.code, done.out, done.err) == (code, b"", "no, because\n")


@pytest.mark.req("JT-40")
def test_a_hold_is_extended_and_ended(desk: Desk) -> None:
    assert desk("holds", "extend", "4715", "--by", "2h").lines == ["job 4715 is held until 17:59"]
    assert desk("holds", "end", "4715").lines == ["ended the debug hold of 4715"]
    assert desk("holds", "end", "4715", terminal=True, stdin=b"n\n").code == 71
    assert desk.backend.asked == [("extend_hold", 4715, 7200), ("end_hold", 4715)]


@pytest.mark.req("EL-05")
def test_the_block_list_of_a_job_is_listed_and_a_node_taken_off(desk: Desk) -> None:
    assert desk("job", "4715", "--block-list", terminal=True).err == "No node is on the job's block list.\n"
    detail = desk.backend.details[JobId(4715)]
    part = Allocation(0, NodeName("n07"), 4, 1024)
    gone = Replica(rank=1, left_at=NOW, had=replace(part, rank=1), blocked="it did not answer")
    attempt = Attempt(number=1, spec_index=0, placement=(part,), placed_at=NOW, replicas=(Replica(rank=0), gone))
    job = replace(detail.job, state=JobState.RUNNING, attempt=attempt)
    desk.backend.details[JobId(4715)] = replace(detail, job=job)
    (row,) = json.loads(desk("job", "4715", "--block-list", "-o", "json").out)["rows"]
    assert (row["node"], row["replica"], row["because"]) == ("n07", 1, "it did not answer")
    assert "n07" in desk("job", "4715", "--block-list").lines[1]
    assert desk("unblock", "4715", "n07").lines == ["job 4715 may have workers on n07 again"]
    assert desk.backend.asked == [("unblock", 4715, "n07")]


def test_holds_are_listed_with_the_time_left(desk: Desk) -> None:
    assert desk("holds").lines[1].split()[-1] == "3:59"
    assert json.loads(desk("holds", "-o", "json").out)["rows"][0]["left"] == 14_340


@pytest.mark.req("JT-43", "JT-44")
def test_schedulable_nodes_are_listed_and_checked_against_the_chosen_spec(desk: Desk) -> None:
    rows = json.loads(desk("nodes", "--cards", "6", "--cpus", "4", "-o", "json").out)["rows"]
    assert [(row["name"], row["status"], row["specs_fit"]) for row in rows] == [("n07", "idle", 1)]
    rows = json.loads(desk("nodes", "--all", "--card-model", "H100", "-o", "json").out)["rows"]
    assert [(row["name"], row["status"]) for row in rows] == [("n07", "tight"), ("n12", "drained")]


@pytest.mark.req("JT-43", "SL-11")
def test_drained_nodes_are_among_the_nodes_with_their_reason(desk: Desk) -> None:
    rows = json.loads(desk("nodes", "-o", "json").out)["rows"]
    reasons = {row["name"]: row["state_reason"] for row in rows if row["status"] == "drained"}
    assert reasons["n12"]
    (line,) = [line for line in desk("nodes").lines if line.startswith("n12")]
    assert line.rstrip().endswith(reasons["n12"])
    assert line.count(reasons["n12"]) == 1
    in_service = json.loads(desk("nodes", "--up", "-o", "json").out)["rows"]
    assert {row["name"] for row in rows} - {row["name"] for row in in_service} == {"n12"}


@pytest.mark.parametrize("cards", ["1.5", "-1", "x", "nan"])
def test_an_invalid_number_of_cards_is_refused(desk: Desk, cards: str) -> None:
    assert desk("nodes", f"--cards={cards}").code == 64


def test_events_of_one_job(desk: Desk) -> None:
    assert desk("events", "4715", "-n", "2").lines[1].split()[:5] == ["4", "11:03", "4715", "engine", "replica_ended"]
    assert desk.backend.asked == [("events", 4715, -1, 2)]


@pytest.mark.req("UI-41")
@pytest.mark.parametrize(
    "words",
    [
        ("cancel", "1", "2"),
        ("holds", "end", "1", "2"),
        ("reservations", "end", "1", "2"),
        ("nodes", "resume", "1", "2"),
    ],
)
def test_every_job_is_tried_even_if_others_are_refused(desk: Desk, words: tuple[str, ...]) -> None:
    desk.backend.refusal = Refusal(RefusalKind.CONFLICT, "not now")
    refused = desk(*words)
    assert (refused.code, refused.out, refused.err) == (ExitCode.CONFLICT, b"", "not now\nnot now\n")


def test_the_overview_of_the_cluster(desk: Desk) -> None:
    lines = desk().lines
    assert lines[0] == "lab: 2 nodes, 128 CPUs, 1T, 16 × A100."
    assert lines[1] == "◌ 2 queued   ● 2 running   ✗ 1 error   1 held"
    assert lines[4].split() == ["cards", "━", "1.5/16"]


def test_a_first_run_says_what_to_do_next(desk: Desk) -> None:
    desk.backend.node_rows = desk.backend.node_rows[:1]
    desk.backend.glance = msgspec.structs.replace(desk.backend.glance, jobs_by_state={}, held=0, cpus=64)
    lines = desk().lines
    assert lines[0] == "This machine: 64 CPUs, 1T, 8 × A100. No jobs yet."
    assert "cockpit submit job.yaml" in lines[1]


def test_the_engine_status_is_read_without_connecting(desk: Desk) -> None:
    (row,) = json.loads(desk("engine", "status", "-o", "json").out)["rows"]
    assert (row["pid"], row["socket"], row["state_folder"]) == (77, "/run/s", "/var/s")
    assert (row["version"], row["protocol"], row["status"]) == ("0.1.0", "1.0", "running")
    desk.engine.running = False
    assert desk("engine").code == 69
    assert desk.connected == []


def test_the_engine_is_started_stopped_and_restarted(desk: Desk) -> None:
    desk("engine", "start", "--system")
    assert desk("engine", "stop").lines == ["the engine is stopped; running jobs continue"]
    assert desk("engine", "stop", "--jobs", terminal=True, stdin=b"\n").code == 71
    desk("engine", "stop", "--jobs", "--yes", terminal=True)
    assert desk("engine", "restart").lines == ["the engine runs as process 77"]
    assert desk.engine.asked == [("start", True), ("stop", False, False), ("stop", True, False), ("restart",)]


@pytest.mark.req("TR-14")
def test_the_unit_is_printed_or_installed_with_what_to_do_next(desk: Desk) -> None:
    assert desk("engine", "unit").lines == ["[Unit]"]
    assert desk.engine.asked == []
    done = desk("engine", "unit", "--install")
    assert done.lines == ["/u/cockpit-cluster-engine.service"]
    assert desk.engine.asked == [("install_unit",)]


class Found(NamedTuple):
    level: str
    subject: str
    found: str
    advice: str = ""


@pytest.mark.req("UI-44")
def test_doctor_fails_only_when_something_is_missing(desk: Desk) -> None:
    desk.findings = (Found("ok", "Python", "3.11"), Found("note", "tmux", "TERM is screen", "set it"))
    assert desk("doctor").code == 0
    desk.findings = (*desk.findings, Found("missing", "bubblewrap", "absent", "apt install bubblewrap"))
    done = desk("doctor", "--filter", "!level:ok", "-o", "json")
    assert done.code == 72
    assert [row["subject"] for row in json.loads(done.out)["rows"]] == ["tmux", "bubblewrap"]


@pytest.mark.req("JT-36")
def test_stopping_the_engine_reports_what_remains(desk: Desk) -> None:
    desk.engine.held = [hold_row()]
    done = desk("engine", "stop", "--jobs", "--yes")
    assert "stay" in done.err
    assert "--holds" in done.err
    assert desk("engine", "stop", "--jobs", "--holds", "--yes").err == ""
    assert desk.engine.asked == [("stop", True, False), ("stop", True, True)]
    assert "each has its grace period" in desk("engine", "stop", "--jobs", "--holds", "--yes", terminal=True).err


@pytest.mark.req("JT-36")
@pytest.mark.parametrize(
    ("options", "held", "question"),
    [
        (("--jobs",), 0, "End every running job and stop the engine?"),
        (
            ("--jobs",),
            1,
            "End every running job and stop the engine? 1 held container will stay; --holds ends them too.",
        ),
        (("--holds",), 2, "End 2 held containers and stop the engine?"),
        (("--jobs", "--holds"), 1, "End every running job and 1 held container and stop the engine?"),
    ],
)
def test_the_question_before_the_engine_stops_names_what_ends(
    desk: Desk, options: tuple[str, ...], held: int, question: str
) -> None:
    desk.engine.held = [hold_row(4715 + number) for number in range(held)]
    done = desk("engine", "stop", *options, terminal=True, stdin=b"n\n")
    assert done.code == ExitCode.DECLINED
    assert done.err.partition(" [")[0] == question
    assert desk.engine.asked == []


@pytest.mark.req("JT-36")
def test_held_containers_that_stay_are_named_with_their_ends(desk: Desk) -> None:
    desk.engine.held = [hold_row(4715)]
    assert desk("engine", "stop").err.startswith("1 held container stays until its window ends: 4715 (")
    desk.engine.held = [hold_row(4715), hold_row(4716)]
    several = desk("engine", "stop").err
    assert several.startswith("2 held containers stay until their windows end: 4715 (")
    assert "`cockpit holds end 4715 4716` ends them now" in several


@pytest.mark.req("JT-36")
def test_trouble_of_an_engine_is_printed_after_a_restart(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    ill = replace(desk.engine.status(), trouble=("The disk is full.",))
    monkeypatch.setattr(desk.engine, "restart", lambda: ill)
    done = desk("engine", "restart")
    assert (done.lines, done.err) == (["the engine runs as process 77"], "The disk is full.\n")


@pytest.mark.req("UI-40")
def test_a_reader_that_goes_away_ends_the_command_with_its_own_code(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_: Streams) -> None:
        raise BrokenPipeError

    abandoned: list[Streams] = []
    monkeypatch.setattr(Streams, "flush", closed)
    monkeypatch.setattr(Streams, "abandon_output", lambda streams: abandoned.append(streams))  # noqa: PLW0108 - a method
    done = desk("jobs")
    assert (done.code, done.err, len(abandoned)) == (ExitCode.BROKEN_PIPE, "", 1)


@pytest.mark.req("UI-40")
@pytest.mark.parametrize(("words", "required"), [((), False), (("--show-commands",), True)])
def test_commands_are_only_shown_where_that_is_asked_for(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], required: bool
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(desk.backend, "announce", lambda _, *, required: asked.append(required))
    desk.backend.capabilities = Capabilities()
    desk("hold", "4720", *words)
    assert asked == [required]


@pytest.mark.req("JT-41")
def test_a_tensorboard_is_started_and_stopped(desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", stand_in(tmp_path / "bin"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    shown = desk.backend.details[4715]
    spec = replace(shown.job.spec, output=str(tmp_path))
    desk.backend.details[4715] = replace(shown, job=replace(shown.job, spec=spec))
    assert desk("tensorboard", "4715", "--stop").err == "no TensorBoard of it runs\n"
    try:
        started = desk("tensorboard", "4715", terminal=True)
        assert started.lines[0].startswith("http://127.0.0.1:")
        assert "`cockpit tensorboard 4715 --stop` ends it" in started.err
    finally:
        stopped = desk("tensorboard", "4715", "--stop")
    assert (stopped.out, stopped.err) == (b"", "TensorBoard is stopped\n")


@pytest.mark.req("UI-41")
@pytest.mark.parametrize("words", [("job", "4715"), ("explain", "4720"), ("catalogue", "show", "model", "bert")])
def test_a_single_answer_is_neither_filtered_nor_sorted(desk: Desk, words: tuple[str, ...]) -> None:
    for option in ("--filter", "--sort"):
        assert desk(*words, option, "id").code == ExitCode.USAGE


@pytest.mark.req("TR-04")
def test_jobs_behind_one_without_an_answer_are_named_and_not_tried(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(*_: object, **__: object) -> None:
        raise Unreachable("The engine does not answer.")

    monkeypatch.setattr(desk.backend, "cancel", lost)
    several = desk("cancel", "--yes", "4711", "4720", "4715")
    assert several.code == ExitCode.UNREACHABLE
    assert several.err.startswith("Not tried, since 4711 was not answered: 4720, 4715\n")
    assert "Not tried" not in desk("cancel", "--yes", "4711").err


@pytest.mark.req("UI-40")
def test_a_snapshot_goes_to_a_file_that_only_its_owner_may_read_or_to_stdout(desk: Desk, tmp_path: Path) -> None:
    desk.backend.glance = overview()
    file = tmp_path / "now.json"
    assert desk("snapshot", str(file)).lines == [f"wrote {file}; open it with `cockpit -c snapshot:{file}`"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert desk("snapshot", "-").out == file.read_bytes()
    assert desk("snapshot", str(tmp_path)).err == f"{tmp_path}: cannot be written: Is a directory\n"


@pytest.mark.req("JT-36")
def test_installing_the_unit_says_how_to_start_it(desk: Desk) -> None:
    done = desk("engine", "unit", "--install", terminal=True)
    assert done.lines == ["/u/cockpit-cluster-engine.service"]
    assert done.err.endswith("systemctl daemon-reload && systemctl enable --now cockpit-cluster-engine\n")
    assert desk("engine", "unit").lines == ["[Unit]"]


@pytest.mark.req("JT-43", "UI-41")
@pytest.mark.parametrize("cards", ["1.5", "-1", "many", "nan", "inf"])
def test_an_impossible_number_of_cards_is_refused(desk: Desk, cards: str) -> None:
    done = desk("nodes", f"--cards={cards}")
    assert done.code == ExitCode.USAGE
    assert f"--cards: {cards} is not a number of cards such as 4, or a part of one such as 0.5" in done.err


@pytest.mark.req("UI-41")
def test_a_command_on_a_demo_ends_with_the_commands_exit_code(desk: Desk) -> None:
    assert desk("demo", "--headless", "jobs").code == ExitCode.OK
    assert desk("demo", "--headless", "job", "999999").code == ExitCode.NOT_FOUND


@pytest.mark.req("UI-42")
def test_a_wait_that_takes_too_long_says_which_job_has_not_ended(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float | None] = []

    async def wait(_: JobId, *, timeout_seconds: float | None) -> None:
        limits.append(timeout_seconds)

    monkeypatch.setattr(desk.backend, "wait", wait)
    done = desk("wait", "4711", "--timeout", "90", terminal=True)
    assert (done.code, done.err) == (ExitCode.TIMED_OUT, "4711 has not ended yet\n")
    assert desk("wait", "4711").code == ExitCode.TIMED_OUT
    assert limits == [90.0, None]


@pytest.mark.req("JT-36")
@pytest.mark.parametrize("options", [("--jobs",), ("--holds",), ("--jobs", "--holds")])
def test_containers_of_an_engine_that_is_stopped_are_taken_over_before_they_end(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    taken: list[str] = []
    monkeypatch.setattr(desk.engine, "take_over", lambda: taken.append("over"))
    desk("engine", "stop", *options, "--yes")
    assert taken == ["over"]
    desk("engine", "stop")
    assert taken == ["over"]
