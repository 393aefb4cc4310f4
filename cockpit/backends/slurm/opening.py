"""Opens a Slurm cluster by its address: the local commands, a login node, slurmrestd or a recording."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.backends.slurm.mapping import rules
from cockpit.backends.slurm.reading import Reading
from cockpit.backends.slurm.why import SLURM
from cockpit.backends.slurm.wire.answer_cache import answer_cache_for
from cockpit.backends.slurm.wire.answers import Answers, PollIntervals
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.backends.slurm.wire.recorded import RecordedCommands
from cockpit.errors import CockpitError
from cockpit.runtime.clock import SystemClock, VirtualClock
from cockpit.runtime.observed_history import ObservedHistory, history_file

if TYPE_CHECKING:
    from cockpit.backends.base import TypedLogin
    from cockpit.backends.slurm.wire.calls import Commands
    from cockpit.model.ids import Millis
    from cockpit.runtime.clock import Timekeeper

HERE = "here "
"""Prefix of the identity of a cluster that this machine's own commands reach."""
WHO_SECONDS = 30.0
INTRODUCTION_SECONDS = 1.0
"""Longest time to wait for the cluster's name before the screen opens without it."""


async def open_recorded(version: str) -> tuple[SlurmBackend, Callable[[], Millis]]:
    """Open the recording of a cluster; return it with a clock that always shows the time of the recording."""
    commands = RecordedCommands(version)
    clock = VirtualClock(commands.recorded_at)
    reading = Reading(Answers(commands, clock.now, _chance()), clock.now)
    name = f"{rules.cluster_name(await reading.config())} · {version} recorded"
    return SlurmBackend(name, commands, reading, clock, ""), clock.now


class RepeatedLogin(NamedTuple):
    """Implements `TypedLogin`: after the login, commands that failed without it run again at once."""

    login: TypedLogin
    answers: Answers

    @property
    def is_needed(self) -> bool:
        return self.login.is_needed

    def ask_at_terminal(self) -> None:
        self.login.ask_at_terminal()
        self.answers.forget()


class Folders(NamedTuple):
    """The user's own folders for data that is read from clusters."""

    answers: Path
    """Answers of commands, which the user's other cockpits share for some seconds."""
    history: Path
    """Files with the changes of jobs that were seen; they are kept."""


async def open_here(user: str, folders: Folders, intervals: PollIntervals | None = None) -> SlurmBackend:
    """Open the cluster that this machine's own Slurm commands use."""
    commands = LocalCommands(os.environ)
    return await opened(commands, SystemClock(), user, folders, f"{HERE}{os.environ.get('SLURM_CONF', '')}", intervals)


async def open_over_ssh(
    address: str, folders: Folders, intervals: PollIntervals | None = None, *, typing: bool = False
) -> SlurmBackend:
    """Open the cluster of a login node. `typing`: the terminal is free, so ssh may ask for a password or a code."""
    from cockpit.backends.slurm.wire.ssh import SshCommands

    commands = SshCommands(address)
    if typing:
        await commands.log_in()
    user = commands.user or await _whoami(commands)
    return await opened(commands, SystemClock(), user, folders, address, intervals, commands if typing else None)


async def open_rest(
    address: str, user: str, folders: Folders, intervals: PollIntervals | None = None, token_file: str = ""
) -> SlurmBackend:
    """Open the cluster of a slurmrestd.

    Through a unix socket the user is `user`, who runs cockpit; over HTTP it is the user in the address, else the one of
    the token.
    """
    from cockpit.backends.slurm.wire.rest import RestCommands, token_in

    clock = SystemClock()
    here = address.startswith("slurmrestd+unix:")
    # Through a unix socket the kernel identifies the user, so the environment's token is not sent.
    token = token_in(token_file, os.environ) if token_file or not here else str
    commands = RestCommands(address, token, clock.now, LocalCommands(os.environ) if here else None)
    slurm_user = user if here else commands.user or user
    return await opened(commands, clock, slurm_user, folders, f"{address} {slurm_user}", intervals)


async def _whoami(commands: Commands) -> str:
    """Return the user's name on the login node; empty while it does not answer."""
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
    """Return a backend that uses these commands, also for a cluster that does not answer yet.

    1. Make the parts: answers, reading, backend.
    2. Ask for the configuration. It has the cluster's name, and says whether answers may be shared with other users.
    3. With it, open the cache of answers and the history file (`introduction`). If the cluster does not answer within
       `INTRODUCTION_SECONDS`, that happens with its first answer.

    `whose`: identifies the user and the way by which the cluster is reached, for the names of the user's files.
    """
    answers = Answers(commands, clock.now, _chance())
    reading = Reading(answers, clock.now, intervals)

    async def introduction() -> tuple[str, ObservedHistory]:
        """Return the cluster's name and its history. Raises `CockpitError` while the cluster does not answer."""
        conf = await reading.config()
        name, private = rules.cluster_name(conf), conf.get("PrivateData", "none") not in {"none", ""}
        identity = " ".join(conf.get(key, "") for key in ("ClusterName", "SlurmctldHost[0]", "SlurmctldPort"))
        # With PrivateData users see different lists. A remote cluster's answers depend on the remote user.
        shared = "" if private or not whose.startswith(HERE) else identity
        trusted = frozenset({0, _uid(conf.get("SlurmUser", ""))})
        answers.cache = answer_cache_for(
            f"{whose} {identity}", folders.answers, clock.now, shared=shared, trusted=trusted
        )
        return name, ObservedHistory(history_file(folders.history, name, whose), SLURM)

    repeated = RepeatedLogin(login, answers) if login is not None else None
    backend = SlurmBackend(commands.name, commands, reading, clock, user, introduction=introduction, login=repeated)
    # Most clusters answer at once, and then the screen opens with the right name.
    await backend.introduced_within(INTRODUCTION_SECONDS)
    return backend


def _uid(user: str) -> int:
    """Return the number of `slurm(64030)`, the form of SlurmUser; 0 (root) when it has none."""
    number = user.rpartition("(")[2].rstrip(")")
    return int(number) if number.isdigit() else 0


def _chance() -> Random:
    return Random()  # noqa: S311 - spreads retries over time
