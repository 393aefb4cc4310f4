"""What is between a shell's terminal and the emulator: nothing is lost, and nothing waits for the shell."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from cockpit.backends.remote_shell import ShellStreams, remote_shell
from cockpit.errors import CockpitError
from cockpit.headless.recording import Recording
from cockpit.model.asking import ShellRequest
from cockpit.tui import shell_link
from cockpit.tui.emulator.choice import EMULATORS
from cockpit.tui.shell_link import MOST_PENDING, ShellLink
from tests.doubles.process_session import ProcessSession

pytestmark = pytest.mark.req("UI-12", "PF-32")

SECONDS = 60


class Shell:
    """A process, its link, and the end of it."""

    def __init__(self, command: str, emulator: str = "ghostty") -> None:
        self.session = ProcessSession(ShellRequest(job=1, terminal=True, rows=6, columns=40), ["sh", "-c", command])
        self.ended = asyncio.Event()
        self.changed = asyncio.Event()
        made = EMULATORS[emulator](40, 6)
        self.link = ShellLink(self.session, made, self._changed, self.ended.set)

    def _changed(self, _: Sequence[int]) -> None:
        self.changed.set()

    def screen(self) -> list[str]:
        emulator = self.link.emulator
        emulator.changed()
        return ["".join(each.text for each in emulator.line(row)).rstrip() for row in range(emulator.rows)]

    async def shows(self, text: str) -> None:
        async def look() -> None:
            while not any(text in line for line in self.screen()):
                self.changed.clear()
                await self.changed.wait()

        await asyncio.wait_for(look(), SECONDS)

    async def ends(self) -> int | None:
        await asyncio.wait_for(self.ended.wait(), SECONDS)
        return await self.link.close()


@pytest.mark.parametrize("emulator", list(EMULATORS))
async def test_all_that_an_ended_shell_wrote_is_shown(emulator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than is buffered at a time, and all of it there before the first read."""
    monkeypatch.setattr(shell_link, "LEAST_BUFFERED", 64)
    shell = Shell(
        "stty raw; i=0; while [ $i -lt 300 ]; do i=$((i+1)); printf 'row %d\\r\\n' $i; done; exit 7", emulator
    )
    await asyncio.wait_for(asyncio.to_thread(shell.session.watcher.join), SECONDS)
    shell.link.start()
    await asyncio.wait_for(shell.ended.wait(), SECONDS)
    assert shell.screen()[-2] == "row 300"
    assert await shell.link.close() == 7


async def test_the_loop_goes_on_while_output_comes_without_end() -> None:
    shell = Shell("yes", "pyte")
    shell.link.start()
    await shell.shows("y")
    turns, end = 0, time.monotonic() + 1
    while time.monotonic() < end:
        await asyncio.sleep(0)
        turns += 1
    assert turns > 20
    assert await shell.link.close() is None
    await asyncio.wait_for(asyncio.to_thread(shell.session.watcher.join), SECONDS)


async def test_answers_and_keys_reach_the_shell() -> None:
    shell = Shell("stty raw -echo; printf '\\033[6n'; head -c 6 | cat -v; head -c 3")
    shell.link.start()
    await shell.shows("^[[1;1R")
    shell.link.type(b"abc")
    await shell.shows("abc")
    assert await shell.ends() == 0


async def test_a_paste_that_nobody_reads_is_kept_up_to_a_bound() -> None:
    shell = Shell("stty raw -echo; printf ready; read x; sleep 60")
    shell.link.start()
    await shell.shows("ready")
    shell.link.type(b"x" * (MOST_PENDING - 10))
    with pytest.raises(CockpitError, match="does not read what was pasted before"):
        shell.link.type(b"y" * 200_000)
    assert await shell.link.close() is None


async def test_the_recording_has_the_output_and_the_sizes(tmp_path: Path) -> None:
    shell = Shell("printf one; read x; printf two")
    shell.link.recording = Recording(str(tmp_path / "cast"), 40, 6, title="t", term="xterm")
    shell.link.start()
    await shell.shows("one")
    shell.link.resize(50, 7)
    shell.link.resize(50, 7)
    shell.link.type(b"\r")
    await shell.ends()
    text = (tmp_path / "cast").read_text()
    assert text.count('"r", "50x7"') == 1
    assert '"o", "one' in text
    assert 'two"' in text


async def test_someone_else_may_read_the_shell_meanwhile() -> None:
    """As the full screen does."""
    shell = Shell("stty raw -echo; printf first; read x; printf second; read y; printf third; exit 5")
    shell.link.start()
    await shell.shows("first")
    shell.link.pause()
    os.write(shell.session.terminal_fd, b"\n")
    seen = b""
    os.set_blocking(shell.session.terminal_fd, True)
    while b"second" not in seen:
        seen += await asyncio.wait_for(asyncio.to_thread(os.read, shell.session.terminal_fd, 100), SECONDS)
    os.set_blocking(shell.session.terminal_fd, False)
    shell.link.output(seen)
    shell.link.start()
    shell.link.type(b"\n")
    await asyncio.wait_for(shell.ended.wait(), SECONDS)
    assert "firstsecondthird" in "".join(shell.screen())
    assert await shell.link.close() == 5


async def test_a_shell_on_another_machine_is_the_same_to_it() -> None:
    """As Kubernetes and Slurm over SSH open it: a thread of its own carries the bytes."""

    async def far_away(streams: ShellStreams) -> int:
        await streams.write(b"hello\r\n")
        async for data in streams.typed():
            await streams.write(data.upper())
            break
        async for rows, columns in streams.sizes((6, 40)):
            await streams.write(b" %d %d" % (rows, columns))
            break
        return 4

    opened = remote_shell(far_away, ShellRequest(job=1, terminal=True, rows=6, columns=40))
    ended, changed = asyncio.Event(), asyncio.Event()
    link = ShellLink(opened, EMULATORS["ghostty"](40, 6), lambda _: changed.set(), ended.set)
    link.start()
    link.type(b"typed")
    link.resize(50, 7)
    await asyncio.wait_for(ended.wait(), SECONDS)
    shown = "".join("".join(each.text for each in link.emulator.line(row)) for row in range(7))
    assert "hello" in shown
    assert "TYPED 7 50" in shown
    assert await link.close() == 4
