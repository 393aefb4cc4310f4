"""Finds out how this machine makes containers, by making one."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import msgspec

from cockpit.launch.workspace import WORKSPACE
from cockpit.model.spec import HomeAccess
from cockpit.runtime.containers import removal, spawning
from cockpit.runtime.containers.plan import ContainerPlan
from cockpit.runtime.containers.shim import bubblewrap, linux, plain, syscalls
from cockpit.runtime.containers.shim.attempt import Attempt
from cockpit.runtime.containers.shim.limits import READ_ONLY

if TYPE_CHECKING:
    from cockpit.runtime.containers.shim.attempt import Record

UNAIDED = "made without bubblewrap, which is not installed here, by what fewer people have tried"
PLAIN, NONE = "plain processes", "none"
_PREFIX = "probe-"
_PROBE_SECONDS = 15
"""Time limit of the probe's command, `true`."""
_POLL_SECONDS = 0.005


class ContainerRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the probe."""

    kind: str
    """`root overlay`, `user overlay`, `plain processes`, or `none`."""
    lacks: str = ""
    """What these containers lack, or why none can be made, as a sentence; empty when nothing is missing."""

    @property
    def usable(self) -> bool:
        return self.kind != NONE

    @property
    def is_plain(self) -> bool:
        return self.kind == PLAIN

    @property
    def trouble(self) -> str:
        """Why no job can run here, as a sentence for users; empty if jobs can run."""
        return "" if self.usable else f"No job can run here: {self.lacks}."

    def __str__(self) -> str:
        if self.is_plain:
            return self.lacks
        return f"{self.kind}: {self.lacks}" if self.lacks else self.kind


def probe_runtime(state: Path, *, may_be_plain: bool, python: str = sys.executable) -> ContainerRuntime:
    """Make one container in the engine's state folder, run `true` in it, remove it. Takes about a tenth of a second;
    blocks. Nothing is remembered: a machine changes between two starts of the engine."""
    (state / "containers").mkdir(parents=True, exist_ok=True, mode=0o700)
    # Probes of an engine that was killed during one.
    for left in (state / "containers").glob(f"{_PREFIX}*"):
        _end(Attempt(str(left)))
    folder = Path(mkdtemp(prefix=_PREFIX, dir=state / "containers"))
    attempt, plan = Attempt(str(folder)), _plan(folder, state, may_be_plain=may_be_plain)
    try:
        spawning.spawn(attempt, plan, spawning.Shims(python))
        return _judge(_await_exit(attempt), attempt, rootless=plan.rootless)
    except (spawning.SpawnError, OSError) as error:
        return ContainerRuntime(kind=NONE, lacks=str(error))
    finally:
        _end(attempt)


def _plan(folder: Path, state: Path, *, may_be_plain: bool) -> ContainerPlan:
    uid, gid = os.geteuid(), os.getegid()
    return ContainerPlan(
        argv=("true",),
        env={},
        kept_env={},
        workdir=WORKSPACE,
        hostname="probe",
        user=str(uid),
        uid=uid,
        gid=gid,
        groups=tuple(os.getgroups()),
        home="/",
        home_access=HomeAccess.NONE,
        mounts=(),
        devices=(),
        cpus=1,
        memory_mib=256,
        pids=64,
        scratch_mib=64,
        cgroup=folder.name,
        rootless=uid != 0,
        may_be_plain=may_be_plain,
        state=str(state),
        socket=str(state),
        stdout=str(folder / "stdout"),
        stderr=str(folder / "stderr"),
    )


def _await_exit(attempt: Attempt) -> Record:
    deadline = time.monotonic() + _PROBE_SECONDS
    while time.monotonic() < deadline:
        if (record := attempt.read("exit.json")) is not None:
            return record
        time.sleep(_POLL_SECONDS)
    return {"lost": f"a container that runs `true` did not end within {_PROBE_SECONDS} seconds"}


def _judge(record: Record, attempt: Attempt, *, rootless: bool) -> ContainerRuntime:
    started, identity = attempt.read("started.json"), attempt.read("shim.json") or {}
    if record.get("code") != 0 or started is None:
        return ContainerRuntime(kind=NONE, lacks=record.get("lost", f"`true` ended with {record}"))
    if identity.get("plain"):
        return ContainerRuntime(kind=PLAIN, lacks=plain.LACKS)
    # A container reports the folders for which no overlay was possible only in its text on limits.
    read_only = started["limits"].partition(READ_ONLY)[2]
    lacks = [UNAIDED] if not bubblewrap.installed() else []
    lacks += [] if syscalls.is_known() else [f"{syscalls.UNFILTERED} on this processor"]
    lacks += [f"{read_only} cannot be changed by jobs, not even for themselves"] if read_only else []
    return ContainerRuntime(kind="user overlay" if rootless else "root overlay", lacks="; ".join(lacks))


def _end(attempt: Attempt) -> None:
    """Kill the holder of a probe, this one or one of an earlier engine, and delete its folder."""
    holder = attempt.open_holder()
    if holder is not None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(holder, signal.SIGKILL)
        # Until it is dead: the kernel removes no cgroup that has a process.
        linux.has_ended(holder, within_milliseconds=_PROBE_SECONDS * 1000)
        os.close(holder)
    removal.delete(attempt, attempt.name)
