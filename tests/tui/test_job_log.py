"""The log of a job's page: where it opens, what of it is shown, and its colours."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.color import Color

from cockpit.errors import CockpitError
from cockpit.model.asking import LogChunk, LogMatches, LogRequest, LogSearch, LogStream
from cockpit.model.jobdetail import JobDetail
from cockpit.tui.widgets.log_view import LogView
from tests.tui.lab import a_lab, job, the_lab
from tests.tui.logs import shows

TRACEBACK = (
    b"Traceback (most recent call last):\n"
    + b"".join(b'  File "layer%d.py", line 7, in forward\n' % number for number in range(60))
    + b"RuntimeError: CUDA error: device-side assert triggered\n"
)


@pytest.mark.req("UI-14")
async def test_the_log_of_a_failed_job_opens_at_the_traceback_on_stderr_with_a_note() -> None:
    async with the_lab() as lab:
        lines = b"".join(b"step %d\n" % number for number in range(200))
        shows(lab, {(0, LogStream.STDOUT): b"loading\n", (0, LogStream.STDERR): lines + TRACEBACK})
        screen = await lab.cockpit.goes_to(2, "broken").press("l").sees("stderr at its error", "Traceback")
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
        await lab.cockpit.goes_to(2, "broken").press("l").sees("stdout at its error", "ValueError", "step 190")


@pytest.mark.req("UI-14")
async def test_a_running_job_opens_at_the_end_of_its_output() -> None:
    async with the_lab() as lab:
        shows(lab, {(0, LogStream.STDOUT): b"all is well\n", (0, LogStream.STDERR): b"a warning\n"})
        await lab.cockpit.goes_to(1, "train").press("l").sees("all is well", "stdout").misses("at its error")


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


@pytest.mark.req("UI-14", "TR-05")
async def test_colours_are_drawn_and_no_other_sequence_is() -> None:
    async with the_lab() as lab:
        shows(lab, {(0, LogStream.STDOUT): b"\x1b[31mred\x1b[0m \x1b[2Jplain\n"})
        await lab.cockpit.goes_to(1, "train").press("l").sees("red \\x1b[2Jplain")
        view = lab.cockpit.app.screen.query_one(LogView)
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
        await lab.cockpit.goes_to(2, "broken").press("l").sees("stdout").press("[").misses("stdout")
        answered.set()
        await lab.cockpit.press("]").sees("stderr at its error", "Traceback")


@pytest.fixture
def pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What $PAGER was given."""
    program, given = tmp_path / "pager", tmp_path / "given"
    program.write_text(f'#!/bin/sh\ncp "$2" {given}.new; mv {given}.new {given}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PAGER", f"{program} -n")
    return given


@pytest.mark.req("UI-14", "TR-05")
async def test_the_pager_gets_the_whole_log_with_colours_and_nothing_else_that_a_terminal_obeys(pager: Path) -> None:
    async with the_lab() as lab:
        lines = b"".join(b"%015d\n" % number for number in range(200_000))
        shows(lab, {(0, LogStream.STDOUT): lines + b"\x1b[31mred\x1b[0m \x1b]0;title\x07\n"})
        await lab.cockpit.goes_to(1, "train").press("l").sees("000000000199999").press("v")
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(pager.exists):  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.01)
        assert await asyncio.to_thread(pager.read_bytes) == lines + b"\x1b[31mred\x1b[0m \\x1b]0;title\\x07\n"


@pytest.mark.req("UI-14")
async def test_the_copy_for_the_pager_shows_its_progress_and_can_be_cancelled(pager: Path) -> None:
    async with the_lab() as lab:
        logs = shows(lab, {(0, LogStream.STDOUT): b"".join(b"%015d\n" % number for number in range(200_000))})
        await lab.cockpit.goes_to(1, "train").press("l").sees("000000000199999")
        may_go_on = asyncio.Event()

        async def slow(request: LogRequest) -> LogChunk:
            if request.offset > 0:
                await may_go_on.wait()
            return await logs.read(request)

        lab.backend.logs = slow
        await lab.cockpit.press("v").sees("copying for the pager: 32 %", "v cancel")
        await lab.cockpit.press("v").misses("copying for the pager")
        assert not await asyncio.to_thread(pager.exists)
        may_go_on.set()
        await lab.cockpit.press("v")
        async with asyncio.timeout(60):
            while not await asyncio.to_thread(pager.exists):  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.01)
        await lab.cockpit.misses("copying for the pager")


@pytest.mark.req("UI-14", "TR-04")
async def test_a_pager_that_cannot_be_started_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "/nowhere/pager")
    async with the_lab() as lab:
        shows(lab, {(0, LogStream.STDOUT): b"all is well\n"})
        await (
            lab.cockpit.goes_to(1, "train")
            .press("l")
            .sees("all is well")
            .press("v")
            .sees("/nowhere/pager cannot be started", "PAGER")
        )


@pytest.mark.req("UI-14")
async def test_a_search_goes_through_the_whole_log_and_a_number_to_its_line() -> None:
    async with the_lab() as lab:
        lines = b"".join(b"%015d\n" % number for number in range(200_000))
        shows(lab, {(0, LogStream.STDOUT): lines, (0, LogStream.STDERR): b"a warning\n"})
        await lab.cockpit.goes_to(1, "train").press("l").sees("000000000199999", "of 200 000")
        await lab.cockpit.press("/").type("99999").press("Enter").sees("of 2", "Esc ends").press(">").sees("1 of 2")
        await lab.cockpit.sees("000000000099999").press("Escape").misses("Esc ends")
        await lab.cockpit.press("%").type("1234").press("Enter").sees("line 1 234 of 200 000", "000000000001233")
        await lab.cockpit.press("%").type("50%").press("Enter").sees("000000000100000")
        await lab.cockpit.press("%").type("half").press("Enter").sees("neither a line's number nor a percentage")
        await lab.cockpit.press("o").sees("a warning", "line 1 of 1")


@pytest.mark.req("UI-14")
async def test_an_engine_that_cannot_search_still_shows_the_log_of_a_failed_job() -> None:
    async with the_lab() as lab:
        shows(lab, {(0, LogStream.STDERR): TRACEBACK})

        async def unknown(_request: LogSearch) -> LogMatches:
            raise CockpitError("There is no operation search_log.")

        lab.backend.search_log = unknown
        await lab.cockpit.goes_to(2, "broken").press("l").sees("RuntimeError: CUDA error")
        await lab.cockpit.press("/").type("layer").press("Enter").sees("There is no operation search_log.")


def merged_log(amount: int) -> tuple[bytes, tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """A merged log whose every third line is from stderr, a second after the one before."""
    text, errors, moments = b"", list[tuple[int, int]](), list[tuple[int, int]]()
    for number in range(amount):
        begin = len(text)
        text += b"%s %d\n" % (b"warn" if number % 3 == 1 else b"step", number)
        if number % 3 == 1:
            errors.append((begin, len(text)))
        moments.append((len(text), number * 1000))
    return text, tuple(errors), tuple(moments)


@pytest.mark.req("UI-14", "UI-24")
async def test_a_key_merges_both_streams_with_stderr_tinted_and_behind_a_sign() -> None:
    text, errors, moments = merged_log(3000)

    async def read(request: LogRequest) -> LogChunk:
        if request.stream is not LogStream.MERGED:
            return LogChunk(b"alone\n", 0, ended=True, size=6)
        begin = max(0, len(text) + request.offset) if request.offset < 0 else request.offset
        # In pieces that end anywhere, as an engine's answers may.
        end = min(len(text), begin + min(request.limit, 5000))
        cut = tuple((max(a, begin), min(b, end)) for a, b in errors if a < end and b > begin)
        ends = tuple((min(at, end), when) for at, when in moments if begin < at < end + 9)
        return LogChunk(text[begin:end], begin, ended=end == len(text), size=len(text), errors=cut, moments=ends)

    async with the_lab() as lab:
        shows(lab, {})
        lab.backend.logs = read
        await (
            lab.cockpit.goes_to(1, "train")
            .press("l")
            .sees("alone")
            .press("O")
            .sees("! warn 2998", "  step 2999", "merged")
        )
        view = lab.cockpit.app.screen.query_one(LogView)
        colours = {
            segment.text.strip(): segment.style.color for segment in view.render_line(0) if segment.style is not None
        }
        below = {segment.text.strip(): segment.style.color for y in range(3) for segment in view.render_line(y)}
        warn, step = (next(colour for text, colour in below.items() if text.startswith(w)) for w in ("warn", "step"))
        assert warn != step, colours
        await lab.cockpit.press("g").sees("! warn 1", "  step 2").misses("2999")
        await lab.cockpit.press("t").sees("00:00:01  ! warn 1", "00:00:02    step 2")
        await lab.cockpit.press("t", "O").sees("alone", "stdout").misses("! warn")


@pytest.mark.req("UI-14", "UI-20")
async def test_the_key_that_merges_says_why_a_cluster_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    async with the_lab() as lab:
        shows(lab, {(0, LogStream.STDOUT): b"all is well\n"})
        lacking = lab.backend.capabilities.without({"merged_logs": "Plain files have no times."})
        monkeypatch.setattr(type(lab.backend), "capabilities", lacking)
        await (
            lab.cockpit.goes_to(1, "train").press("l").sees("all is well").press("O").sees("Plain files have no times.")
        )


@pytest.mark.req("UI-14")
async def test_the_streams_of_an_earlier_attempt_are_merged_too() -> None:
    asked = list[LogRequest]()

    async def read(request: LogRequest) -> LogChunk:
        asked.append(request)
        data = b"%s of attempt %d\n" % (request.stream.encode(), request.attempt or 2)
        return LogChunk(data, 0, ended=True, size=len(data), moments=((len(data), 1000),))

    async with the_lab() as lab:
        shows(lab, {})
        lab.backend.logs = read
        detail = await lab.backend.job(1)
        assert detail.job.attempt is not None
        again = replace(detail, job=replace(detail.job, attempt=replace(detail.job.attempt, number=2)))

        async def job(_job: int, *, task: int | None = None) -> JobDetail:
            return again

        lab.backend.job = job
        await (
            lab.cockpit.goes_to(1, "train")
            .press("l")
            .sees("stdout of attempt 2")
            .press("O")
            .sees("merged of attempt 2")
        )
        await lab.cockpit.press("p").sees("attempt 1 · merged", "merged of attempt 1")
        await lab.cockpit.press("p").sees("merged of attempt 2")
