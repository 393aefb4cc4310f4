"""An OpenSSH server on loopback, as the way to a cluster from elsewhere."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.ports import free_ports
from tests.real.slurm.real_cluster import ADA


class LoginNode:
    """An sshd on loopback that lets one key in."""

    def __init__(self, folder: Path, env: dict[str, str], pam: str = "") -> None:
        """`pam`: the service whose rules let others in, who have no key here."""
        self.folder, self._pam = folder, pam
        (self.port,) = free_ports(1)
        for name in ("host", "own"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
        shutil.copy(folder / "own.pub", folder / "authorized")
        lines = [
            f"Port {self.port}",
            "ListenAddress 127.0.0.1",
            f"HostKey {folder}/host",
            f"PidFile {folder}/sshd.pid",
            f"AuthorizedKeysFile {folder}/authorized",
            "PasswordAuthentication no",
            "StrictModes no",
            f"UsePAM {'yes' if pam else 'no'}",
            f"KbdInteractiveAuthentication {'yes' if pam else 'no'}",
            f"SetEnv SLURM_CONF={env['SLURM_CONF']} PATH={env['PATH']}",
        ]
        (folder / "sshd_config").write_text("\n".join([*lines, ""]))
        self.process = self._start()

    @property
    def address(self) -> str:
        return f"ssh://{ADA}@127.0.0.1:{self.port}"

    @property
    def fingerprint(self) -> str:
        """Of its key, as `ssh-keygen -l` shows it."""
        words = ["ssh-keygen", "-lf", str(self.folder / "host.pub")]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[1]

    @property
    def accepted(self) -> int:
        """How often somebody came in."""
        return (self.folder / "sshd.log").read_text().count("Accepted publickey")

    def wait_for_login(self, count: int) -> None:
        """Wait until the server has logged this many logins: it lets a client in first and writes the line then."""
        deadline = time.monotonic() + 60
        while self.accepted < count:
            assert time.monotonic() < deadline, f"{self.accepted} logins in the server's log, not {count}"
            time.sleep(0.01)

    def known_by(self, home: Path, key: str) -> None:
        """Make it known in this home, with this key."""
        (home / ".ssh").mkdir(mode=0o700)
        (home / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {key}\n")
        (home / ".ssh" / "config").write_text(f"Host 127.0.0.1\n  IdentityFile {self.folder}/own\n")

    def restart(self) -> None:
        self.stop()
        self.process = self._start()

    def stop(self) -> None:
        """With every connection that it has."""
        children = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False)
        self.process.terminate()
        for child in children.stdout.split():
            subprocess.run(["kill", child], check=False)
        self.process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        Path("/run/sshd").mkdir(exist_ok=True)
        program = shutil.which("sshd") or "/usr/sbin/sshd"
        if self._pam and not (self.folder / self._pam).exists():
            (self.folder / self._pam).symlink_to(program)
        program = str(self.folder / self._pam) if self._pam else program
        command = [program, "-D", "-e", "-f", str(self.folder / "sshd_config")]
        process = subprocess.Popen(command, stderr=(self.folder / "sshd.log").open("ab"))
        deadline = time.monotonic() + 60
        while True:
            with socket.socket() as asking:
                if asking.connect_ex(("127.0.0.1", self.port)) == 0:
                    return process
            assert time.monotonic() < deadline, (self.folder / "sshd.log").read_text()
            time.sleep(0.05)
