from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cockpit.backends.drive import drive
from cockpit.errors import CockpitError, ProtocolMismatch, RuntimeMissing, SpecErrors, StoreError, Unreachable
from cockpit.headless.arguments import load, parse, usage, verb_parser
from cockpit.headless.exitcodes import ExitCode, exit_code_of
from cockpit.headless.registry import ACTING, VERBS
from cockpit.headless.verbs.demo import commands, speed
from tests.headless.conftest import Desk

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "headless.md").read_text()


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.req("UI-41")
def test_help_of_every_verb_has_examples_that_parse(desk: Desk, name: str) -> None:
    done = desk(*name.split(), "--help")
    assert done.code == 0
    assert "examples:\n" in done.out.decode()
    examples = load(name).examples
    assert examples
    for example in examples:
        command = re.split(r" (?:\||&&|>) ", example)
        words = next(shlex.split(part) for part in command if part.startswith("cockpit"))
        assert parse(words[1:])[0] in {load(name), load("overview")} or words[1:3] == ["-c", name]


@pytest.mark.parametrize("name", VERBS)
def test_every_option_of_every_verb_is_explained(name: str) -> None:
    for action in verb_parser(name, load(name))._actions:
        assert action.help, action.dest


def test_help_lists_every_verb_and_the_document_too(desk: Desk) -> None:
    assert desk("--help").out.decode() == usage() + "\n"
    for name in VERBS:
        assert f"\n  {name} " in usage()
        assert f"`{name}`" in DOCUMENT


@pytest.mark.req("UI-40")
def test_the_document_lists_every_exit_code_and_they_are_distinct() -> None:
    listed = dict(re.findall(r"^\| (\d+) \| `(\w+)` \|", DOCUMENT, re.MULTILINE))
    assert listed == {str(int(code)): code.name for code in ExitCode}
    assert len(ExitCode.__members__) == len(ExitCode)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (SpecErrors(["x"]), ExitCode.INVALID),
        (Unreachable("x"), ExitCode.UNREACHABLE),
        (ProtocolMismatch("x"), ExitCode.PROTOCOL),
        (StoreError("x"), ExitCode.STORE),
        (RuntimeMissing("x"), ExitCode.MISSING),
    ],
)
def test_each_error_has_its_exit_code(error: CockpitError, code: ExitCode) -> None:
    assert exit_code_of(error) is code


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (Unreachable("The cluster is silent."), "The cluster is silent.\nUse -c local.\n"),
        (ProtocolMismatch("The engine is newer."), "The engine is newer.\n"),
    ],
)
@pytest.mark.req("UI-40")
def test_only_a_cluster_that_does_not_answer_is_followed_by_advice_on_clusters(
    desk: Desk, error: CockpitError, says: str
) -> None:
    async def jobs(**_: object) -> None:
        raise error

    desk.advice = "Use -c local."
    desk.backend.jobs = jobs
    done = desk("jobs")
    assert done.code == exit_code_of(error)
    assert done.err.endswith(says)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["jbos"], "did you mean jobs?"),
        (["-o", "json", "jobs"], "write it after the verb"),
        (["zzz"], "there is no verb zzz"),
        (["jobs", "--outptu", "json"], "unrecognized arguments"),
        (["jobs", "--out", "json"], "unrecognized arguments"),
        (["jobs", "-o", "xml"], "invalid choice"),
        (["job"], "ID"),
        (["job", "../x"], "../x is no job: write its id, such as 4711, or its name"),
        (["holds", "extend", "1", "--by", "soon"], "no time"),
        (["wait", "1", "--timeout", "nan"], "is not a number of seconds"),
        (["-c"], "wants the name of a cluster"),
        (["-c", "a", "job", "b:1"], "one command speaks to one cluster"),
    ],
)
@pytest.mark.req("UI-41")
def test_an_invalid_command_line_is_reported_without_a_connection(desk: Desk, argv: list[str], says: str) -> None:
    done = desk(*argv)
    assert (done.code, done.out) == (ExitCode.USAGE, b"")
    assert says in done.err
    assert desk.connected == []


@pytest.mark.parametrize(
    ("argv", "cluster"),
    [
        (["jobs"], None),
        (["-c", "lab", "jobs"], "lab"),
        (["--cluster=lab", "jobs"], "lab"),
        (["jobs", "-c", "lab"], "lab"),
        (["job", "lab:4715"], "lab"),
        (["hold", "lab:1", "lab:2"], "lab"),
    ],
)
def test_the_cluster_is_chosen_by_option_or_by_the_job(desk: Desk, argv: list[str], cluster: str | None) -> None:
    assert desk(*argv).code == 0
    assert desk.connected == [cluster]
    assert desk.backend.closed


def test_version(desk: Desk) -> None:
    assert desk("--version").out.startswith(b"cockpit 0.")


def test_arguments_after_two_dashes_are_the_command() -> None:
    _, args = parse(["shell", "4715", "--replica", "1", "--", "ls", "--help", "--", "-x"])
    assert (args.replica, args.command_words) == (1, ("ls", "--help", "--", "-x"))


def test_a_defect_is_reported_in_one_sentence_and_never_a_traceback(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COCKPIT_TRACEBACK", raising=False)
    desk.backend.job_rows, desk.expects_defect = [object()], True
    done = desk("jobs")
    assert (done.code, done.out) == (ExitCode.INTERNAL, b"")
    assert done.err.startswith("cockpit has a defect here: AttributeError")


def test_ctrl_c_is_quiet(desk: Desk) -> None:
    def interrupted(_source: str, _text: str, _folder: str) -> list[object]:
        raise KeyboardInterrupt

    desk.read_jobs = interrupted
    assert desk("submit", "-") == (130, b"", "")


def test_a_coroutine_that_suspends_is_refused() -> None:
    class Suspends:
        def __await__(self):
            yield

    async def waits() -> None:
        await Suspends()

    with pytest.raises(RuntimeError, match="needs an event loop"):
        drive(waits())


HEAVY = ("asyncio", "textual", "rich", "yaml", "asyncssh", "kubernetes", "sqlite3", "aiosqlite", "_hashlib", "numpy")


def loaded_by(program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        text=True,
    )
    return set(done.stdout.split())


@pytest.mark.req("PF-10")
@pytest.mark.parametrize("argv", [["jobs", "-o", "json"], ["jobs"], ["nodes"], ["wait", "4715"]], ids=" ".join)
def test_a_one_shot_command_loads_nothing_heavy(argv: list[str]) -> None:
    program = (
        "import sys\n"
        "from io import BytesIO\n"
        "from tests.doubles.samples import NOW, job, small_cluster\n"
        "from cockpit.headless.main import run\n"
        "from cockpit.headless.services import Services\n"
        "from cockpit.headless.streams import Streams\n"
        "backend = small_cluster()\n"
        "backend.ended[4715] = job()\n"
        "streams = Streams(stdin=BytesIO(), stdout=BytesIO(), stderr=BytesIO(), now=lambda: NOW)\n"
        f"run({argv!r}, Services(lambda _: backend, *[None] * 6), streams)\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
    )
    loaded = loaded_by(program)
    assert "cockpit" in loaded
    assert loaded.isdisjoint(HEAVY), loaded & set(HEAVY)


PATHS = {"pathlib", "socket", "textwrap", "platform", "locale"}
MODELS = {"cockpit.model.view", "cockpit.model.events", "cockpit.model.cluster", "cockpit.protocol.messages"}
LISTS = {"cockpit.present.filters", "cockpit.present.sorting", "cockpit.headless.watch"}
ENTERING = {
    "cockpit.headless.output",
    "cockpit.present.columns",
    "cockpit.model.jobrow",
    "cockpit.headless.terminal",
    "cockpit.present.reasons",
}


@pytest.mark.req("PF-10", "PF-30")
@pytest.mark.parametrize(
    ("modules", "not_needed"),
    [
        ("cockpit.headless.verbs.jobs, cockpit.headless.records", MODELS | LISTS),
        ("cockpit.headless.verbs.shell, cockpit.headless.pipes, cockpit.backends.shell", MODELS | LISTS | ENTERING),
    ],
)
def test_a_command_does_not_load_modules_it_does_not_need(modules: str, not_needed: set[str]) -> None:
    program = (
        "from cockpit.cli import _import_msgspec; _import_msgspec()\n"
        "import sys\n"
        "import cockpit.headless.main, cockpit.config.places\n"
        "import cockpit.backends.local.backend, cockpit.backends.local.start\n"
        f"import {modules}\n"
        "print(*sys.modules)\n"
    )
    loaded = loaded_by(program)
    assert loaded.isdisjoint(PATHS | not_needed), loaded & (PATHS | not_needed)


@pytest.mark.req("TR-01")
@pytest.mark.parametrize("name", VERBS)
def test_every_verb_that_changes_a_cluster_takes_a_request_id(name: str) -> None:
    options = {option for action in verb_parser(name, load(name))._actions for option in action.option_strings}
    assert ("--request-id" in options) == (name in ACTING)


@pytest.mark.req("TR-01")
def test_a_cluster_without_request_ids_refuses_one_and_does_nothing(desk: Desk) -> None:
    done = desk("hold", "4720", "--request-id", "mine")
    assert done.code == ExitCode.INVALID
    assert "remembers no request ids" in done.err
    assert desk.backend.asked == []


@pytest.mark.req("SL-21")
@pytest.mark.parametrize("words", [("hold", "4720"), ("cancel", "4711"), ("nodes", "drain", "n1", "--reason", "disk")])
def test_showing_commands_is_refused_where_the_cluster_runs_none(desk: Desk, words: tuple[str, ...]) -> None:
    done = desk(*words, "--show-commands")
    assert done.code == ExitCode.INVALID
    assert "runs no commands" in done.err
    assert desk.backend.asked == []


@pytest.mark.req("SL-21")
def test_a_list_is_read_as_usual_where_no_commands_can_be_shown(desk: Desk) -> None:
    assert desk("jobs", "--show-commands").code == ExitCode.OK


def test_a_demo_runs_the_given_command_or_the_two_that_show_the_most() -> None:
    assert commands(None, ()) == [["overview"], ["jobs"]]
    assert commands(["nodes", "--all"], ()) == [["nodes", "--all"]]
    assert commands(["launch", "job.yaml"], ("a", "-b")) == [["launch", "job.yaml", "--", "a", "-b"]]


@pytest.mark.parametrize(("text", "factor"), [("0.5", 0.5), ("60x", 60.0), ("2×", 2.0), ("100000", 100_000.0)])
def test_a_demo_runs_so_many_times_faster(text: str, factor: float) -> None:
    assert speed(text) == factor


@pytest.mark.parametrize("text", ["0", "-1", "100001", "fast", "nan"])
def test_a_demo_at_an_impossible_speed_is_refused(desk: Desk, text: str) -> None:
    done = desk("demo", f"--speed={text}")
    assert done.code == ExitCode.USAGE
    assert "not a number of times between 0 and 100000" in done.err


def test_the_help_of_submit_names_the_options_of_sbatch(desk: Desk) -> None:
    assert (
        "A batch script and --wrap also take options of sbatch, before the script"
        in desk("submit", "--help").out.decode()
    )


def test_the_help_of_the_catalogue_lists_the_settings_of_each_kind_of_entry(desk: Desk) -> None:
    lines = desk("catalogue", "add", "--help").lines
    assert "  dataset   source, path, versions" in lines
    assert "  image     image, scopes, card_types, mpi" in lines
