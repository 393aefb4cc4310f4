"""The cockpit in a real terminal: keys, mouse, size, handing it over to a container's shell and getting it back."""

from __future__ import annotations

import base64
import os
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.tui.widgets.table import CURSOR_SIGN
from tests.e2e.cockpit_user import CockpitUser, a_new_user, eventually
from tests.programs import needs_tmux
from tests.tui.lab import FIXTURE
from tests.tui.tmux import PROMPT, Tmux

pytestmark = [pytest.mark.real, needs_tmux]

COCKPIT = f"{shlex.quote(sys.executable)} -m cockpit.cli"
UNTIL_SMALL = 'until [ "$(stty size)" = "24 80" ]; do sleep 0.1; done; echo now $(stty size)'
LEFT_BEHIND = r"printf '\033[5;20r\033[4h\033[24;1H'; echo left $((40 + 2))"
"""As a program does that was killed: only some lines scroll, and letters push others away."""
DEMO = f"{COCKPIT} demo --seed 1"


@pytest.fixture
def user() -> Iterator[CockpitUser]:
    with a_new_user() as somebody:
        yield somebody


@pytest.fixture
def terminal(user: CockpitUser) -> Iterator[Tmux]:
    with tempfile.TemporaryDirectory(prefix="tmux-", dir="/var/tmp") as folder:
        opened = Tmux(Path(folder), user.env)
        yield opened
        opened.close()


def stands_on(terminal: Tmux, text: str) -> None:
    terminal.until(
        lambda screen: any(line.startswith(CURSOR_SIGN) and text in line for line in screen.splitlines()),
        f"stands on {text}",
    )


def name_in(terminal: Tmux, line: int) -> str:
    """Of the job in this line of the screen."""
    return terminal.screen().splitlines()[line].split()[1]


def is_given_back(terminal: Tmux) -> None:
    flags = {name: terminal.flag(name) for name in ("alternate_on", "mouse_any_flag", "cursor_flag")}
    assert flags == {"alternate_on": "0", "mouse_any_flag": "0", "cursor_flag": "1"}


@pytest.mark.req("UI-20", "UI-26")
def test_keys_and_mouse_work_and_the_end_restores_the_terminal(terminal: Tmux) -> None:
    terminal.type(DEMO).press("Enter").sees("DEMO", "running", "? help").press("F6").sees("DEMO paused")
    third = name_in(terminal, 6)  # nothing comes or goes while its time stands still
    terminal.press("j", "j", "Down", "k")
    stands_on(terminal, third)
    terminal.press("Enter").sees("Spec").press("Escape").sees("? help")
    stands_on(terminal, third)
    target = name_in(terminal, 20)
    terminal.click(20, 20)
    stands_on(terminal, target)
    first = terminal.screen().splitlines()[5]
    terminal.wheel(20, 20).until(lambda screen: screen.splitlines()[5] != first, "the wheel scrolls")
    terminal.press("q").sees(PROMPT).misses("DEMO")
    is_given_back(terminal)
    terminal.type("echo still $((40 + 2)) here").press("Enter").sees("still 42 here")


@pytest.mark.req("UI-21")
def test_text_typed_ahead_goes_into_the_filter(terminal: Tmux) -> None:
    terminal.type(DEMO).press("Enter").sees("DEMO", "running", "? help")
    terminal.type("/state:queued").press("Enter").sees("/ state:queued").misses("● running  ", "Stop job")
    terminal.press("Escape").sees("● running  ").press("C-c").sees(PROMPT)


@pytest.mark.req("UI-24")
def test_the_window_may_become_small_and_large(terminal: Tmux) -> None:
    terminal.type(DEMO).press("Enter").sees("DEMO", "? help", "USER")
    terminal.resize(80, 24).misses("USER").sees("STATE", "? help")
    assert len(terminal.screen().splitlines()) == 24
    terminal.resize(200, 60).sees("USER", "? help").until(lambda screen: "? help" in screen.splitlines()[59], "60 rows")
    terminal.press("q").sees(PROMPT)


@pytest.mark.req("UI-26")
def test_copying_goes_through_the_terminal(terminal: Tmux) -> None:
    terminal.type(DEMO).press("Enter").sees("DEMO", "? help").type(":1").press("Enter").sees("▌   1 ")
    terminal.press("c").sees("copied 1")
    assert b"\x1b]52;c;" + base64.b64encode(b"1") in terminal.raw()
    terminal.press("q").sees(PROMPT)


@pytest.mark.req("UI-12", "JT-40")
def test_the_terminal_is_the_containers_until_its_shell_ends(terminal: Tmux, user: CockpitUser) -> None:
    job = user.submit("echo note > /etc/note; exit 3", name="held-one", terminal=True)
    assert user.wait(job) == 3
    terminal.type(f"{COCKPIT} -c local").press("Enter").sees("held-one", "exit 3").press("s")
    terminal.sees("/workspace/algorithm").misses("? help")
    terminal.type("cat /etc/note; stty size").press("Enter").sees("note\n", "40 120")
    terminal.resize(80, 24).type(UNTIL_SMALL).press("Enter").sees("now 24 80").resize(120, 40)
    if shutil.which("vim"):
        terminal.type("vim -u NONE seen.txt").press("Enter").sees("~")
        terminal.press("i").type("by vim").sees("by vim").press("Escape")
        terminal.type(":wq").press("Enter").misses("~").type("cat seen.txt").press("Enter").sees("by vim\n")
    terminal.type(LEFT_BEHIND).press("Enter").sees("left 42")
    terminal.type("exit").press("Enter").sees("held-one", "? help").misses("by vim")
    stands_on(terminal, "held-one")
    assert terminal.screen().startswith(" cockpit  ")
    terminal.press("s").sees("/workspace/algorithm").misses("? help")
    user.ok("holds", "end", job, "--yes")
    terminal.sees("The shell was killed: its job or its hold has ended", "? help").press("Escape")
    terminal.press("?").sees("Esc closes").press("Escape").misses("Esc closes").press("q").sees(PROMPT)


@pytest.mark.req("UI-12", "JT-40")
def test_a_held_container_of_the_engine_opens_in_the_pane(terminal: Tmux, user: CockpitUser) -> None:
    job = user.submit("echo note > /etc/note; exit 3", name="held-one", terminal=True)
    assert user.wait(job) == 3
    terminal.type(f"{COCKPIT} -c local").press("Enter").sees("held-one", "exit 3").press("t")
    terminal.sees("Ctrl-] menu", "/workspace/algorithm", "held-one", "? help")
    terminal.type("cat /etc/note; stty size; tty").press("Enter").sees("note\n", "22 120", "/dev/")
    terminal.type("sleep 1000").press("Enter", "C-c").type("echo left $((40 + 2))").press("Enter").sees("left 42")
    user.ok("holds", "end", job, "--yes")
    terminal.sees("The shell was killed: its job or its hold has ended", "? help").misses("Ctrl-] menu")
    terminal.press("q").sees(PROMPT)


SIDE_EFFECTS = r"printf '\033]52;c;c2VjcmV0\a\033]2;stolen\a\033]4;1;#123456\a\033[?1003h'; echo done $((40 + 2))"


@pytest.mark.req("UI-12", "TR-05")
def test_the_panes_shell_goes_to_the_whole_screen_and_back(terminal: Tmux) -> None:
    terminal.type(DEMO).press("Enter").sees("DEMO", "? help").press("t").sees("Ctrl-] menu", "/workspace/algorithm")
    terminal.type(SIDE_EFFECTS).press("Enter").sees("done 42").type("stty size; printf '\\033[?1003l'").press("Enter")
    terminal.sees("22 120")
    title = terminal.flag("pane_title")
    raw = terminal.raw()
    assert b"c2VjcmV0" not in raw.replace(b"c2VjcmV0\\a", b"")  # only the command line as it was typed
    assert b"\x1b]52;" not in raw
    assert b"\x1b]4;" not in raw
    assert "stolen" not in title
    terminal.press("C-]", "f").sees("Ctrl-] returns to the cockpit.", "done 42").misses("? help")
    terminal.type("stty size").press("Enter").sees("40 120").press("C-]").sees("? help", "Ctrl-] menu", "40 120")
    terminal.type("clear; stty size").press("Enter").misses("40 120").sees("22 120")
    if shutil.which("vim"):
        terminal.type("vim -u NONE seen.txt").press("Enter").sees("~").press("i").type("by vim").sees("by vim")
        terminal.press("C-]", "f").sees("by vim").misses("? help").press("C-]").sees("? help", "by vim")
        terminal.press("Escape").type(":wq").sees("\n:wq").press("Enter").misses("~").type("cat seen.txt").press(
            "Enter"
        ).sees("by vim\n")
    terminal.press("C-]", "f").sees("Ctrl-] returns").misses("? help").type("exit 3").press("Enter")
    terminal.sees("? help", "The shell ended with exit code 3").misses("Ctrl-] menu")
    terminal.press("?").sees("Esc closes").press("Escape").misses("Esc closes").press("q").sees(PROMPT)
    is_given_back(terminal)


@pytest.mark.req("UI-50")
def test_the_demos_terminal_is_a_real_shell_in_a_sandbox(terminal: Tmux) -> None:
    terminal.type(f"{COCKPIT} demo {shlex.quote(FIXTURE)}").press("Enter").sees("No jobs yet")
    terminal.press("q").sees(PROMPT)
    terminal.type(DEMO).press("Enter").sees("DEMO", "? help").press("s").sees("/workspace/algorithm").misses("? help")
    terminal.type("exit").press("Enter").sees("? help", "running").press("q").sees(PROMPT)


def cockpit_in(terminal: Tmux) -> Path:
    """Of the process that the window's shell has started, what /proc says."""
    shell = terminal.flag("pane_pid")
    (child,) = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    return Path("/proc") / child


@pytest.mark.req("UI-50")
@pytest.mark.parametrize("where", ["list", "shell"])
def test_a_dropped_connection_ends_the_demo_in_every_view(user: CockpitUser, where: str) -> None:
    temporary = user.work / "tmp"
    temporary.mkdir()
    terminal = Tmux(user.work, {**user.env, "TMPDIR": str(temporary)})
    terminal.type(f"exec bash -c {shlex.quote(f'{DEMO}; true')}").press("Enter").sees("DEMO", "running", "? help")
    own = list(temporary.glob("cockpit-demo-*"))
    if where == "shell":
        terminal.press("s").sees("exit or Ctrl-D returns to the cockpit.")
    cockpit = cockpit_in(terminal)
    terminal.close()  # whoever is before it and what runs in it are one group, and get SIGHUP and SIGCONT
    eventually(lambda: not cockpit.exists(), 100)
    assert len(own) == 1
    assert not own[0].exists()


@pytest.mark.req("UI-50")
def test_sigterm_restores_the_terminal(terminal: Tmux) -> None:
    terminal.type(DEMO).press("Enter").sees("DEMO", "running", "? help")
    os.kill(int(cockpit_in(terminal).name), signal.SIGTERM)
    terminal.sees(PROMPT).misses("DEMO")
    is_given_back(terminal)


PLANTED = """
import sys
from cockpit import cli
from cockpit.tui.action_dispatcher import ActionDispatcher

def fail(dispatcher, action, run=None):
    secret = "geh" + "eim"
    raise RuntimeError(f"planted, of {len(secret)} letters")

ActionDispatcher.perform = fail
sys.exit(cli.main(["demo", "--seed", "1"]))
"""


KILLED_WHILE_DRAWING = """
import os, signal, sys
from cockpit import cli
from cockpit.tui.screens.main import MainScreen

async def be_killed(screen, event):
    if event.size.height == 30:
        os.kill(os.getpid(), signal.SIGTERM)

MainScreen.on_resize = be_killed
sys.exit(cli.main([]))
"""


@pytest.mark.req("TR-10", "UI-50")
def test_sigterm_while_the_screen_is_drawn_leaves_no_traceback(terminal: Tmux, tmp_path: Path) -> None:
    program = tmp_path / "killed.py"
    program.write_text(KILLED_WHILE_DRAWING)
    terminal.type(f"{shlex.quote(sys.executable)} {program}; echo code=$?").press("Enter").sees("? help")
    terminal.resize(100, 30).sees("code=143").misses("Traceback", "SystemExit")


@pytest.mark.req("TR-10", "UI-29")
def test_a_defect_ends_it_with_its_own_exit_code_and_shows_no_values(terminal: Tmux, tmp_path: Path) -> None:
    program = tmp_path / "planted.py"
    program.write_text(PLANTED)
    terminal.type(f"{shlex.quote(sys.executable)} {program}; echo exit=$?").press("Enter")
    terminal.sees("DEMO", "? help").press("?").sees("RuntimeError: planted, of 6 letters", "exit=70")
    assert "geheim" not in terminal.screen()
    is_given_back(terminal)


@pytest.mark.req("UI-26")
def test_two_clicks_beside_the_palette_leave_the_cockpit_as_it_was(terminal: Tmux) -> None:
    terminal.type(DEMO).press("Enter").sees("1 Jobs").press("C-p").sees("the name of an action")
    terminal.click(2, 2).click(2, 2).misses("the name of an action").sees("1 Jobs")
    terminal.press("q").sees(PROMPT)
