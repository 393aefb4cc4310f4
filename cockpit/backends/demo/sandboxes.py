"""Opens shells in the demo: real shells in a sandbox, with files such as the job would have."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from cockpit.backends.demo.sandbox import Shell, View, enter
from cockpit.errors import RequestRefused
from cockpit.launch.workspace import WORKSPACE, mounted_folders
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import HoldCards
from cockpit.runtime.containers.entering import EnteredShell, EntryFacts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cockpit.engine.effects import StartReplica
    from cockpit.model.ids import ReplicaId
    from cockpit.runtime.containers.entering import Terminal

PROGRAM = "bwrap"
WITHOUT_BUBBLEWRAP = (
    "The demo's terminals are sandboxes made by bubblewrap, which this machine does not have: "
    "install the package bubblewrap."
)
TRAINING = """\
# A file of the demo: no job has run it.
import json

config = json.load(open("/workspace/algorithm/config.json"))
for step in range(config["steps"]):
    print("step", step)
"""
CONFIG = '{"steps": 6000, "batch": 64, "lr": 2e-05, "seed": 17}\n'


class Sandboxes:
    """The sandboxes' folders below `folder`, one for each replica, made when a user first opens a shell in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shells: list[Shell] = []

    def enter(
        self, effect: StartReplica, command: Sequence[str], *, terminal: Terminal | None, label: str, kept: bool
    ) -> EnteredShell:
        """Open a shell. Raises `RequestRefused` when this machine has no bubblewrap."""
        if shutil.which(PROGRAM) is None:
            raise RequestRefused(Refusal(RefusalKind.UNAVAILABLE, WITHOUT_BUBBLEWRAP))
        view = View(self._with_files(effect), effect.submitter, label)
        shell = enter(view, command, terminal)
        self._shells = [each for each in self._shells if each.alive] + [shell]
        freed = kept and effect.spec.debug_hold.cards is not HoldCards.KEEP and bool(effect.allocation.slices)
        return EnteredShell(
            terminal_fd=shell.terminal_fd,
            pipe_fds=shell.pipe_fds,
            control_fd=shell.control_fd,
            facts=EntryFacts(kept=kept, cards_freed=freed),
        )

    def remove(self, replica: ReplicaId) -> None:
        """Remove the files; open shells then see an empty folder, as in a container that is removed."""
        shutil.rmtree(self._folder / replica.folder, ignore_errors=True)

    def close(self) -> None:
        """End every shell."""
        for shell in self._shells:
            shell.end()

    def _with_files(self, effect: StartReplica) -> Path:
        """Return the replica's folder; create it with example files if it does not exist."""
        folder_of_replica = self._folder / effect.replica.folder
        if not folder_of_replica.exists():
            places = (each.target.removeprefix(f"{WORKSPACE}/") for each in mounted_folders(effect.spec))
            for folder in dict.fromkeys(("algorithm", *places, "outputs/checkpoint-1000")):
                (folder_of_replica / folder).mkdir(parents=True, exist_ok=True)
            programs = [word for word in effect.spec.command.split() if word.endswith(".py") and "/" not in word]
            for program in programs or ["train.py"]:
                (folder_of_replica / "algorithm" / program).write_text(TRAINING)
            (folder_of_replica / "algorithm/config.json").write_text(CONFIG)
            state = folder_of_replica / "outputs/checkpoint-1000/state.json"
            state.write_text('{"step": 1000, "loss": 1.4127}\n')
        return folder_of_replica
