"""A person at a shell: runs the real `cockpit` command against an engine of their own, in folders of their own."""

from __future__ import annotations

import json
import os
import pwd
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from cockpit.model.job import ENDED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

COMMAND_SECONDS = 60
ROOT = Path(__file__).resolve().parents[2]
NO_ROWS = b'{"rows": []}'


class CockpitUser:
    """One user on this machine. `folder` holds home, state, runtime folder and job files.

    `user`: who it is, with their own groups, where not whoever runs the tests; `python` must be one that they can read.
    `inside`: words before each command, such as those that join a namespace.
    """

    def __init__(
        self, folder: Path, *, python: str = sys.executable, user: str | None = None, inside: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self.work = folder / "work"
        """Where its commands run."""
        self.user = user
        self._python = python
        self._inside = list(inside)
        self.env = {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(folder / "home"),
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "COCKPIT_CLUSTER": "local",
        }
        if python == sys.executable:
            self.env["PYTHONPATH"] = str(ROOT)
        for each in ("home", "run", "state", "config/cockpit-cluster", "work"):
            (folder / each).mkdir(parents=True, exist_ok=True)
        (folder / "run").chmod(0o700)
        if user is not None:
            entry = pwd.getpwnam(user)
            for path in (folder, *folder.rglob("*")):
                os.chown(path, entry.pw_uid, entry.pw_gid)

    def start(self, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """The command, running."""
        return self.start_program(self._python, "-m", "cockpit.cli", *words, **options)

    def start_program(self, *words: str | Path, **options: Any) -> subprocess.Popen[bytes]:
        """Any program, as this user, in their folder of job files."""
        return subprocess.Popen([*self._inside, *self._as_user(), *words], env=self.env, cwd="/", **options)

    def python(self, script: str, *words: str) -> str:
        """What a script prints that this user runs with cockpit's modules at hand."""
        process = self.start_program(
            self._python, "-c", script, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        out, err = process.communicate(timeout=COMMAND_SECONDS)
        assert process.returncode == 0, err.decode()
        return out.decode()

    def _as_user(self) -> list[str | Path]:
        words: list[str | Path] = ["env", "-C", self.work]
        if self.user is not None:
            entry = pwd.getpwnam(self.user)
            words = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups", "--", *words]
        return words

    def run(
        self, *words: str, stdin: bytes = b"", timeout: float = COMMAND_SECONDS
    ) -> subprocess.CompletedProcess[bytes]:
        """The command's exit code, output and errors."""
        process = self.start(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(stdin, timeout=timeout)
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def ok(self, *words: str, stdin: bytes = b"") -> str:
        """Its output; the command must succeed."""
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, f"{words} gave {done.returncode}: {done.stderr.decode()}{done.stdout.decode()}"
        return done.stdout.decode()

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """The rows of its JSON."""
        answer = json.loads(self.ok(*words, "-o", "json"))
        assert answer["version"] == 1
        return list(answer["rows"])

    def row(self, *words: str) -> dict[str, Any]:
        (row,) = self.rows(*words)
        return row

    def write(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        if self.user is not None:
            entry = pwd.getpwnam(self.user)
            for each in (path, *path.parents):
                if each.is_relative_to(self.work):
                    os.chown(each, entry.pw_uid, entry.pw_gid)
        return path

    def job(self, script: str, *, name: str = "job", **fields: Any) -> Path:
        """A job file whose algorithm is this shell script."""
        self.write(f"{name}/algo/t.sh", f"#!/bin/bash\n{script}\n", 0o755)
        spec = {
            "name": name,
            "algorithm": {"path": f"./{name}/algo"},
            "output": f"./{name}/out",
            "command": "/workspace/algorithm/t.sh",
            "specs": [{"cpus": 1, "memory": "512M", "cards": 0}],
            **fields,
        }
        return self.write(f"{name}.json", json.dumps(spec))

    def submit(self, script: str, **fields: Any) -> str:
        """Submit a script; its id."""
        return self.ok("submit", str(self.job(script, **fields))).split()[-1]

    def until(self, job: str, state: str) -> None:
        """Follow the changes until the job is in that state."""
        watching = self.start("jobs", "--watch", "--filter", f"id:{job}", "--columns", "state", stdout=subprocess.PIPE)
        assert watching.stdout is not None
        seen = []
        for line in watching.stdout:
            seen.append((json.loads(line).get("row") or {}).get("state"))
            if seen[-1] == state or seen[-1] in ENDED:
                break
        watching.kill()
        watching.communicate()
        assert seen[-1] == state, self.ok("job", job)

    def wait(self, job: str, timeout: int = 100) -> int:
        return self.run("wait", job, "--timeout", str(timeout), timeout=timeout + COMMAND_SECONDS).returncode

    def looked_at(self, job: str) -> dict[str, Any]:
        """Its row among the jobs, once the scheduler has looked at it."""
        only = ("jobs", "--filter", f"id:{job}")
        eventually(lambda: (self.row(*only)["reason"] or {}).get("type") != "not_evaluated")
        return self.row(*only)

    def configure(self, name: str, text: str) -> None:
        """Write `config.toml` or `cluster.toml`."""
        (self.folder / "config/cockpit-cluster" / name).write_text(text)

    def engine_pid(self) -> int:
        return int(self.row("engine", "status")["pid"])

    def kill_engine(self) -> None:
        os.kill(self.engine_pid(), signal.SIGKILL)

    def holder_pid(self, job: str, attempt: int = 1, rank: int = 0) -> int:
        folder = self.folder / "state/cockpit-cluster/containers" / f"{job}.{attempt}.{rank}"
        return int(json.loads((folder / "shim.json").read_text())["pid"])

    def leave(self) -> None:
        """End every job, every hold and the engine."""
        self.run("engine", "stop", "--jobs", "--holds", "--yes")
        if any(self.folder.glob("state/cockpit-cluster/containers/*")):  # no engine ran: one starts, and ends them
            held = json.loads(self.run("holds", "-o", "json").stdout or NO_ROWS)["rows"]
            self.run("holds", "end", *(str(hold["id"]) for hold in held))
            self.run("engine", "stop", "--jobs", "--holds", "--yes")
        processes: Sequence[int] = [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and str(self.folder).encode() in _environ(entry)
        ]
        for pid in processes:
            if pid != os.getpid():
                with suppress(ProcessLookupError):  # it ended by itself meanwhile
                    os.kill(pid, signal.SIGKILL)


@contextmanager
def a_new_user() -> Iterator[CockpitUser]:
    """Whoever runs the tests, in a folder whose path is short enough for a socket and on a real disk; its engine
    starts with the first command."""
    with TemporaryDirectory(prefix="cockpit-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        user = CockpitUser(Path(folder))
        try:
            yield user
        finally:
            user.leave()


def eventually(holds: Callable[[], object], seconds: float = 100) -> None:
    """Wait until it holds: for what other processes do in their own time. Most of this time is left to them."""
    deadline = time.monotonic() + seconds
    asked = time.monotonic()
    while not holds():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(max(0.02, 2 * (time.monotonic() - asked)))
        asked = time.monotonic()


def _environ(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
    except OSError:
        return b""
