from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.headless.editor import clone_spec, with_errors, without_errors
from cockpit.headless.exitcodes import ExitCode
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import JobSpec, Mode
from tests.doubles.samples import job
from tests.headless.conftest import Desk

SPEC = job().spec


@pytest.fixture
def desk(desk: Desk) -> Desk:
    desk.read_jobs = lambda source, text, folder: read_jobs(source, text, folder, defaults=Defaults())
    return desk


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A person whose editor runs this sed script."""

    def edits(script: str) -> None:
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", f"sed -i '{script}'")

    return edits


def asked(desk: Desk, what: str) -> list[tuple[object, ...]]:
    return [each for each in desk.backend.asked if each[0] == what]


@pytest.mark.req("UI-41")
def test_edit_changes_just_the_fields_of_the_file(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "change.yaml").write_text("time_limit: 2h\noutput: here\n")
    done = desk("edit", "4715", str(tmp_path / "change.yaml"))
    assert (done.code, done.out) == (ExitCode.OK, b"edited 4715\n")
    wanted = msgspec.structs.replace(SPEC, time_limit_seconds=7200, output=str(tmp_path / "here"))
    assert asked(desk, "edit") == [("edit", 4715, wanted)]


@pytest.mark.req("UI-41")
def test_edit_opens_the_whole_file_in_the_editor(desk: Desk, editor) -> None:
    editor("s/^command: .*/command: ls/")
    assert desk("edit", "4715").code == ExitCode.OK
    assert asked(desk, "edit") == [("edit", 4715, msgspec.structs.replace(SPEC, command="ls"))]


def test_an_edit_without_a_change_sends_no_request(desk: Desk, editor) -> None:
    editor("")
    done = desk("edit", "4715")
    assert (done.code, done.err) == (ExitCode.DECLINED, "nothing was changed, nothing was done\n")
    assert asked(desk, "edit") == []


def test_errors_of_the_edited_file_are_reported_to_a_script(desk: Desk, editor) -> None:
    editor("s/^command/comand/")
    done = desk("edit", "4715")
    assert done.code == ExitCode.INVALID
    assert "comand: is no field here; did you mean command?" in done.err


def test_without_a_terminal_and_an_editor_the_required_options_are_named(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(variable, raising=False)
    done = desk("edit", "4715")
    assert done.code == ExitCode.USAGE
    assert "give a FILE with the fields that differ" in done.err


@pytest.mark.req("UI-41")
def test_clone_submits_a_copy_under_the_next_free_name(desk: Desk) -> None:
    done = desk("clone", "4715")
    assert (done.code, done.out) == (ExitCode.OK, b"submitted bert-eval-2 as 100\n")
    assert asked(desk, "submit") == [("submit", msgspec.structs.replace(SPEC, name="bert-eval-2"))]


def test_clone_takes_a_name_and_fields_from_a_pipe(desk: Desk) -> None:
    done = desk("clone", "4715", "--name", "again", "-", stdin=b"nodes: 4\nmode: pytorch\n")
    assert done.out == b"submitted again as 100\n"
    assert asked(desk, "submit") == [
        ("submit", msgspec.structs.replace(SPEC, name="again", nodes=4, mode=Mode.PYTORCH))
    ]


@pytest.mark.parametrize("text", [b"", b"- 1\n", b"name: a\n---\nname: b\n", b"time_limit: [\n"])
def test_a_pipe_with_anything_but_one_jobs_fields_is_refused(desk: Desk, text: bytes) -> None:
    done = desk("clone", "4715", "-", stdin=text)
    assert done.code == ExitCode.INVALID
    assert done.err.startswith("stdin")
    assert asked(desk, "submit") == []


@pytest.mark.req("UI-41")
def test_delete_asks_for_confirmation_only_on_a_terminal(desk: Desk) -> None:
    assert desk("delete", "4715", "4716").out == b"deleted 4715\ndeleted 4716\n"
    desk.backend.asked.clear()
    asking = desk("delete", "4715", stdin=b"\n", terminal=True)
    assert (asking.code, asking.err) == (ExitCode.DECLINED, "Delete 4715? [y/N] ")
    assert asked(desk, "delete") == []
    assert desk("delete", "4715", "--yes", terminal=True).code == ExitCode.OK
    assert asked(desk, "delete") == [("delete", 4715)]


def test_a_refused_deletion_prints_the_reason(desk: Desk) -> None:
    desk.backend.refusal = Refusal(RefusalKind.CONFLICT, "Job 4711 is running; cancel it first.")
    done = desk("delete", "4711")
    assert (done.code, done.err) == (ExitCode.CONFLICT, "Job 4711 is running; cancel it first.\n")


@pytest.mark.parametrize(
    ("name", "taken", "new"),
    [
        ("bert", (), "bert-2"),
        ("bert-2", ("bert", "bert-2"), "bert-3"),
        ("bert", ("bert-2", "bert-3"), "bert-4"),
        ("v-x", (), "v-x-2"),
        ("a" * 63, (), "a" * 61 + "-2"),
    ],
)
def test_names_of_copies(name: str, taken: tuple[str, ...], new: str) -> None:
    assert clone_spec(JobSpec(name=name, command="true", output="/o", hold=True), taken) == JobSpec(
        name=new, command="true", output="/o"
    )


def test_errors_are_written_above_the_text_once() -> None:
    marked = with_errors(with_errors("name: a\n", "first"), "second\nthird")
    assert marked == "#! second\n#! third\nname: a\n"
    assert without_errors(marked) == "name: a\n"


@pytest.mark.parametrize("command", ["false", "sh -c 'echo nothing > $0; exit 3'"])
def test_an_editor_that_ends_with_an_error_means_no_change(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", command)
    done = desk("edit", "4715")
    assert (done.code, done.err) == (ExitCode.DECLINED, "nothing was changed, nothing was done\n")
    assert asked(desk, "edit") == []


@pytest.mark.req("UI-41")
def test_a_copy_may_be_changed_in_the_editor_before_it_is_submitted(desk: Desk, editor) -> None:
    editor("s/^command: .*/command: ls/")
    done = desk("clone", "4715", "--edit")
    assert done.code == ExitCode.OK
    ((_, spec),) = asked(desk, "submit")
    assert spec.command == "ls"
    assert done.lines == [f"submitted {spec.name} as 100"]
