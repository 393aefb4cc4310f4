"""Opens a Slurm cluster by the way in that its name says."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.mapping import rules
from cockpit.backends.slurm.mapping.records import settings
from cockpit.backends.slurm.reading import PollIntervals, Reading
from cockpit.backends.slurm.why import SLURM
from cockpit.backends.slurm.wire.answer_cache import answer_cache_for
from cockpit.backends.slurm.wire.answers import Answers
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.backends.slurm.wire.recorded import RecordedCommands
from cockpit.errors import CockpitError
from cockpit.runtime.clock import SystemClock, VirtualClock
from cockpit.runtime.observed_history import ObservedHistory

if TYPE_CHECKING:
    from cockpit.backends.base import TypedLogin
    from cockpit.backends.slurm.wire.calls import Commands
    from cockpit.model.ids import Millis
    from cockpit.runtime.clock import Timekeeper

HERE = "here "
"""Before what names the cluster of this machine's own commands."""
WHO_SECONDS = 30.0
INTRODUCTION_SECONDS = 1.0
"""So long a face waits for the cluster's name before it opens without it."""


async def open_recorded(version: str) -> tuple[SlurmBackend, Callable[[], Millis]]:
    """The recording of a cluster, and its time, which stands still."""
    commands = RecordedCommands(version)
    clock = VirtualClock(commands.recorded_at)
    reading = Reading(Answers(commands, clock.now, _chance()), clock.now)
    name = f"{rules.cluster_name(await reading.config())} · {version} recorded"
    return SlurmBackend(name, commands, reading, clock, ""), clock.now


class RepeatedLogin(NamedTuple):
    """Implements `TypedLogin`: what failed while the login was missing is asked again at once."""

    way: TypedLogin
    answers: Answers

    @property
    def is_needed(self) -> bool:
        return self.way.is_needed

    def ask_at_terminal(self) -> None:
        self.way.ask_at_terminal()
        self.answers.forget()


class Folders(NamedTuple):
    """This user's own, for what is read of clusters."""

    answers: Path
    """Which other cockpits use for some seconds."""
    history: Path
    """Which stays."""


async def open_here(user: str, folders: Folders, intervals: PollIntervals | None = None) -> SlurmBackend:
    """The cluster that this machine's commands speak to."""
    commands = LocalCommands(os.environ)
    return await opened(commands, SystemClock(), user, folders, f"{HERE}{os.environ.get('SLURM_CONF', '')}", intervals)


async def open_over_ssh(
    address: str, folders: Folders, intervals: PollIntervals | None = None, *, typing: bool = False
) -> SlurmBackend:
    """The cluster of a login node elsewhere. `typing`: the terminal is free to be asked for a password or a code."""
    from cockpit.backends.slurm.wire.ssh import SshCommands

    commands = SshCommands(address)
    if typing:
        await commands.log_in()
    user = commands.user or await _whoami(commands)
    return await opened(commands, SystemClock(), user, folders, address, intervals, commands if typing else None)


async def open_rest(
    address: str, user: str, folders: Folders, intervals: PollIntervals | None = None, token_file: str = ""
) -> SlurmBackend:
    """The cluster of a slurmrestd: through its unix socket as `user`, who runs this; over HTTP as whom the address
    names, else the token."""
    from cockpit.backends.slurm.wire.rest import RestCommands, token_in

    clock = SystemClock()
    here = address.startswith("slurmrestd+unix:")
    token = token_in(token_file, os.environ) if token_file or not here else str
    commands = RestCommands(address, token, clock.now, LocalCommands(os.environ) if here else None)
    asker = user if here else commands.user or user
    return await opened(commands, clock, asker, folders, f"{address} {asker}", intervals)


async def _whoami(commands: Commands) -> str:
    """Who one is there; empty while nobody answers."""
    try:
        return (await commands.run(("id", "-un"), seconds=WHO_SECONDS)).stdout.strip()
    except CockpitError:
        return ""


async def opened(
    commands: Commands,
    clock: Timekeeper,
    user: str,
    folders: Folders,
    whose: str,
    intervals: PollIntervals | None = None,
    login: TypedLogin | None = None,
) -> SlurmBackend:
    """`whose`: tells this cluster's answers from others' on the cache. A cluster that does not answer yet is opened all
    the same: it introduces itself when it answers."""
    answers = Answers(commands, clock.now, _chance())
    reading = Reading(answers, clock.now, intervals)

    async def introduction() -> tuple[str, ObservedHistory]:
        """Raises `CockpitError` while the cluster does not answer."""
        config = await reading.config()
        name, private = rules.cluster_name(config), settings(config).get("PrivateData", "none") not in {"none", ""}
        identity = " ".join(
            settings(config).get(key, "") for key in ("ClusterName", "SlurmctldHost[0]", "SlurmctldPort")
        )
        shared = "" if private or not whose.startswith(HERE) else identity
        trusted = frozenset({0, _uid(settings(config).get("SlurmUser", ""))})
        answers.cache = answer_cache_for(
            f"{whose} {identity}", folders.answers, clock.now, shared=shared, trusted=trusted
        )
        return name, ObservedHistory(_chronicle_in(folders.history, name, whose), SLURM)

    repeated = RepeatedLogin(login, answers) if login is not None else None
    backend = SlurmBackend(commands.name, commands, reading, clock, user, introduction=introduction, login=repeated)
    await backend.introduced_within(INTRODUCTION_SECONDS)
    return backend


def _chronicle_in(folder: Path, name: str, whose: str) -> Path:
    """Clusters of one name are told apart by how they are reached."""
    readable = "".join(each if each.isalnum() or each in "-." else "_" for each in name)[:60]
    return folder / f"{readable}-{hashlib.sha256(whose.encode()).hexdigest()[:8]}.jsonl"


def _uid(user: str) -> int:
    """Of `slurm(64030)`; root's where it is not said."""
    number = user.rpartition("(")[2].rstrip(")")
    return int(number) if number.isdigit() else 0


def _chance() -> Random:
    return Random()  # noqa: S311 - spreads retries over time
