"""The cockpit in a real terminal: a tmux server of our own, its keys, its mouse, its window, and every byte it gets."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

SECONDS = 100
PROMPT = "outside>"
SIZES = ("COLUMNS", "LINES")
"""A size in the environment is what a program believes, whatever its window does; parallel runs of tests set one."""


class Tmux:
    """One window with a shell in it."""

    def __init__(self, folder: Path, env: Mapping[str, str], *, columns: int = 120, rows: int = 40) -> None:
        self._socket = folder / "tmux"
        self._raw = folder / "raw"
        self._raw.touch()
        size = ("-x", str(columns), "-y", str(rows))
        start = folder / "bashrc"
        start.write_text(f"PS1='{PROMPT} '\n")
        inside = {**env, "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        variables = [word for name, value in inside.items() for word in ("-e", f"{name}={value}")]
        self._run(
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            *size,
            *variables,
            f"exec bash --rcfile {start}",
            env={name: value for name, value in os.environ.items() if name not in SIZES} | inside,
        )
        for option, value in (("escape-time", "0"), ("default-terminal", "tmux-256color"), ("window-size", "manual")):
            self._run("set-option", "-g", option, value)
        self._run("pipe-pane", f"cat >> {self._raw}")
        self.sees(PROMPT)

    def close(self) -> None:
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], check=False, capture_output=True)

    def type(self, text: str) -> Tmux:
        """All letters at once, as from a clipboard."""
        self._run("send-keys", "-l", text)
        return self

    def press(self, *keys: str) -> Tmux:
        """In tmux's words: `j`, `Enter`, `Escape`, `C-c`, `F1`."""
        for key in keys:
            self._run("send-keys", key)
        return self

    def send(self, data: bytes) -> Tmux:
        """What a terminal would send: mouse reports."""
        self._run("send-keys", "-H", *(f"{byte:02x}" for byte in data))
        return self

    def click(self, x: int, y: int) -> Tmux:
        """Column and row from 0."""
        return self.send(b"\x1b[<0;%d;%dM\x1b[<0;%d;%dm" % (x + 1, y + 1, x + 1, y + 1))

    def wheel(self, x: int, y: int, *, down: bool = True) -> Tmux:
        return self.send(b"\x1b[<%d;%d;%dM" % (65 if down else 64, x + 1, y + 1))

    def resize(self, columns: int, rows: int) -> Tmux:
        self._run("resize-window", "-x", str(columns), "-y", str(rows))
        return self

    def sees(self, *texts: str) -> Tmux:
        return self.until(lambda screen: all(text in screen for text in texts), f"sees {texts}")

    def misses(self, *texts: str) -> Tmux:
        return self.until(lambda screen: not any(text in screen for text in texts), f"misses {texts}")

    def until(self, holds: Callable[[str], Any], what: str) -> Tmux:
        deadline = time.monotonic() + SECONDS
        while not holds(screen := self.screen()):
            assert time.monotonic() < deadline, f"{what}: never, on\n{screen}"
            time.sleep(0.03)
        return self

    def screen(self) -> str:
        return self._run("capture-pane", "-p")

    def flag(self, name: str) -> str:
        """What tmux knows of the pane: `alternate_on`, `mouse_any_flag`, `cursor_flag`, `pane_title`."""
        return self._run("display-message", "-p", f"#{{{name}}}").strip()

    def raw(self) -> bytes:
        """Every byte that came so far."""
        return self._raw.read_bytes()

    def _run(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        command = ["tmux", "-S", str(self._socket), *words]
        done = subprocess.run(command, capture_output=True, env=env, check=False)
        assert done.returncode == 0, f"{words}: {done.stderr.decode()}"
        return done.stdout.decode()
