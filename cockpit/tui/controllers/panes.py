"""Controllers of the terminal pane: a shell in a job's container beside the list."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Final

from cockpit.errors import CockpitError
from cockpit.model.asking import ShellRequest
from cockpit.present.entering import KILLED, WAS_KILLED, entry_lines
from cockpit.present.folding import id_text
from cockpit.present.safe import safe
from cockpit.runtime.clock import NANOS_PER_MILLI, wall_nanos
from cockpit.tui.controllers.shells import which_replica
from cockpit.tui.widgets.terminal import MENU_BYTE, MENU_KEY_NAME

if TYPE_CHECKING:
    from cockpit.tui.cockpit import Cockpit
    from cockpit.tui.emulator.base import Modes
    from cockpit.tui.shell_link import ShellLink

RECORD_COMMAND: Final = "record-terminal"
TERM: Final = "xterm-256color"
"""What the emulators are: every machine knows this name."""
LEAVING: Final = (MENU_BYTE, b"\x1b[93;5u")
"""What `MENU_KEY` sends on a terminal, the second where a program has turned on the keyboard protocol of kitty."""
MODES_OFF: Final = "\x1b[?1l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?25h\x1b[0m"


async def open_terminal(app: Cockpit) -> None:
    """Open a shell in a container of the job in the pane; where one is open there, give it the keys."""
    from cockpit.tui.emulator.choice import new_emulator

    screen = app.main_screen
    if screen.terminal_link is not None:
        app.close_pages()
        screen.focus_terminal()
        return
    (row, *_) = app.selection.chosen_rows()
    detail = await app.backend.job(row.id)
    rank = await which_replica(app, detail)
    if rank is None:
        return
    columns, rows = screen.terminal_size()
    # Before the shell is opened: where no emulator is installed, none may be left behind.
    emulator = new_emulator(columns, rows)
    request = ShellRequest(job=row.id, rank=rank, terminal=True, rows=rows, columns=columns, term=TERM)
    try:
        session = await app.backend.open_shell(request)
    except BaseException:
        emulator.close()
        raise
    notice = "\n".join(entry_lines(detail, rank, session.notice, app.state.context()))
    name = f"{id_text(row)} {safe(row.name)}" + (f" · replica {rank}" if rank else "")
    app.close_pages()
    screen.open_terminal(name, session, emulator, notice)


async def close_terminal(app: Cockpit) -> None:
    """Hang up the shell in the pane, and close the pane."""
    recording = None if app.main_screen.terminal_link is None else app.main_screen.terminal_link.recording
    code = await app.main_screen.close_terminal()
    if recording is not None:
        app.notify(recording.failure or f"Recorded {safe(recording.path)}.")
    if code == KILLED:
        app.notify(WAS_KILLED, severity="warning")
    elif code:
        app.notify(f"The shell ended with exit code {code}.")


def full_screen(app: Cockpit) -> None:
    """Give the whole terminal to the shell in the pane until it ends or the user leaves it."""
    from cockpit.headless.terminal import relay_until_left

    app.check_terminal()
    link = _open_link(app)
    link.pause()
    # The event loop waits while the shell has the terminal: nothing may be drawn, and no key be read by both.
    with app.suspend():
        print(_beginning(link), end="", flush=True)  # noqa: T201 - the screen is the shell's now
        try:
            relay_until_left(link.session, 0, 1, link, LEAVING)
        finally:
            print(MODES_OFF, end="", flush=True)  # noqa: T201 - as above
    link.start()
    app.main_screen.fit_terminal()
    app.refresh()


def _beginning(link: ShellLink) -> str:
    """Return what brings a terminal to where the shell's is: its text and the modes of its program."""
    link.flush()
    emulator = link.emulator
    lines = ["".join(segment.text for segment in emulator.line(row)).rstrip() for row in range(emulator.rows)]
    cursor = emulator.cursor()
    # The rest is drawn by the program, which hears of the new size.
    shown = lines[: cursor.row + 1] if cursor is not None else lines
    last = shown.pop() if shown and cursor is not None else ""
    start = last[: cursor.column].ljust(cursor.column) if cursor is not None else ""
    hint = f"{MENU_KEY_NAME} returns to the cockpit."
    text = "\r\n".join([hint, *shown, start])
    return f"\x1b[2J\x1b[H{text}{_modes_on(emulator.modes())}"


def _modes_on(modes: Modes) -> str:
    numbers = (
        (1, modes.application_cursor),
        (1000, modes.mouse_clicks),
        (1002, modes.mouse_drags),
        (1003, modes.mouse_moves),
        (1006, modes.sgr_mouse),
        (2004, modes.bracketed_paste),
    )
    return "".join(f"\x1b[?{number}h" for number, is_on in numbers if is_on)


def record(app: Cockpit) -> None:
    """Record the shell in the pane to a file in this folder, or end the recording."""
    link = _open_link(app)
    if link.recording is None:
        moment = datetime.fromtimestamp(wall_nanos() // NANOS_PER_MILLI / 1000).astimezone()
        name = "".join(each if each.isalnum() else "-" for each in app.main_screen.terminal_title.split(" ")[0])
        record_to(app, f"cockpit-{name}-{moment:%Y%m%d-%H%M%S}.cast")
        return
    recording = link.stop_recording()
    app.main_screen.draw_terminal()
    if recording is not None:
        app.notify(recording.failure or f"Recorded {safe(recording.path)}: asciinema play plays it.")


def record_to(app: Cockpit, file: str) -> None:
    """Record the shell in the pane to this file. Raises `CockpitError`, also where the file exists."""
    from cockpit.headless.recording import Recording

    # In a browser the folder would be one of the machine that serves it.
    if app.is_web:
        raise CockpitError("Recording is not possible in a browser: the file would be on the server.")
    link = _open_link(app)
    if link.recording is not None:
        raise CockpitError(f"The terminal is being recorded to {safe(link.recording.path)}: end that first.")
    size = link.emulator.columns, link.emulator.rows
    title = f"cockpit shell {app.main_screen.terminal_title}"
    link.recording = Recording(os.path.expanduser(file), *size, title=title, term=TERM)  # noqa: PTH111 - raises nothing
    app.main_screen.draw_terminal()
    app.notify(f"Recording to {safe(link.recording.path)}.")


def _open_link(app: Cockpit) -> ShellLink:
    link = app.main_screen.terminal_link
    if link is None:
        raise CockpitError("No terminal is open.")
    return link
