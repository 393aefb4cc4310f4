"""`session` and `train`: what is asked for, and what is told while it waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.backends.base import JobsDelta, ShellSession
from cockpit.errors import RequestRefused
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.verbs import session, shell
from cockpit.model.asking import ShellRequest
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import JobKind, JobSpec
from tests.doubles.samples import detail, failed_row, job_row, queued_row
from tests.headless.conftest import Desk

SESSION = JobId(100)


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.read_jobs = lambda source, text, folder: read_jobs(source, text, folder, defaults=Defaults())
    return desk


def submitted(desk: Desk) -> JobSpec:
    (spec,) = [each[1] for each in desk.backend.asked if each[0] == "submit"]
    assert isinstance(spec, JobSpec)
    return spec


@pytest.mark.req("JT-03")
def test_a_session_needs_only_resources_and_a_time_limit(desk: Desk) -> None:
    words = ("--cpus", "8", "--memory", "32G", "--cards", "1", "--time-limit", "4h")
    done = desk("session", "--detach", *words)
    assert (done.code, done.out) == (ExitCode.OK, b"submitted session as 100\n")
    spec = submitted(desk)
    assert (spec.kind, spec.command, spec.output) == (JobKind.INTERACTIVE, "", str(Path.cwd()))
    assert (spec.specs[0].cpus, spec.specs[0].memory_mib, spec.specs[0].card_milli) == (8, 32 * 1024, 1000)
    assert spec.time_limit_seconds == 4 * 3600


@pytest.mark.req("JT-39")
def test_a_session_copies_a_job_except_the_fields_of_a_file_and_the_options(desk: Desk, tmp_path: Path) -> None:
    like = desk.backend.details[4715].job.spec
    (tmp_path / "less.yaml").write_text("command: jupyter lab\nenv: {A: 1}\n")
    assert desk("session", str(tmp_path / "less.yaml"), "--from", "4715", "--cpus", "3", "--detach").code == ExitCode.OK
    spec = submitted(desk)
    assert (spec.name, spec.command, spec.env) == (f"{like.name}-dev", "jupyter lab", {"A": "1"})
    assert (spec.output, spec.algorithm) == (like.output, like.algorithm)
    assert spec.specs[0] == replace(like.specs[0], cpus=3)


@pytest.mark.req("JT-03")
def test_a_file_of_another_kind_is_no_session(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "batch.yaml").write_text("kind: batch\n")
    done = desk("session", str(tmp_path / "batch.yaml"))
    assert done.code == ExitCode.INVALID
    assert "kind: is batch; a session is interactive: remove it, or submit the file" in done.err
    assert not desk.backend.asked


@pytest.mark.req("JT-39")
def test_the_reason_of_a_waiting_session_is_printed_once_until_it_changes(desk: Desk) -> None:
    waits = queued_row(SESSION)
    ended = failed_row(SESSION, state=JobState.STOPPED, held_until=None)
    rows = [waits, replace(waits, version=9), job_row(7), ended]
    desk.backend.deltas = [JobsDelta((row,), (), 1) for row in rows]
    desk.backend.details[SESSION] = replace(detail(), row=ended)
    done = desk("session")
    assert done.err.count("100 is queued: ") == 1
    assert "ended before its shell could be opened" in done.err
    assert done.code == detail().job.exit.shell_code
    assert not [each for each in desk.backend.asked if each[0] == "open_shell"]


@pytest.mark.req("JT-39")
def test_a_session_ends_if_its_shell_does_not_open(desk: Desk) -> None:
    async def refuse(_: object) -> ShellSession:
        raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, "The container did not answer."))

    desk.backend.deltas = [JobsDelta((job_row(SESSION),), (), 1)]
    desk.backend.open_shell = refuse  # type: ignore[method-assign]  # everything else works
    done = desk("session")
    assert "The container did not answer." in done.err
    assert desk.backend.asked[-1] == ("cancel", 100, None)


@pytest.mark.req("JT-39")
def test_a_training_has_the_fields_of_its_session_and_its_arguments_unchanged(desk: Desk) -> None:
    kept = desk.backend.details[4715]
    session = replace(kept.job.spec, name="bert-dev", kind=JobKind.INTERACTIVE, command="")
    desk.backend.details[12] = replace(kept, job=replace(kept.job, spec=session))
    assert desk("train", "12", "--", "python3", "t.py", "--note", "a b $HOME").out == b"submitted bert as 100\n"
    spec = submitted(desk)
    assert (spec.kind, spec.command) == (JobKind.REGULAR, "python3 t.py --note 'a b $HOME'")
    assert replace(spec, name=session.name, kind=session.kind, command="") == session
    assert desk("train", "12").code == ExitCode.USAGE


@pytest.mark.req("JT-39")
def test_a_notebook_prints_its_address_once_it_has_one(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "notebook.yaml").write_text("command: jupyter lab\n")
    runs = job_row(SESSION, state=JobState.RUNNING, kind=JobKind.INTERACTIVE)
    desk.backend.deltas = [JobsDelta((runs,), (), 1)]
    desk.backend.details[SESSION] = replace(detail(), row=runs, address="http://n1:8888/?token=x")
    done = desk("session", str(tmp_path / "notebook.yaml"))
    assert done.code == ExitCode.OK, done.err
    assert "http://n1:8888/?token=x" in done.out.decode()


@pytest.mark.req("JT-39")
def test_a_notebook_is_given_time_to_print_its_address(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notebook.yaml").write_text("command: jupyter lab\n")
    runs = job_row(SESSION, state=JobState.RUNNING, kind=JobKind.INTERACTIVE)
    desk.backend.deltas = [JobsDelta((runs,), (), 1)]
    desk.backend.details[SESSION] = replace(detail(), row=runs, address="")
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        if len(paused) == 2:
            desk.backend.details[SESSION] = replace(detail(), row=runs, address="http://n1:8888/?token=x")

    monkeypatch.setattr(session, "sleep", pause)
    done = desk("session", str(tmp_path / "notebook.yaml"))
    assert "http://n1:8888/?token=x" in done.out.decode()
    assert len(paused) == 2


@pytest.mark.req("JT-03")
def test_a_name_that_the_user_chose_is_not_changed(desk: Desk, tmp_path: Path) -> None:
    desk.backend.job_rows = [replace(desk.backend.job_rows[0], name=name) for name in ("session", "mine")]
    (tmp_path / "named.yaml").write_text("name: mine\n")
    names = []
    for words in (
        (),
        ("--name", "mine"),
        (str(tmp_path / "named.yaml"),),
        (str(tmp_path / "named.yaml"), "--name", "session"),
    ):
        desk("session", "--detach", *words)
        names.append(submitted(desk).name)
        desk.backend.asked.clear()
    assert names == ["session-2", "mine", "mine", "session"]


@pytest.mark.req("JT-03")
def test_amounts_are_for_a_session_of_one_spec(desk: Desk, tmp_path: Path) -> None:
    for count, code in ((1, ExitCode.OK), (2, ExitCode.USAGE)):
        (tmp_path / "specs.yaml").write_text(f"specs: [{', '.join(['{cpus: 1}'] * count)}]\n")
        assert desk("session", str(tmp_path / "specs.yaml"), "--detach", "--cpus", "3").code == code


@pytest.mark.req("JT-03")
def test_a_person_reads_how_long_a_session_lasts_and_when_it_has_ended(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def opened(_: object) -> ShellSession:
        raise KeyboardInterrupt

    desk.backend.deltas = [JobsDelta((job_row(SESSION),), (), 1)]
    desk.backend.open_shell = opened  # type: ignore[method-assign]  # everything else works
    monkeypatch.setattr(shell, "requested", lambda _, job, rank: ShellRequest(job=job, rank=rank))  # no size is known
    said = desk("session", terminal=True, stdin=b"").err
    assert "Session 100 lasts at most " in said
    assert "Leaving this shell (exit, Ctrl-D) ends it; --keep would keep it." in said
    assert said.endswith("session 100 is ended\n")
    kept = desk("session", "--keep", terminal=True).err
    assert "`cockpit shell 100` enters it again" in kept
    assert "is ended" not in kept


@pytest.mark.req("JT-03")
@pytest.mark.parametrize(("kind", "is_reported"), [(RefusalKind.CONFLICT, False), (RefusalKind.DENIED, True)])
def test_a_session_that_has_ended_by_itself_is_no_error(desk: Desk, kind: RefusalKind, is_reported: bool) -> None:
    async def opened(_: object) -> ShellSession:
        raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, "The container did not answer."))

    async def cancel(*_: object, **__: object) -> None:
        raise RequestRefused(Refusal(kind, "It cannot be cancelled."))

    desk.backend.deltas = [JobsDelta((job_row(SESSION),), (), 1)]
    desk.backend.open_shell = opened  # type: ignore[method-assign]  # everything else works
    desk.backend.cancel = cancel  # type: ignore[method-assign]  # it is too late
    done = desk("session")
    assert ("It cannot be cancelled." in done.err) == is_reported
