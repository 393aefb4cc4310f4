"""Calls podman and reads its output, for containers of images that podman has.

podman makes the container's file system; cockpit starts the programs in it, see `maker`. podman's own program there
waits for ever, so that podman regards the container as used, and no user's `podman prune` removes it.
"""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from cockpit.runtime.containers.shim.attempt import PlanDict

PROGRAM = "podman"
LABEL = "cockpit-cluster.job"
_RUNTIME = "runc"
"""Used where it is there; else whichever podman chooses."""
_WAITS = ("/bin/sh", "-c", "read -r never")
"""The command of a container that does nothing: it waits on a standard input that podman keeps open."""
_KEPT = "localhost/cockpit-kept"
_SECONDS = 120
"""Time limit of one command of podman."""
_COMMIT_SECONDS = 1800
"""Time limit of a commit, which copies everything that the job has written."""
_LIMITS = (("nofile", resource.RLIMIT_NOFILE, 1024), ("nproc", resource.RLIMIT_NPROC, 32_768))
"""The limits of podman's own program. Without them podman asks for more than it has where it runs in a container."""


class PodmanError(Exception):
    """podman failed; the text is its last message."""


class Layout:
    """The mounts of a container beside its image."""

    def __init__(
        self, binds: Sequence[tuple[str, str, bool]], masked: Sequence[str] = (), devices: Sequence[str] = ()
    ) -> None:
        self.binds = binds
        """(source, target, writable)."""
        self.masked = masked
        """Folders shown empty."""
        self.devices = devices


class Container:
    """The container of one attempt, under a name that is unique on the machine."""

    def __init__(self, plan: PlanDict) -> None:
        self._plan = plan
        self.name = f"cockpit-{plan['cgroup']}"
        self.kept_image = f"{_KEPT}:{plan['cgroup']}"

    def run(self, image: str, layout: Layout, holder: int, pidfile: str) -> int:
        """Make and start the container in the namespaces of the process `holder`.

        Returns the pid of podman's own program in it, which podman writes into `pidfile`. Raises PodmanError, or
        OSError if there is no such file."""
        try:
            output_of(*arguments(self._plan, self.name, image, layout, holder, pidfile))
            output_of("start", self.name)
        except PodmanError as error:
            raise PodmanError(f"{error}; with podman_containers = false cockpit makes it itself") from None
        with open(pidfile, encoding="ascii") as stream:
            return int(stream.read())

    def commit(self) -> None:
        """Make an image of the container's present content, replacing an earlier one; without the container the earlier
        image stays. Raises PodmanError."""
        # without the container: an earlier try has committed and removed it
        if _run("container", "exists", self.name).returncode == 0:
            output_of("commit", "--quiet", "--pause=false", self.name, self.kept_image, seconds=_COMMIT_SECONDS)
            self.remove()

    def remove(self) -> None:
        """Remove the container; it may be gone already. Raises PodmanError."""
        output_of("rm", "--force", "--ignore", "--time", "0", self.name)

    def forget_kept(self) -> None:
        """Remove the image of the held container, if there is one. Raises PodmanError."""
        if _run("image", "exists", self.kept_image).returncode == 0:
            output_of("rmi", "--force", self.kept_image)


def arguments(plan: PlanDict, name: str, image: str, layout: Layout, holder: int, pidfile: str) -> list[str]:
    """Return the arguments of `podman create`. The namespaces are the holder's; podman's own program in the container
    has no rights."""
    network = f"ns:/proc/{holder}/ns/net" if plan.get("network") else "host"
    return [
        *("create", "--name", name, "--label", f"{LABEL}={plan['cgroup']}", "--pull", "never"),
        *("--interactive", "--pidfile", pidfile),
        *("--pid", f"ns:/proc/{holder}/ns/pid", "--ipc", f"ns:/proc/{holder}/ns/ipc", "--network", network),
        *("--hostname", plan["hostname"], *_each("--add-host", _hosts(plan))),
        *("--user", f"{plan['uid']}:{plan['gid']}", "--passwd-entry", _user(plan)),
        *("--cap-drop", "all", "--security-opt", "no-new-privileges", *_each("--ulimit", _limits())),
        # No volumes: podman would make one for each VOLUME of the image, and leave it behind.
        *("--image-volume", "ignore", "--workdir", "/", "--log-driver", "none"),
        *("--shm-size", f"{plan['memory_mib']}m", *_each("--device", layout.devices)),
        *_each("--mount", _mounts(layout)),
        *("--entrypoint", json.dumps(_WAITS), image),
    ]


def output_of(*words: str, seconds: int = _SECONDS) -> str:
    """Return podman's output. Raises PodmanError if it fails."""
    done = _run(*words, seconds=seconds)
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise PodmanError(f"podman {words[0]}: {lines[-1].removeprefix('Error: ') if lines else 'no message'}")
    return done.stdout.decode(errors="replace").strip()


def _run(*words: str, seconds: int = _SECONDS) -> subprocess.CompletedProcess[bytes]:
    runtime = ("--runtime", _RUNTIME) if any(os.path.exists(f"{folder}/{_RUNTIME}") for folder in _folders()) else ()
    try:
        return subprocess.run(
            [PROGRAM, *runtime, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise PodmanError(f"podman {words[0]} does not end within {seconds} seconds") from None


def _folders() -> list[str]:
    return os.environ.get("PATH", "").split(":")


def _hosts(plan: PlanDict) -> Iterator[str]:
    # Its own name must resolve even without a network; Debian uses this address for it.
    known = plan.get("hosts") or {plan["hostname"]: "127.0.1.1"}
    return (f"{host}:{address}" for host, address in known.items())


def _user(plan: PlanDict) -> str:
    """Return the user option for an image that does not know the submitter."""
    return f"{plan['user']}:x:{plan['uid']}:{plan['gid']}::{plan['home']}:/bin/sh"


def _limits() -> Iterator[str]:
    for name, which, enough in _LIMITS:
        # Never above the hard limit of this process, which only root of the machine may raise (setrlimit(2)).
        _, hard = resource.getrlimit(which)
        most = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
        yield f"{name}={most}:{most}"


def _mounts(layout: Layout) -> Iterator[str]:
    for source, target, writable in layout.binds:
        yield _row(["type=bind", f"src={source}", f"dst={target}", *([] if writable else ["ro=true"])])
    for target in layout.masked:
        yield _row(["type=tmpfs", f"dst={target}", "tmpfs-size=4k", "tmpfs-mode=755", "ro=true"])


def _row(words: list[str]) -> str:
    """Return the words as one row of CSV, in which form podman reads `--mount`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(words)
    return text.getvalue()


def _each(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]
