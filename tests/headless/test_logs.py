"""`cockpit logs`: the whole of it, its last lines, and who is told what beside it."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from cockpit.headless.exitcodes import ExitCode
from cockpit.model.asking import LogChunk, LogRequest, LogStream
from cockpit.model.ids import Millis
from cockpit.present.moments import iso
from tests.doubles.samples import detail, failed_row, job_row
from tests.headless.conftest import Desk

LOG = b"".join(b"line %d\n" % number for number in range(30_000))


@pytest.mark.parametrize(
    ("tail", "first"), [("3", 29_997), ("1", 29_999), ("20000", 10_000), ("30000", 0), ("99999", 0)]
)
def test_the_last_lines_of_a_log_that_is_longer_than_a_block(desk: Desk, tail: str, first: int) -> None:
    desk.backend.log = LOG
    done = desk("logs", "4715", "--tail", tail)
    assert done.lines[0] == f"line {first}"
    assert done.lines[-1] == "line 29999"


@pytest.mark.parametrize(
    ("log", "tail", "shown"), [(b"a\nb", "1", b"b"), (b"", "5", b""), (b"a\n", "0", b""), (b"\n\n", "1", b"\n")]
)
def test_the_last_lines_of_a_short_log(desk: Desk, log: bytes, tail: str, shown: bytes) -> None:
    desk.backend.log = log
    assert desk("logs", "4715", "--tail", tail).out == shown


def test_a_log_of_a_replica_attempt_and_stream(desk: Desk) -> None:
    desk("logs", "4711/2#1", "--stderr", "-f")
    desk("logs", "4711/2", "--replica", "3", "--attempt", "4")
    first, second = (request for _, request in desk.backend.asked)
    assert (first.rank, first.attempt, first.stream, first.wait) == (2, 1, "stderr", True)
    assert (second.rank, second.attempt, second.stream, second.wait) == (3, 4, "stdout", False)


def test_reading_stdout_on_a_terminal_mentions_the_stderr_of_the_job(desk: Desk) -> None:
    desk.backend.log = b"loading\n"
    assert desk("logs", "4715", terminal=True).err == ""
    desk.backend.errors = b"Traceback\n"
    assert desk("logs", "4711/2#1", terminal=True) == (
        0,
        b"loading\n",
        "There are errors, too: cockpit logs 4711/2#1 --stderr\n",
    )
    assert desk("logs", "4715", "--stderr", terminal=True) == (0, b"Traceback\n", "")
    assert desk("logs", "4715") == (0, b"loading\n", "There are errors, too: cockpit logs 4715 --stderr\n"), "it failed"
    desk.backend.details[4715] = replace(detail(), row=job_row(4715))
    assert desk("logs", "4715").err == "", "a script asked for the output"
    desk.backend.details[4715] = replace(detail(), row=replace(job_row(4715), failed=(1, 3)))
    assert "There are errors, too" in desk("logs", "4715").err, "a replica of it failed"


def output_asked_for(desk: Desk) -> list[tuple[object, LogRequest]]:
    logs = [(op, request) for op, request in desk.backend.asked if op == "logs" and isinstance(request, LogRequest)]
    return [each for each in logs if each[1].stream is LogStream.STDOUT]


@pytest.mark.req("JT-48", "UI-14")
def test_without_a_replica_it_is_the_log_of_the_one_that_failed(desk: Desk) -> None:
    desk.backend.details[4715] = replace(detail(), row=failed_row(4715, failed=(1, 3)))
    done = desk("logs", "4715")
    ((_, request),) = output_asked_for(desk)
    assert request.rank == 1
    assert done.err == "Replica 1 failed first (exit 3): this is its output. Others: --replica N\n"
    desk.backend.asked.clear()
    for words in (("logs", "4715/0"), ("logs", "4715", "--replica", "0"), ("logs", "4715#1")):
        assert desk(*words).err == ""
    assert [request.rank for _, request in output_asked_for(desk)] == [0, 0, 0]


@pytest.mark.req("UI-14")
def test_following_from_the_end_shows_only_what_is_written_later(desk: Desk) -> None:
    desk.backend.log = b"a\nb\n"
    done = desk("logs", "4715", "--tail", "0", "--follow")
    assert (done.code, done.out) == (0, b"")
    assert [request.offset for _, request in output_asked_for(desk)][-1] == 4


@pytest.mark.req("UI-14")
def test_a_log_that_comes_in_pieces_is_written_once_and_in_order(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def logs(request: LogRequest) -> LogChunk:
        log = LOG[:50] if request.stream is LogStream.STDOUT else b""
        start = max(len(log) + request.offset, 0) if request.offset < 0 else request.offset
        data = log[start : start + 7]
        return LogChunk(data, start, ended=not data)

    monkeypatch.setattr(desk.backend, "logs", logs)
    for words in (("logs", "4715/0"), ("logs", "4715/0", "--follow")):
        assert desk(*words).out == LOG[:50]


@pytest.mark.req("UI-14")
def test_a_log_that_is_emptied_while_it_is_followed_is_read_from_its_new_beginning(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [
        LogChunk(b"old\n", 0, ended=False, size=4),
        LogChunk(b"", 4, ended=False, size=2),
        LogChunk(b"n\n", 0, ended=True, size=2),
        LogChunk(b"", 0, ended=True),
    ]
    offsets: list[int] = []

    async def logs(request: LogRequest) -> LogChunk:
        offsets.append(request.offset)
        return answers.pop(0)

    monkeypatch.setattr(desk.backend, "logs", logs)
    done = desk("logs", "4715/0", "--follow")
    assert (done.out, done.err) == (b"old\nn\n", "The log was emptied or replaced: its new text follows.\n")
    assert offsets[:3] == [0, 4, 0]


@pytest.mark.req("TR-05", "UI-14")
def test_a_character_cut_in_two_at_the_end_of_a_log_is_shown_as_bytes(desk: Desk) -> None:
    desk.backend.log = "grün".encode()[:3]
    assert desk("logs", "4715/0", terminal=True).out == b"gr\\xc3"
    assert desk("logs", "4715/0").out == "grün".encode()[:3]


def long_log() -> bytes:
    """Two windows of a reader and more, with a line longer than a block."""
    return LOG + b"needle " + b"x" * 300_000 + b" needle\n" + LOG + b"last Needle"


@pytest.mark.req("UI-14", "UI-41")
def test_a_search_prints_each_matching_line_once_behind_its_offset(desk: Desk) -> None:
    desk.backend.log = log = long_log()
    done = desk("logs", "4715", "--search", "line 2999", "--stderr")
    assert (done.code, done.out) == (66, b""), "nothing on stderr"
    done = desk("logs", "4715", "--search", "line 2999")
    expected = [f"{at}:{text}" for at, text in offsets(log) if text.startswith("line 2999")]
    assert (done.code, done.lines) == (0, expected)
    assert len(expected) == 22
    done = desk("logs", "4715", "--search", "^last needle$", "--regex")
    assert done.lines == [f"{len(log) - 11}:last Needle"]
    done = desk("logs", "4715", "--search", "needle")
    assert done.lines[0].startswith(f"{len(LOG)}:needle")
    assert [line[-6:] for line in done.lines] == ["xxxxxx", "needle", "Needle"], "a long line is printed in parts"


def offsets(log: bytes) -> list[tuple[int, str]]:
    """The first byte and the text of each line."""
    at, lines = 0, []
    for each in log.splitlines(keepends=True):
        lines.append((at, each.decode().rstrip("\n")))
        at += len(each)
    return lines


@pytest.mark.req("UI-14", "UI-41")
def test_the_lines_around_an_offset_are_printed_without_reading_the_rest(desk: Desk) -> None:
    desk.backend.log = LOG
    at = LOG.index(b"line 20000\n")
    done = desk("logs", "4715", "--around", str(at + 3), "--lines", "2")
    assert done.lines == [f"line {number}" for number in range(19_998, 20_003)]
    assert sum(request.limit for _, request in output_asked_for(desk)) < 600_000
    assert desk("logs", "4715", "--around", "0", "--lines", "1").lines == ["line 0", "line 1"]
    assert desk("logs", "4715", "--around", "999999999", "--lines", "1").lines == ["line 29998", "line 29999"]
    desk.backend.log = b""
    assert desk("logs", "4715", "--around", "7").out == b""


@pytest.mark.req("UI-14")
@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("--search", ""), "there is no text to look for"),
        (("--search", "x", "--follow"), "go neither together nor with --tail or --follow"),
        (("--search", "x", "--around", "3"), "go neither together"),
        (("--search", "(", "--regex"), "The pattern '(' cannot be searched: grep:"),
    ],
)
def test_a_search_that_cannot_be_made_is_refused(desk: Desk, words: tuple[str, ...], error: str) -> None:
    desk.backend.log = LOG
    done = desk("logs", "4715", *words)
    assert done.code in {64, 65}
    assert error in done.err


@pytest.mark.req("UI-14", "TR-04")
def test_a_log_that_is_emptied_while_its_lines_are_read_is_an_error(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def logs(request: LogRequest) -> LogChunk:
        return LogChunk(b"x" if request.offset < 0 else b"", max(0, request.offset), ended=False, size=1000)

    monkeypatch.setattr(desk.backend, "logs", logs)
    done = desk("logs", "4715/0", "--around", "7")
    assert done.code != 0
    assert "The log was emptied or replaced while it was read: repeat the command." in done.err


MERGED = (
    LogChunk(b"one\nwa", 0, ended=False, size=15, errors=((4, 6),), moments=((4, 1000), (6, 2000))),
    LogChunk(b"rn\ntwo\nx", 6, ended=True, size=14, errors=((6, 9),), moments=((9, 2000), (13, 3000), (14, 4000))),
)
"""A merged log in two pieces that are cut within a line of stderr; the last line has no end."""


@pytest.fixture
def merged(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Desk:
    async def logs(request: LogRequest) -> LogChunk:
        desk.backend.asked.append(("logs", request))
        return MERGED[request.offset >= 6]

    monkeypatch.setattr(desk.backend, "logs", logs)
    return desk


@pytest.mark.req("UI-14")
def test_both_streams_are_merged_with_a_sign_before_lines_of_stderr(merged: Desk) -> None:
    done = merged("logs", "4715/0", "--merged")
    assert (done.code, done.out, done.err) == (0, b"  one\n! warn\n  two\n  x\n", "")
    assert {request.stream for op, request in merged.backend.asked if op == "logs"} == {"merged"}


@pytest.mark.req("UI-14")
@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_merged_lines_as_json_have_their_stream_and_time(merged: Desk, form: str) -> None:
    text = merged("logs", "4715/0", "--merged", "-o", form).out
    records = json.loads(text) if form == "json" else [json.loads(line) for line in text.splitlines()]
    assert [(each["stream"], each["line"]) for each in records] == [
        ("stdout", "one"),
        ("stderr", "warn"),
        ("stdout", "two"),
        ("stdout", "x"),
    ]
    assert [each["time"] for each in records][:3] == [iso(Millis(at)) for at in (1000, 2000, 3000)]


@pytest.mark.req("UI-14")
def test_a_merged_log_without_a_line_is_an_empty_document(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    async def logs(request: LogRequest) -> LogChunk:
        return LogChunk(b"", 0, ended=True)

    monkeypatch.setattr(desk.backend, "logs", logs)
    assert desk("logs", "4715/0", "--merged", "-o", "json").out == b"[]\n"


@pytest.mark.req("UI-14", "TR-10")
def test_merged_lines_are_masked_and_harmless(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"\x1b]0;x\x07HF_TOKEN=planted-1\n"

    async def logs(request: LogRequest) -> LogChunk:
        return LogChunk(data, 0, ended=True, size=len(data), errors=((0, len(data)),), moments=((len(data), 1),))

    monkeypatch.setattr(desk.backend, "logs", logs)
    for words in (("--merged",), ("--merged", "-o", "jsonl")):
        done = desk("logs", "4715/0", *words, terminal=True)
        assert b"planted" not in done.out
        assert b"\x1b" not in done.out


@pytest.mark.req("UI-14")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("-o", "json"), "-o json is a form of --merged"),
        (("--merged", "--stderr"), "leave one of them out"),
        (("--merged", "-o", "json", "-f"), "use -o jsonl with --follow"),
        (("--merged", "-o", "json", "--around", "5"), "goes with neither"),
    ],
)
def test_options_of_a_merged_log_that_contradict_each_other(desk: Desk, words: tuple[str, ...], sentence: str) -> None:
    done = desk("logs", "4715/0", *words)
    assert done.code == ExitCode.USAGE
    assert sentence in done.err


@pytest.mark.req("UI-14")
def test_a_cluster_without_times_says_why_nothing_is_merged(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking = desk.backend.capabilities.without({"merged_logs": "Plain files have no times."})
    monkeypatch.setattr(type(desk.backend), "capabilities", lacking)
    done = desk("logs", "4715/0", "--merged")
    assert (done.code, "Plain files have no times." in done.err) == (ExitCode.USAGE, True)
