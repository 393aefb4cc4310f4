"""Secrets in every text of a cluster, a job and a file: no command shows them, and `--reveal` shows one's own."""

from __future__ import annotations

import json
from itertools import cycle, islice
from pathlib import Path

import pytest

from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.mcp.calls import ToolCalls
from cockpit.headless.mcp.tools import ACTING_TOOLS, READING, input_schema
from cockpit.headless.registry import VERBS
from cockpit.model.cluster import Reservation
from cockpit.model.ids import NodeName, UserName
from cockpit.runtime.findings import Finding, FindingLevel
from cockpit.serve.running import _log
from tests.doubles.hostile_cluster import with_attacks
from tests.doubles.samples import NOW
from tests.headless.conftest import Desk
from tests.headless.test_hostile_verbs import ELSEWHERE, FILE, WORDS
from tests.secrets_planted import PLANTED, TEXTS, SecretsBackend

# The first needs a terminal of its own; files that are used again keep their secrets in a pipe.
TERMINALS = {"shell": (False,), "convert": (True,), "catalogue export": (True,)}
pytestmark = pytest.mark.req("TR-10")


@pytest.fixture
def desk() -> Desk:
    desk = Desk()
    desk.backend = desk.reached = backend = SecretsBackend()
    kept = Reservation(name="r", nodes=(NodeName("n"),), start_at=NOW, end_at=NOW, users=("u",), accounts=("a",))
    backend.reserved = [with_attacks(kept, islice(cycle(TEXTS), start, None)) for start in range(len(TEXTS))]
    desk.findings = [Finding(FindingLevel.NOTE, text, text, text) for text in TEXTS]
    return desk


@pytest.mark.parametrize("verb", sorted(VERBS.keys() - ELSEWHERE))
def test_no_command_shows_a_secret_in_any_form(desk: Desk, tmp_path: Path, verb: str) -> None:
    assert verb in WORDS, "say there how it is called"
    file = tmp_path / FILE
    file.write_text("name")
    words = [str(file) if word is FILE else word for word in WORDS[verb]]
    forms: list[tuple[str, ...]] = [()]
    if "-o" in desk(*verb.split(), "--help").out.decode():
        forms = [("-o", form) for form in ("table", "wide", "json", "jsonl", "csv")]
    for form in forms:
        for terminal in TERMINALS.get(verb, (True, False)):
            done = desk(*verb.split(), *form, *words, terminal=terminal, columns=100)
            shown = done.out.decode() + done.err
            assert PLANTED not in shown.lower(), next(line for line in shown.splitlines() if PLANTED in line.lower())
            if form == ("-o", "json") and done.code is ExitCode.OK:
                json.loads(done.out)


def test_a_log_is_masked_in_a_pipe_too_unless_its_owner_wants_to_see_it(desk: Desk) -> None:
    masked = desk("logs", "4").out.decode()
    assert PLANTED not in masked.lower()
    assert "HF_TOKEN=***" in masked
    assert "printed *** alone" in masked
    refused = desk("logs", "4", "--reveal")
    assert refused.code == ExitCode.USAGE
    assert "secrets of your own jobs" in refused.err
    own_the_jobs(desk)
    assert desk("logs", "4", "--reveal").out == desk.backend.log


def test_the_page_of_ones_own_job_is_revealed(desk: Desk) -> None:
    own_the_jobs(desk)
    assert PLANTED not in desk("job", "4").out.decode().lower()
    assert PLANTED in desk("job", "4", "--reveal").out.decode().lower()
    assert PLANTED not in desk("job", "4").out.decode().lower(), "revealed once, and for one command only"


def own_the_jobs(desk: Desk) -> None:
    desk.backend.user = "me"
    fetch = desk.backend.job

    async def own(job, *, task=None):
        detail = await fetch(job, task=task)
        from msgspec.structs import replace

        return replace(detail, job=replace(detail.job, submitter=replace(detail.job.submitter, name=UserName("me"))))

    desk.backend.job = own


GIVEN = {"job": "4", "jobs": ["4"], "node": "n1", "name": "n", "command": ["true"]}
"""Arguments of tools that have them."""


@pytest.mark.parametrize("verb", sorted(READING | ACTING_TOOLS))
def test_no_tool_of_a_language_model_returns_a_secret(desk: Desk, verb: str) -> None:
    calls = ToolCalls(desk.services(), lambda: desk.clock[0], None, acts=True)
    schema = input_schema(verb)["properties"]
    needed = {name: value for name, value in GIVEN.items() if name in schema}
    answer = calls(verb, needed)
    assert PLANTED not in json.dumps(answer).lower()
    if verb in {"job", "logs", "jobs"}:
        assert "***" in json.dumps(answer), "this test sees nothing that is masked"
    assert "reveal" not in schema


def test_metrics_have_no_secret(desk: Desk) -> None:
    shown = desk("metrics").out.decode()
    assert "cockpit" in shown
    assert PLANTED not in shown.lower()


def test_the_log_of_the_server_has_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    for text in TEXTS:
        _log(f"{text} cannot log in: {text}")
    logged = capsys.readouterr().err
    assert logged.count("\n") == len(TEXTS)
    assert "***" in logged
    assert PLANTED not in logged.lower()
