from __future__ import annotations

from datetime import UTC

import msgspec
import pytest

from cockpit.model.ids import Millis
from cockpit.model.job import JobState
from cockpit.present.columns import Context
from cockpit.present.entering import entry_lines
from cockpit.present.entry_notice import entry_notice
from tests.doubles.samples import HOUR, NOW, detail, job, job_row

CONTEXT = Context(now=NOW, zone=UTC)
KEPT = entry_notice(kept=True, remounted=True, cards_freed=True)


def test_what_a_held_container_lacks_is_printed_first() -> None:
    assert KEPT == (
        "The files are as the job left them; its processes and /tmp are gone; its cards are free "
        "(debug_hold: {cards: keep} keeps them)."
    )


def test_what_a_plain_process_lacks_is_printed_whether_it_runs_or_is_held() -> None:
    running = entry_notice(kept=False, remounted=False, cards_freed=False, plain=True)
    assert running.startswith("No container: this is a plain process of yours.")
    kept = entry_notice(kept=True, remounted=True, cards_freed=True, plain=True)
    assert kept.startswith(running)
    assert "its processes are gone, its files may have been changed by others since; its cards are free" in kept.lower()


@pytest.mark.req("JT-40", "UI-12")
def test_a_held_container_is_identified_with_its_end_and_its_last_lines() -> None:
    assert list(entry_lines(detail(), 0, KEPT, CONTEXT)) == [
        "4715 bert-eval · replica 0 on n03 · ended 11:59 with exit 3 · held until 15:59",
        KEPT,
        "Last lines:  loading",
        "             RuntimeError: device-side assert",
    ]


def test_a_running_container_is_only_identified() -> None:
    attempt = job().attempt
    assert attempt is not None
    (replica,) = attempt.replicas
    going = msgspec.structs.replace(replica, ended_at=None, exit=None)
    running = job(attempt=msgspec.structs.replace(attempt, replicas=(going,)), state=JobState.RUNNING)
    row = job_row(4715, name="bert-eval", started_at=Millis(NOW - HOUR))
    seen = msgspec.structs.replace(detail(), row=row, job=running)
    assert list(entry_lines(seen, 0, "", CONTEXT)) == ["4715 bert-eval · replica 0 on n03 · running since 11:00"]


def test_output_of_the_job_is_escaped() -> None:
    hostile = msgspec.structs.replace(detail(), log_tail="\x1b]52;c;aGk=\x07boom\n")
    assert "\x1b" not in "".join(entry_lines(hostile, 0, KEPT, CONTEXT))
