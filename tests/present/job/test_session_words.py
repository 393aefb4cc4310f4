"""What is said of sessions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from cockpit.model.spec import JobKind
from cockpit.present.columns import Context
from cockpit.present.job.sessions import address_words, command_words, lasting_words, leaving_words, waiting_words
from tests.builders import a_spec
from tests.doubles.samples import NOW, detail, job_row

JOB = JobId(12)


@pytest.mark.req("JT-03")
def test_a_detached_session_names_the_commands_to_open_and_end_it() -> None:
    kept = leaving_words(JOB, keeps=True)
    assert "`cockpit shell 12` enters it again" in kept
    assert "`cockpit cancel 12` ends it" in kept
    assert "--keep" in leaving_words(JOB, keeps=False)
    assert "ends it" in leaving_words(JOB, keeps=False)


@pytest.mark.req("JT-03")
def test_the_address_and_the_command_are_escaped_and_their_absence_is_reported() -> None:
    assert "http://n1:8888/\n" in address_words(JOB, "http://n1:8888/")
    assert "\x1b" not in address_words(JOB, "http://n1\x1b[2J")
    assert "`cockpit logs 12`" in address_words(JOB, "")
    assert command_words("", JobKind.INTERACTIVE) == "only the shells that are opened in it"
    assert command_words("jupyter lab", JobKind.INTERACTIVE) == "jupyter lab"


@pytest.mark.req("UI-01")
def test_a_job_that_runs_what_its_image_starts_is_no_session() -> None:
    assert command_words("", JobKind.REGULAR) == "the command of its image"


@pytest.mark.req("JT-03")
def test_the_time_limit_of_a_session_is_shown() -> None:
    assert lasting_words(JOB, a_spec("lab", time_limit_seconds=7200)).startswith("Session 12 lasts at most 2:00:00,")


@pytest.mark.req("JT-03")
@pytest.mark.parametrize(
    ("state", "ended", "said"),
    [
        (JobState.RUNNING, False, "session 12 runs; its page shows its address once it has printed one"),
        (JobState.QUEUED, False, "session 12 is queued; s enters it once it runs"),
        (JobState.STOPPED, True, "session 12 has ended already: stopped"),
    ],
)
def test_a_session_that_is_not_opened_now_says_its_state(state: JobState, ended: bool, said: str) -> None:
    row = job_row(12, state=state, ended_at=NOW if ended else None, reason=None)
    shown = replace(detail(), row=row)
    assert waiting_words(shown, Context(now=NOW), "s") == said
