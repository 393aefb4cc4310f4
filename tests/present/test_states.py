"""What is said of copies that are being made, and of exit codes."""

from __future__ import annotations

import signal
from datetime import UTC

import pytest

from cockpit.engine.views.rows import slowest
from cockpit.model.job import JobState
from cockpit.model.staging import Progress
from cockpit.present.columns import Context
from cockpit.present.job_values import copied_json, why
from cockpit.present.spans import plain
from cockpit.present.states import copied_percent, copying_sentence, exit_words
from cockpit.present.tables.jobs import state_cell
from tests.doubles import samples

GIB = 1 << 30
HALF = Progress(GIB, 2 * GIB, 256 << 20)
ROW = samples.job_row(4711, state=JobState.STAGING, staged=HALF, started_at=None, reason=None)
CONTEXT = Context(now=samples.NOW, zone=UTC)


@pytest.mark.req("JT-50", "UI-27")
@pytest.mark.parametrize(
    ("progress", "said"),
    [
        (HALF, "copies its files: 1G of 2G, 256M a second, 4 s left"),
        (Progress(0, 2 * GIB, 0), "copies its files: 0M of 2G"),
        (Progress(0, 0, 0), "looks through what it has to copy"),
        (None, "its files are copied; it starts with the others of its replicas"),
    ],
)
def test_the_progress_of_staging_is_shown(progress: Progress | None, said: str) -> None:
    assert copying_sentence(progress) == said


@pytest.mark.req("JT-50")
def test_list_details_and_json_show_the_same_progress() -> None:
    assert plain(state_cell(ROW, CONTEXT)) == "◍ staging 50%"
    assert why(ROW, CONTEXT) == copying_sentence(HALF)
    assert copied_json(HALF) == {
        "done_bytes": GIB,
        "total_bytes": 2 * GIB,
        "bytes_per_second": 256 << 20,
        "seconds_left": 4,
    }
    assert copied_percent(None) == "–"


@pytest.mark.req("JT-50")
def test_a_job_waits_for_its_slowest_replica() -> None:
    slow = Progress(1, 100, 1)
    assert slowest([HALF, slow]) is slow
    assert slowest([]) is None
    assert Progress(5, 10, 2).seconds_left == 3
    assert Progress(5, 10, 0).seconds_left is None


@pytest.mark.parametrize(
    "name", ["HUP", "INT", "QUIT", "ILL", "ABRT", "BUS", "FPE", "KILL", "SEGV", "PIPE", "ALRM", "TERM"]
)
def test_an_exit_code_above_128_names_linuxs_signal(name: str) -> None:
    number = signal.Signals[f"SIG{name}"]
    assert exit_words(128 + number) == f"exit {128 + number}, killed by SIG{name}"


@pytest.mark.parametrize(
    ("code", "words"), [(0, "exit 0"), (3, "exit 3"), (128, "exit 128"), (200, "exit 200"), (None, "exit unknown")]
)
def test_other_exit_codes_are_numbers(code: int | None, words: str) -> None:
    assert exit_words(code) == words
    assert exit_words(code, oom=True) == f"{words}: it used more memory than it asked for"
