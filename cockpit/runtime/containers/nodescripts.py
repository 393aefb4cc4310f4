"""Run the cluster's prologs and epilogs (JT-24) around each job, on the machine itself, as the engine's user.

    scripts.json   in an attempt's folder: the facts that scripts get as variables; written before the first prolog
    prologs.json   all prologs have succeeded
    epilogs.json   the epilogs have run

As in Slurm they run outside of containers, in order, and a script's background processes are killed when it ends. Their
output is written beside the job's logs, for administrators. A script that an engine's stop interrupts is run again.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cockpit.launch.nodescripts import ScriptFacts
from cockpit.model.ids import NodeName, replica_id_from_folder
from cockpit.runtime.containers.plan import log_file
from cockpit.runtime.containers.shim.logbounds import USUAL_MIB, LogBounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from cockpit.engine.effects import StartReplica
    from cockpit.model.cluster import Cluster
    from cockpit.runtime.containers.shim.attempt import Attempt

MOST_SECONDS = 600.0
"""Time limit of a script; one that needs longer is killed and has failed."""
_LINE = 200
"""Longest line of a failed script that its message quotes, in characters."""


class NodeScripts:
    """The prologs and epilogs of the cluster.

    `state`: the engine's state folder, which contains the logs. `rules` returns the cluster's current rules.
    `facts_for` returns the facts of a replica that is about to start. `most_bytes`: largest size of a replica's log of
    scripts.
    """

    def __init__(
        self,
        state: Path,
        rules: Callable[[], Cluster],
        facts_for: Callable[[StartReplica], ScriptFacts],
        most_seconds: float = MOST_SECONDS,
        most_bytes: int = USUAL_MIB << 20,
    ) -> None:
        self._state = state
        self._rules = rules
        self._facts_for = facts_for
        self._most_seconds = most_seconds
        self._most_bytes = most_bytes

    @property
    def any(self) -> bool:
        """Whether the cluster has a prolog or an epilog."""
        rules = self._rules()
        return bool(rules.prolog_scripts or rules.epilog_scripts)

    async def before(self, effect: StartReplica, attempt: Attempt) -> str:
        """Run the prologs, once. If one fails, skip the rest and return a sentence; else return an empty text."""
        # The record is of an engine that was stopped after its prologs.
        if not self.any or attempt.read("prologs.json") is not None:
            return ""
        facts = self._facts_for(effect)
        # Before the first prolog: by this record the epilogs run, even if the engine dies from here on.
        await asyncio.to_thread(_write_down, attempt, facts, self._log(attempt))
        for number, script in enumerate(self._rules().prolog_scripts, 1):
            if failed := await self._run(f"prolog {number}", script, attempt, facts):
                return failed
        await asyncio.to_thread(attempt.write, "prologs.json", {})
        return ""

    async def after(self, attempt: Attempt) -> tuple[NodeName, str]:
        """Run all epilogs, once. Return the node, and a sentence about the last one that failed, if any."""
        facts = read_facts(attempt)
        # Without the facts no prolog was ever begun, so there is nothing to clean up after.
        if facts is None or attempt.read("epilogs.json") is not None:
            return NodeName(""), ""
        failed = ""
        for number, script in enumerate(self._rules().epilog_scripts, 1):
            # All of them run, whatever the first did: each cleans up something else.
            failed = await self._run(f"epilog {number}", script, attempt, facts) or failed
        await asyncio.to_thread(attempt.write, "epilogs.json", {})
        return NodeName(facts.node), failed

    def _log(self, attempt: Attempt) -> Path:
        replica = replica_id_from_folder(attempt.name)
        assert replica is not None
        return log_file(self._state, replica, "scripts")

    async def _run(self, name: str, script: str, attempt: Attempt, facts: ScriptFacts) -> str:
        """Run a script. Return a sentence if it does not end with 0, else an empty text."""
        kind, log = name.split(maxsplit=1)[0], self._log(attempt)
        file = Path(attempt.file(kind))
        try:
            await asyncio.to_thread(_write_script, file, script)
            with log.open("ab") as output:
                began = output.tell()
                # As slurmd sets it: prolog_slurmd, epilog_slurmd.
                env = {**facts.env, "SLURM_SCRIPT_CONTEXT": f"{kind}_slurmd"}
                code = await self._execute(file, env, output.fileno(), LogBounds([str(log)], self._most_bytes))
        except OSError as error:
            return f"{name} could not be run on {facts.node}: {error.strerror or error}"
        if code == 0:
            return ""
        how = "needed too long and was killed" if code is None else f"ended with {code}"
        message = await asyncio.to_thread(_last_line, log, began)
        return f"{name} {how} on {facts.node}" + (f": {message}" if message else "")

    async def _execute(self, file: Path, env: dict[str, str], output: int, bounds: LogBounds) -> int | None:
        """Run a script file, and limit its log; return its exit code as a shell does, or None after the time limit."""
        process = await asyncio.create_subprocess_exec(
            # By bash in any case: the text comes from cluster.toml, and needs no `#!` line.
            "/bin/bash",
            str(file),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=env,
            cwd="/",
            # A session of its own, whose group has all that the script leaves in the background.
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._most_seconds):
                code = await _within_bounds(process, bounds)
        except TimeoutError:
            return None
        finally:
            # Also after a regular end, as in Slurm: a prolog's background processes must not stay beside the job.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
            # Once more, for what was written since the last look.
            await asyncio.to_thread(bounds.look)
        return code if code >= 0 else 128 - code


async def _within_bounds(process: asyncio.subprocess.Process, bounds: LogBounds) -> int:
    """Wait for the process while limiting its log, and return its exit code."""
    while True:
        seconds = await asyncio.to_thread(bounds.look)
        with suppress(TimeoutError):
            return await asyncio.wait_for(process.wait(), seconds)


def read_facts(attempt: Attempt) -> ScriptFacts | None:
    """Return the facts that were recorded before the prologs; None if no scripts run for this attempt."""
    record = attempt.read("scripts.json")
    return None if record is None else msgspec.convert(record, ScriptFacts)


def _write_down(attempt: Attempt, facts: ScriptFacts, log: Path) -> None:
    Path(attempt.path).mkdir(parents=True, exist_ok=True, mode=0o700)
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    attempt.write("scripts.json", msgspec.to_builtins(facts))


def _write_script(file: Path, script: str) -> None:
    file.write_text(script, encoding="utf-8")
    file.chmod(0o700)


def _last_line(log: Path, began: int) -> str:
    with log.open("rb") as stream:
        # The end is enough, and the output may be large; but nothing of an earlier script, before `began`.
        stream.seek(max(began, stream.seek(0, os.SEEK_END) - 4096))
        lines = stream.read().decode(errors="replace").split("\n")
    return next((line.strip()[:_LINE] for line in reversed(lines) if line.strip()), "")
