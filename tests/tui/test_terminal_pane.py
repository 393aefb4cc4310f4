"""The terminal pane: a shell with a real pseudo terminal beside the list."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.events import MouseScrollUp

from cockpit.model.asking import ShellRequest
from cockpit.tui.emulator.choice import NEITHER
from cockpit.tui.widgets.table import Table
from cockpit.tui.widgets.terminal import TerminalView
from tests.doubles.process_session import ProcessSession
from tests.tui.lab import Lab, a_lab, job, the_lab

pytestmark = pytest.mark.req("UI-12")

SHELL = ["bash", "--norc", "--noprofile", "-i"]


class Shells:
    """The shells that the cluster opened: processes of this machine."""

    def __init__(self, lab: Lab, command: list[str]) -> None:
        self.requests: list[ShellRequest] = []
        self.sessions: list[ProcessSession] = []
        self._command = command
        lab.backend.open_shell = self._open

    async def _open(self, request: ShellRequest) -> ProcessSession:
        self.requests.append(request)
        os.environ["PS1"] = "here> "
        self.sessions.append(ProcessSession(request, self._command))
        return self.sessions[-1]


@asynccontextmanager
async def a_pane(
    command: list[str] = SHELL, size: tuple[int, int] = (120, 40), prompt: str = "here>"
) -> AsyncIterator[tuple[Lab, Shells]]:
    """The lab with a shell in the pane: that of job 2, whose container is held."""
    async with the_lab(size=size) as lab:
        shells = Shells(lab, command)
        await lab.cockpit.goes_to(2, "broken").press("t").sees("2 broken", "Ctrl-] menu", prompt)
        yield lab, shells


async def ends(session: ProcessSession) -> None:
    await asyncio.wait_for(asyncio.to_thread(session.watcher.join), 60)


async def test_every_key_goes_to_the_shell_until_the_menu_gives_them_to_the_list() -> None:
    async with a_pane() as (lab, shells):
        app = lab.cockpit.app
        await lab.cockpit.type("echo q$((40+2))q").press("Enter").sees("q42q", "held until", "ended")
        await lab.cockpit.press("Ctrl-p").sees("here> echo q$((40+2))q\n").misses("the name of an action")
        await lab.cockpit.press("Ctrl-c", "Ctrl-]").sees("l list", "f full screen", "r record", "x close")
        await lab.cockpit.press("Esc").misses("l list").type("echo b$((1+1))k").press("Enter").sees("b2k")
        await lab.cockpit.press("Ctrl-]", "l", "j").stands_on("done").press("t").type("echo a$((1+1))n")
        await lab.cockpit.press("Enter").sees("a2n").stands_on("done")
        assert isinstance(app.focused, TerminalView)
        await lab.cockpit.type("exit 3").press("Enter").sees("The shell ended with exit code 3").misses("Ctrl-] menu")
        assert isinstance(app.focused, Table)
        (request,) = shells.requests
        assert (request.job, request.rank, request.terminal, request.columns) == (2, 0, True, 120)


async def test_of_several_containers_one_is_chosen() -> None:
    async with a_lab(job("pair", nodes=2)) as lab:
        shells = Shells(lab, SHELL)
        await lab.cockpit.stands_on("pair").press("t").sees("job 1 pair: which container", "replica 1 on n02")
        await lab.cockpit.press("j", "Enter").sees("1 pair · replica 1", "Ctrl-] menu", "here>")
        assert [request.rank for request in shells.requests] == [1]


async def test_closing_hangs_up() -> None:
    async with a_pane() as (lab, shells):
        await lab.cockpit.press("Ctrl-]", "x").misses("Ctrl-] menu").sees("broken", "exit 3")
        await ends(shells.sessions[0])
        await lab.cockpit.press("Ctrl-p").sees("the name of an action")


async def test_a_cockpit_that_quits_hangs_up() -> None:
    async with a_pane() as (lab, shells):
        await lab.cockpit.press("Ctrl-]", "l", "q")
    await ends(shells.sessions[0])


async def test_the_shell_follows_the_size_beside_and_below_the_list() -> None:
    async with a_pane() as (lab, _):
        await lab.cockpit.type("stty size").press("Enter").sees("22 120\n")
        await lab.cockpit.resize(80, 24).type("clear; stty size").press("Enter").sees("\n12 80\n")
        await (
            lab.cockpit.resize(170, 40)
            .type("clear; stty size")
            .press("Enter")
            .finds(lambda screen: any("│36 85" in line for line in screen.splitlines()), "36 lines beside the list")
        )


async def test_a_paste_arrives_as_one_and_marked_where_the_program_wants_it() -> None:
    async with a_pane(["sh", "-c", "stty raw -echo; printf ready; cat -v"], prompt="ready") as (lab, _):
        await lab.cockpit.paste("one\ntwo\x1b[201~").sees("one^Mtwo[201~")
    async with a_pane(["sh", "-c", "stty raw -echo; printf '\\033[?2004hready'; cat -v"], prompt="ready") as (lab, _):
        await lab.cockpit.paste("one\x1b[201~two").sees("^[[200~one[201~two^[[201~")


async def test_the_scrollback_is_there_with_keys_and_the_wheel() -> None:
    async with a_pane() as (lab, _):
        await lab.cockpit.type("clear; seq 100").press("Enter").sees("\n100\n").misses("\n50\n")
        await lab.cockpit.press("Shift-PgUp").sees("21 lines back", "\n70\n").misses("\n100\n")
        app = lab.cockpit.app
        view = app.query_one(TerminalView)
        view.post_message(MouseScrollUp(view, 1, 1, 0, -1, 0, False, False, False))
        await lab.cockpit.sees("24 lines back")
        await lab.cockpit.type("e").misses("lines back").sees("here> e")


async def test_a_program_with_the_mouse_gets_the_wheel() -> None:
    command = ["sh", "-c", "stty raw -echo; printf '\\033[?1000;1006hready'; cat -v"]
    async with a_pane(command, prompt="ready") as (lab, _):
        view = lab.cockpit.app.query_one(TerminalView)
        view.post_message(MouseScrollUp(view, 4, 2, 0, -1, 0, False, False, False))
        await lab.cockpit.sees("^[[<64;5;3M")


async def test_a_flood_of_output_leaves_the_keys_working() -> None:
    async with a_pane() as (lab, _):
        await lab.cockpit.type("yes").press("Enter").sees("\ny\n")
        await lab.cockpit.press("Ctrl-]", "l", "j").stands_on("done").press("k").stands_on("broken").press("t")
        await lab.cockpit.press("Ctrl-c").sees("^C", "here>").type("echo s$((1+1))l").press("Enter").sees("s2l")


async def test_the_pane_records_and_never_over_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with a_pane() as (lab, _):
        await lab.cockpit.press("Ctrl-]", "r").sees("● recording cockpit-2-").type("echo v$((1+1))w").press("Enter")
        await lab.cockpit.sees("v2w").press("Ctrl-]", "r").misses("● recording").sees("asciinema play")
        (file,) = tmp_path.iterdir()  # noqa: ASYNC240 - one small folder
        header, *events = map(json.loads, file.read_text().splitlines())
        assert (header["version"], header["width"], header["height"]) == (2, 120, 22)
        assert "v2w" in "".join(data for _, code, data in events if code == "o")
        assert file.stat().st_mode & 0o777 == 0o600
        await lab.cockpit.press("Ctrl-]", "l", ":").type(f"record-terminal {file.name}").press("Enter")
        await lab.cockpit.sees("exists and is")
        await lab.cockpit.press(":").type("record-terminal other.cast").press("Enter").sees("Recording to other.cast")
        await lab.cockpit.press(":").type("close-terminal").press("Enter").sees("Recorded other.cast").misses("● rec")
    assert (tmp_path / "other.cast").read_text().startswith('{"version": 2')


async def test_without_a_terminal_its_actions_say_so() -> None:
    async with the_lab() as lab:
        for command in ("close-terminal", "record-terminal", "terminal-full-screen", "record-terminal x"):
            await lab.cockpit.press(":").type(command).press("Enter").sees("No terminal is open.")
        await lab.cockpit.goes_to(3, "done").press("t").sees("a shell opens only")


async def test_without_an_emulator_no_shell_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("pyghostty", "pyte", "cockpit.tui.emulator.ghostty", "cockpit.tui.emulator.pyte_emulator"):
        monkeypatch.setitem(sys.modules, module, None)
    async with the_lab() as lab:
        shells = Shells(lab, SHELL)
        await (
            lab.cockpit.goes_to(2, "broken")
            .press("t")
            .finds(lambda screen: "The terminal pane needs pyghostty or" in screen, NEITHER)
        )
        assert shells.requests == []


async def test_the_slow_emulator_does_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("pyghostty", "cockpit.tui.emulator.ghostty"):
        monkeypatch.setitem(sys.modules, module, None)
    async with a_pane() as (lab, _):
        await lab.cockpit.type("printf '\\033[1mb%s\\033[0m\\n' old; yes").press("Enter").sees("\ny\n")
        await lab.cockpit.press("Ctrl-]", "l", "j").stands_on("done").press("t", "Ctrl-c").sees("^C", "here>")


async def test_a_killed_shell_says_why() -> None:
    async with a_pane() as (lab, shells):
        shells.sessions[0]._process.kill()
        await lab.cockpit.sees("The shell was killed").misses("Ctrl-] menu")
