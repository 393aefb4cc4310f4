"""`cockpit shell --record`: the file that players of asciicast v2 read."""

from __future__ import annotations

import json
import resource
import signal
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cockpit.errors import CockpitError
from cockpit.headless.recording import Recording
from tests.headless.test_shell import Screen, passed_through, program
from tests.secrets_planted import PLANTED, TEXTS

pytestmark = pytest.mark.req("UI-12", "JT-40")

ASKS_FOR_A_PASSWORD = "printf 'name: '; read name; stty -echo; printf 'password: '; read secret; echo; echo hello $name"


def events_of(file: Path) -> tuple[dict[str, Any], list[tuple[float, str, str]]]:
    """The header and the events, after the checks that the format's documentation lets a player rely on."""
    header, *events = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    assert (header["version"], type(header["width"]), type(header["height"])) == (2, int, int)
    assert type(header["timestamp"]) is int
    assert all(isinstance(value, str) for value in (header["title"], *header["env"].values()))
    for event in events:
        at, code, data = event
        assert isinstance(at, float | int)
        assert code in {"o", "r"}
        assert isinstance(data, str)
    times = [at for at, *_ in events]
    assert times == sorted(times)
    assert not times or times[0] >= 0
    return header, [tuple(event) for event in events]


def shown_in(file: Path) -> str:
    return "".join(data for _, code, data in events_of(file)[1] if code == "o")


def test_a_terminal_is_recorded_without_what_is_typed_blindly(tmp_path: Path) -> None:
    file = tmp_path / "session.cast"
    screen = Screen("sh", "-c", ASKS_FOR_A_PASSWORD, words=("--record", str(file)))
    try:
        screen.until(b"name: ")
        screen.resize(30, 90)
        screen.type(b"alice\r")
        screen.until(b"password: ")
        screen.type(b"geheim\r")
        screen.until(b"hello alice")
        assert screen.shell.wait(timeout=60) == 0
    finally:
        screen.close()
    header, events = events_of(file)
    assert (header["width"], header["height"], header["title"]) == (100, 40, "cockpit shell 7")
    assert [data for _, code, data in events if code == "r"] == ["90x30"]
    assert shown_in(file) == "name: alice\r\npassword: \r\nhello alice\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_command_in_a_pipe_is_recorded_with_lines_that_a_terminal_ends(tmp_path: Path) -> None:
    file = tmp_path / "piped.cast"
    command = ("sh", "-c", "cat; printf '%s' 'é'; exit 3")
    done = subprocess.run(
        [*program(*command), "--record", str(file)], input=b"one\ntwo\n", capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, b"one\ntwo\n\xc3\xa9", b"")
    assert shown_in(file) == "one\r\ntwo\r\né"


def test_without_the_option_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert passed_through("true").returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("there", "there exists and is not overwritten: name another file."),
        ("no/folder/x.cast", "Cannot record to no/folder/x.cast: No such file or directory."),
        ("", "Cannot record to : "),
        ("a\0b", "it is no name of a file."),
        ("\x1b[31mred/x", "Cannot record to \\x1b[31mred/x: No such file or directory."),
    ],
)
def test_a_file_that_cannot_be_made_is_refused_before_the_shell(
    name: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there").write_text("mine")
    with pytest.raises(CockpitError) as refused:
        Recording(name, 80, 24, title="", term="")
    assert sentence in str(refused.value)
    assert Path("there").read_text() == "mine"


def test_a_session_of_cockpit_serve_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its shell-less user could have a shell's start-up file made otherwise."""
    monkeypatch.setenv("COCKPIT_ACCESS", "own")
    with pytest.raises(CockpitError, match="records nothing"):
        Recording(str(tmp_path / ".bashrc"), 80, 24, title="", term="")
    assert list(tmp_path.iterdir()) == []


def test_a_refused_file_opens_no_shell(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    words = [*program("touch", str(ran)), "--record", str(tmp_path)]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
    assert done.returncode != 0
    assert b"exists and is not overwritten" in done.stderr
    assert not ran.exists()


def test_a_character_cut_between_two_pieces_is_recorded_whole(tmp_path: Path) -> None:
    recording = Recording(str(tmp_path / "cut"), 80, 24, title="", term="xterm")
    for byte in "漢\u2028é".encode():
        recording.output(bytes([byte]))
    recording.output(b"\xff\xe6")
    recording.close()
    recording.close()
    recording.output(b"late")
    assert "".join(data for _, _, data in map(json.loads, (tmp_path / "cut").read_text().split("\n")[1:-1])) == (
        "漢\u2028é\ufffd\ufffd"
    )


def test_a_full_disk_ends_the_recording_with_a_sentence(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk."""
    recording = Recording(str(tmp_path / "full"), 80, 24, title="", term="xterm")
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (Path(recording.path).stat().st_size + 10, before[1]))
    try:
        recording.output(b"x" * 1000 + b"\n")
        recording.output(b"y")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    recording.close()
    assert recording.failure == f"The recording {recording.path} ends early: File too large."


@pytest.mark.req("TR-10")
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_a_recording_has_no_secret_however_its_output_is_cut(tmp_path: Path, size: int) -> None:
    file = tmp_path / "secret.cast"
    recording = Recording(str(file), 80, 24, title="t", term="xterm", known=("planted-value-7",))
    lines = [
        *TEXTS,
        "printed planted-value-7 alone",
        "\x1b[1mHF_TOKEN=\x1b[0mplanted-1",
        "\x1b[2J\x1b[5;1Hpassword: planted-2",
    ]
    data = "\r\n".join([*lines, "$ echo done", "done", "$ "]).encode()
    for at in range(0, len(data), size):
        recording.output(data[at : at + size])
    recording.close()
    text = shown_in(file)
    assert PLANTED not in file.read_text(encoding="utf-8").lower()
    assert "HF_TOKEN=***\r\n" in text
    assert "printed *** alone\r\n" in text
    assert text.endswith("$ echo done\r\ndone\r\n$ ")


@pytest.mark.req("TR-10")
def test_a_screen_that_a_program_draws_is_recorded_at_once(tmp_path: Path) -> None:
    file = tmp_path / "screen.cast"
    recording = Recording(str(file), 80, 24, title="t", term="xterm")
    for number in range(3):
        recording.output(b"\x1b[H\x1b[2Jtokens: %d\x1b[2;1Hload 0.5 \x1b[3;1H" % number)
        assert shown_in(file).count("tokens: ") == number + 1
    recording.close()
