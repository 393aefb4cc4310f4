"""The log of a job's page: where it opens, what of it is shown, and its colours."""

from __future__ import annotations

import asyncio
from datetime import UTC

import pytest
from rich.color import Color

from cockpit.model.asking import LogChunk, LogRequest, LogStream
from cockpit.model.ids import JobId
from cockpit.present.columns import Context
from cockpit.present.spans import plain
from cockpit.tui.job_log import JobLog
from cockpit.tui.widgets.lines import LineView
from tests.doubles.samples import NOW
from tests.tui.lab import Lab, a_lab, job, the_lab

TRACEBACK = (
    b"Traceback (most recent call last):\n"
    + b"".join(b'  File "layer%d.py", line 7, in forward\n' % number for number in range(60))
    + b"RuntimeError: CUDA error: device-side assert triggered\n"
)


class Logs:
    """Logs by rank and stream, all ended; what was asked for is in `asked`."""

    def __init__(self, texts: dict[tuple[int, LogStream], bytes]) -> None:
        self._texts = texts
        self.asked: list[LogRequest] = []

    async def read(self, request: LogRequest) -> LogChunk:
        self.asked.append(request)
        text = self._texts.get((request.rank, request.stream), b"")
        start = max(0, len(text) + request.offset) if request.offset < 0 else request.offset
        data = text[start : start + request.limit]
        return LogChunk(data, start, ended=start + len(data) >= len(text))


def shows(lab: Lab, texts: dict[tuple[int, LogStream], bytes]) -> Logs:
    logs = Logs(texts)
    lab.backend.logs = logs.read
    return logs


@pytest.mark.req("UI-14")
async def test_the_log_of_a_failed_job_opens_at_the_traceback_on_stderr_with_a_note() -> None:
    async with the_lab() as lab:
        lines = b"".join(b"step %d\n" % number for number in range(200))
        shows(lab, {(0, LogStream.STDOUT): b"loading\n", (0, LogStream.STDERR): lines + TRACEBACK})
        screen = await lab.cockpit.press("j").stands_on("broken").press("l").sees("stderr at its error", "Traceback")
        assert "step 199" in screen
        assert "layer59" not in screen
        await lab.cockpit.press("G").sees("RuntimeError: CUDA error").misses("Traceback")
        await lab.cockpit.press("o").sees("loading", "stdout").misses("at its error")
        await lab.cockpit.press("o").sees("RuntimeError: CUDA error").misses("at its error")


@pytest.mark.req("UI-14")
async def test_a_short_error_stays_at_the_end_and_a_silent_stderr_leaves_stdout() -> None:
    async with the_lab() as lab:
        lines = b"".join(b"step %d\n" % number for number in range(200))
        shows(lab, {(0, LogStream.STDOUT): lines + b"ValueError: no such key\n"})
        await (
            lab.cockpit.press("j").stands_on("broken").press("l").sees("stdout at its error", "ValueError", "step 190")
        )


@pytest.mark.req("UI-14")
async def test_a_running_job_opens_at_the_end_of_its_output() -> None:
    async with the_lab() as lab:
        shows(lab, {(0, LogStream.STDOUT): b"all is well\n", (0, LogStream.STDERR): b"a warning\n"})
        await lab.cockpit.press("l").sees("all is well", "stdout").misses("at its error")


@pytest.mark.req("UI-14", "UI-03")
async def test_the_log_of_the_failed_replica_opens_and_a_key_opens_the_others() -> None:
    async with a_lab(job("pair", "bash -c 'exit 3'", nodes=2)) as lab:
        shows(lab, {(rank, LogStream.STDERR): b"replica %d here\n" % rank for rank in range(2)})
        detail = await lab.backend.job(1)
        assert detail.row.failed is not None
        failed = detail.row.failed[0]
        await lab.cockpit.press("l").sees(f"replica {failed} here", f"replica {failed} · stderr at its error")
        await lab.cockpit.press("i").sees(f"replica {1 - failed} here").misses("at its error")
        await lab.cockpit.press("i").sees(f"replica {failed} here")


@pytest.mark.req("UI-14")
async def test_a_note_names_the_shown_part_of_a_large_log() -> None:
    async with the_lab() as lab:
        lines = b"".join(b"%015d\n" % number for number in range(200_000))
        shows(lab, {(0, LogStream.STDOUT): lines})
        await lab.cockpit.press("l").sees("000000000199999").press("g")
        screen = await lab.cockpit.sees("… the first 2M and", "earlier lines not shown; all of it: cockpit logs 1")
        assert "000000000000000" not in screen


@pytest.mark.req("UI-14")
async def test_the_note_names_the_stream_and_a_whole_log_has_none() -> None:
    async with the_lab() as lab:
        shows(lab, {(0, LogStream.STDERR): b"x" * (1 << 20) + b"\ntail\n", (0, LogStream.STDOUT): b"short\n"})
        await lab.cockpit.press("l").sees("short").misses("not shown").press("o").sees("tail").press("g")
        await lab.cockpit.sees("… the first 6 B not shown; all of it: cockpit logs 1 --stderr")


@pytest.mark.req("UI-14", "TR-05")
async def test_colours_are_drawn_and_no_other_sequence_is() -> None:
    async with the_lab() as lab:
        shows(lab, {(0, LogStream.STDOUT): b"\x1b[31mred\x1b[0m \x1b[2Jplain\n"})
        await lab.cockpit.press("l").sees("red \\x1b[2Jplain")
        view = lab.cockpit.app.screen.query_one(LineView)
        strip = view.render_line(0)
        colours = {segment.text: segment.style.color for segment in strip if segment.style is not None}
        assert colours["red"] == Color.parse("red")
        assert colours[" \\x1b[2Jplain"] != Color.parse("red")


@pytest.mark.req("UI-14")
async def test_a_log_whose_tab_is_left_before_it_is_chosen_still_opens_at_its_error() -> None:
    async with the_lab() as lab:
        logs = shows(lab, {(0, LogStream.STDERR): TRACEBACK})
        answered = asyncio.Event()

        async def slow(request: LogRequest) -> LogChunk:
            if request.limit == 1:  # whether there is any stderr
                await answered.wait()
            return await logs.read(request)

        lab.backend.logs = slow
        await lab.cockpit.press("j").stands_on("broken").press("l").sees("stdout").press("[").misses("stdout")
        answered.set()
        await lab.cockpit.press("]").sees("stderr at its error", "Traceback")


@pytest.mark.req("UI-14")
def test_the_note_names_the_attempt_and_the_replica_that_are_shown() -> None:
    log = JobLog(JobId(47))
    log.rank, log.attempt, log.stream = 2, 1, LogStream.STDERR
    log.take(LogChunk(b"tail\n", 2048, ended=True), NOW)
    said = plain(log.lines(Context(now=NOW, zone=UTC))[0])
    assert said == "… the first 2K not shown; all of it: cockpit logs 47/2 --attempt 1 --stderr"
