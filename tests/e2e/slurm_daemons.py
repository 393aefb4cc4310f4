"""Debian's slurmctld with what it needs (munge, a database, slurmdbd), all in one folder, on ports of its own."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

PROGRAMS = (
    "munged",
    "mariadbd",
    "mariadb-install-db",
    "my_print_defaults",
    "slurmdbd",
    "slurmctld",
    "scontrol",
    "sacctmgr",
)
PATIENCE_SECONDS = 100


def missing() -> list[str]:
    """What this machine lacks for a cluster: programs, and an address for its own name, at which the daemons listen."""
    return [*(name for name in PROGRAMS if shutil.which(name) is None), *_without_address(socket.gethostname())]


def _without_address(host: str) -> list[str]:
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        return [f"a line for {host} in /etc/hosts"]
    return []


class SlurmDaemons:
    """Started by `serve`, ended by `stop`; nothing is left but the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._database_port, self._dbd_port, self._port = free_ports(3)
        for name in ("state", "mysql"):
            (folder / name).mkdir()
        folder.chmod(0o755)

    def serve(self, conf: str, *, qos: Sequence[str] = (), accounts: str = "") -> None:
        """Start slurmctld with this slurm.conf; only what is a site's own is filled in: folders, ports, addresses.
        `qos`: those that slurmdbd has; `accounts`: lines for sacctmgr."""
        self._start_munge()
        self._start_database()
        self._write_confs(conf)
        self._start("slurmdbd", "-D", until=lambda: self.ask("sacctmgr", "-n", "list", "cluster") is not None)
        assert self.ask("sacctmgr", "-i", "-Q", "add", "cluster", "cockpit") is not None
        for name in qos:
            assert self.ask("sacctmgr", "-i", "-Q", "add", "qos", name) is not None
        if accounts:
            self.keep_accounts(accounts)
        self._start("slurmctld", "-D", "-i", until=lambda: "UP" in (self.ask("scontrol", "ping") or ""))

    def keep_accounts(self, lines: str) -> None:
        """Have sacctmgr do all of this at once."""
        words = ("sacctmgr", "-i", "-Q")
        done = subprocess.run(words, input=lines.encode(), env=self._env, capture_output=True, timeout=100, check=False)
        assert b"error" not in done.stderr.lower(), done.stderr

    def ask(self, *words: str) -> str | None:
        """What the program prints; None where it fails."""
        try:
            done = subprocess.run(words, env=self._env, capture_output=True, timeout=60, check=False)
        except subprocess.TimeoutExpired:
            return None
        return done.stdout.decode() if done.returncode == 0 else None

    def shown(self, *words: str) -> dict[str, str]:
        """`scontrol show …` as values by name."""
        text = self.ask("scontrol", "show", *words)
        assert text is not None
        found: dict[str, str] = {}
        for line in text.splitlines():
            pairs = [line.split("=", 1)] if " = " in line else [word.split("=", 1) for word in line.split()]
            found |= {pair[0].strip(): pair[1].strip() for pair in pairs if len(pair) == 2}
        return found

    def lives(self, program: str) -> bool:
        """One that was started still runs."""
        return any(process.args[0] == program and process.poll() is None for process in self._processes)

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(60)
            process.kill()
            process.wait()

    @property
    def _env(self) -> dict[str, str]:
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C"}

    def _start(self, *words: str, until: Callable[[], object], name: str = "") -> None:
        said_in = self.folder / f"{name or words[0]}.log"
        log = said_in.open("wb")
        process = subprocess.Popen(words, env=self._env, cwd=self.folder, stdout=log, stderr=log)
        self._processes.append(process)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not until():
            said = said_in.read_text(errors="replace")[-2000:]
            assert process.poll() is None, f"{words[0]} ended: {said}"
            assert time.monotonic() < deadline, f"{words[0]} did not come up: {said}"
            time.sleep(0.1)

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(bytes(range(128)))
        key.chmod(0o400)
        names = {"key-file": key, "socket": self._munge, "pid-file": self.folder / "munged.pid"}
        options = [f"--{name}={path}" for name, path in names.items()]
        logs = [f"--log-file={self.folder / 'munge.log'}", f"--seed-file={self.folder / 'munge.seed'}"]
        self._start("munged", "--foreground", "--force", *options, *logs, until=self._munge.exists)

    def _start_database(self) -> None:
        folder, where = self.folder / "mysql", self.folder / "mysql.sock"
        own = ["--no-defaults", "--user=root", f"--datadir={folder}"]
        install = ["mariadb-install-db", *own, "--auth-root-authentication-method=normal", "--skip-test-db"]
        subprocess.run(install, check=True, capture_output=True, timeout=120)
        server = ["mariadbd", *own, f"--socket={where}", f"--pid-file={self.folder / 'mysql.pid'}"]
        setting_up = "create database slurm_acct_db; create user 'slurm'@'127.0.0.1' identified by 'pw'; "
        setting_up += "grant all on slurm_acct_db.* to 'slurm'@'127.0.0.1';"
        (self.folder / "setup.sql").write_text(setting_up.replace("; ", ";\n"))
        options = ["--bind-address=127.0.0.1", f"--port={self._database_port}", "--skip-name-resolve=0"]
        once = [f"--init-file={self.folder / 'setup.sql'}", "--innodb-buffer-pool-size=64M"]
        self._start(*server, *options, *once, until=lambda: _answers(self._database_port))

    def _write_confs(self, conf: str) -> None:
        dbd = self.folder / "slurmdbd.conf"
        dbd.write_text(
            f"AuthType=auth/munge\nAuthInfo=socket={self._munge}\nDbdHost=localhost\nDbdAddr=127.0.0.1\n"
            f"DbdPort={self._dbd_port}\nSlurmUser=root\nPidFile={self.folder / 'slurmdbd.pid'}\n"
            f"StorageType=accounting_storage/mysql\nStorageHost=127.0.0.1\nStoragePort={self._database_port}\n"
            "StorageUser=slurm\nStoragePass=pw\nStorageLoc=slurm_acct_db\n"
            + "".join(f"{line}\n" for line in self.tokens())
        )
        dbd.chmod(0o600)
        kept = [_filled_in(line) for line in conf.splitlines() if not line.startswith("StateSaveLocation=")]
        own = [
            f"StateSaveLocation={self.folder / 'state'}",
            f"SlurmctldPort={self._port}",
            f"SlurmctldPidFile={self.folder / 'slurmctld.pid'}",
            "SlurmUser=root",
            f"AuthInfo=socket={self._munge}",
            "AccountingStorageHost=localhost",
            f"AccountingStoragePass={self._munge}",
            f"AccountingStoragePort={self._dbd_port}",
            *self.tokens(),
        ]
        (self.folder / "slurm.conf").write_text("\n".join([*kept, *own, ""]))

    def tokens(self) -> list[str]:
        """Lines for both daemons: who else but munge may say who somebody is."""
        return []

    @property
    def _munge(self) -> Path:
        return self.folder / "munge.sock"


def _filled_in(line: str) -> str:
    """What a site says of its nodes: here none of them is a host that can be asked for its address."""
    return line.replace(" CPUs=", " NodeAddr=127.0.0.1 CPUs=", 1) if line.startswith("NodeName=") else line


def _answers(port: int) -> bool:
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0
