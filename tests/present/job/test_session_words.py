"""What is said of sessions."""

from __future__ import annotations

import pytest

from cockpit.model.ids import JobId
from cockpit.present.job.sessions import address_words, command_words, lasting_words, leaving_words
from tests.builders import a_spec

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
    assert (command_words(""), command_words("jupyter lab")) == ("only the shells that are opened in it", "jupyter lab")


@pytest.mark.req("JT-03")
def test_the_time_limit_of_a_session_is_shown() -> None:
    assert lasting_words(JOB, a_spec("lab", time_limit_seconds=7200)).startswith("Session 12 lasts at most 2:00:00,")
