"""What a cluster can do: each operation and ability is there, or absent with the reason that a user reads."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec


class Ability(StrEnum):
    """What a cluster may be able to do beside the operations of `protocol.operations`."""

    COMMANDS = "commands"
    """Carries out each change by commands, which are shown before they run (`Backend.announce`)."""
    CLUSTERS = "clusters"
    """Is a merged view of several clusters (`Backend.clusters`)."""
    SCRIPTS = "scripts"
    """Takes batch scripts as they are, and is handed any job as a command with a script (`Backend.written`)."""
    SIGNALS = "signals"
    """Sends a signal to a job's processes."""
    UPDATE = "update"
    """Changes any field of a job by the cluster's own name for it (`scontrol update`)."""
    TOP = "top"
    """Moves jobs before all other jobs of their owner (`scontrol top`)."""
    STEPS = "steps"
    """A job has steps, each with an output of its own."""
    MERGED_LOGS = "merged_logs"
    """Records when the lines of stdout and stderr came, so that both can be read merged by time."""
    DEBUG_IMAGE = "debug_image"
    """Opens shells in a container of another image beside a job's own."""
    QUOTA_TREE = "quota_tree"
    """A quota tree may be in force."""
    EVERY_EVENT = "every_event"
    """Records every event of its jobs, also while no cockpit is connected."""
    EVERY_END = "every_end"
    """Keeps the record of every job that has ended, also after the job is deleted."""
    ENVIRONMENT = "environment"
    """Shows a job's environment variables, and changes those of a queued job."""
    REQUEST_IDS = "request_ids"
    """Remembers request ids, so that a repeated change takes effect only once."""
    WEIGHTS = "weights"
    """The weights of its priority factors are known."""
    LOCAL_FILES = "local_files"
    """Jobs see the folders of this machine."""
    PAUSE = "pause"
    """A suspended job keeps its processes and goes on where it was."""
    RESIZE = "resize"
    """Changes the number of workers of a running elastic job, and its bounds."""
    HOST_IMAGE = "host_image"
    """A job without an image runs in the file system of its node."""
    MANIFESTS = "manifests"
    """Creates objects for a job, which can be shown before (`Backend.manifests`)."""


class Capabilities(msgspec.Struct, frozen=True):
    """The operations and abilities that a backend lacks."""

    # The absent ones are listed, so that a new operation is there for every backend unless one says otherwise.
    absent: Mapping[str, str] = {}
    """The reason why it is absent, by the operation's name or the ability; all others are there."""

    def why_not(self, wanted: str) -> str:
        """Return why the operation or ability is absent; empty: it is there."""
        return self.absent.get(wanted, "")

    def has(self, wanted: str) -> bool:
        return wanted not in self.absent

    def without(self, more: Mapping[str, str]) -> Capabilities:
        """Return the capabilities that are left when these are absent, too."""
        return Capabilities({**self.absent, **more}) if more else self


NO_REQUEST_IDS: Final = (
    "This cluster remembers no request ids, so it cannot tell a repeat from a new request; leave --request-id out. "
    "Nothing was done."
)
NO_COMMANDS: Final = (
    "This cluster is no Slurm cluster: it runs no commands that --show-commands could show; leave it out. "
    "Nothing was done."
)
NO_FLEET: Final = "This cluster is no fleet of several clusters; `-c all` shows those that you use in one table."
ONE_CLUSTER: Final = "This is one cluster; `-c all` shows all that you use in one table."
NO_DEBUG_IMAGE: Final = "Only Kubernetes runs a container of another image beside a job's own; open a shell in that."
NO_MANIFESTS: Final = (
    "Only a Kubernetes cluster makes objects of a job; `cockpit launch --dry-run FILE` shows what each replica would "
    "run. Nothing was done."
)
_ONLY_SLURM = "Only a Slurm cluster does this: this one is cockpit's own."

ENGINE: Final = Capabilities(
    {
        Ability.COMMANDS: NO_COMMANDS,
        Ability.CLUSTERS: ONE_CLUSTER,
        Ability.SCRIPTS: _ONLY_SLURM,
        Ability.SIGNALS: _ONLY_SLURM,
        Ability.UPDATE: _ONLY_SLURM,
        Ability.TOP: _ONLY_SLURM,
        Ability.RESIZE: "The scheduler chooses the number of workers while the job runs; its bounds are those with "
        "which it was queued.",
        Ability.DEBUG_IMAGE: NO_DEBUG_IMAGE,
        Ability.MANIFESTS: NO_MANIFESTS,
        Ability.STEPS: "only jobs of a Slurm cluster have steps; --replica chooses one of several",
    }
)
"""The capabilities of cockpit's own engine on this machine."""
EMBEDDED: Final = Capabilities(
    {
        **ENGINE.absent,
        Ability.REQUEST_IDS: NO_REQUEST_IDS,
        Ability.LOCAL_FILES: "This cluster is simulated: its jobs see no folder of this machine.",
    }
)
"""The capabilities of an engine inside this process, over a demo or a copy of a cluster."""
