"""The cluster's prologs and epilogs (JT-24): run on the machine itself, as the engine's own user, around each job.

    scripts.json   in an attempt's folder: what the node's scripts are told; written before the first prolog
    prologs.json   every prolog has succeeded
    epilogs.json   the epilogs had their turn

As in Slurm they run outside of containers, in order, and what a script leaves running is killed with it. What they
write is kept beside the job's logs, for administrators. A script that the engine's end interrupts is run again.
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
"""A script that needs longer has failed."""
_LINE = 200


class NodeScripts:
    """`state`: the engine's folder, where logs are. `rules`: the cluster as it is now. `facts_for`: of a replica that
    is about to start. `most_bytes`: what the log of all of them for one replica may take."""

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
        """Whether there is a script."""
        rules = self._rules()
        return bool(rules.prolog_scripts or rules.epilog_scripts)

    async def before(self, effect: StartReplica, attempt: Attempt) -> str:
        """Run the prologs, once; a sentence where one fails, and the rest is left out."""
        if not self.any or attempt.read("prologs.json") is not None:
            return ""
        facts = self._facts_for(effect)
        await asyncio.to_thread(_write_down, attempt, facts, self._log(attempt))
        for number, script in enumerate(self._rules().prolog_scripts, 1):
            if failed := await self._run(f"prolog {number}", script, attempt, facts):
                return failed
        await asyncio.to_thread(attempt.write, "prologs.json", {})
        return ""

    async def after(self, attempt: Attempt) -> tuple[NodeName, str]:
        """Run the epilogs, once; the node, and a sentence where one of them fails. The others run all the same."""
        facts = noted(attempt)
        if facts is None or attempt.read("epilogs.json") is not None:
            return NodeName(""), ""
        failed = ""
        for number, script in enumerate(self._rules().epilog_scripts, 1):
            failed = await self._run(f"epilog {number}", script, attempt, facts) or failed
        await asyncio.to_thread(attempt.write, "epilogs.json", {})
        return NodeName(facts.node), failed

    def _log(self, attempt: Attempt) -> Path:
        replica = replica_id_from_folder(attempt.name)
        assert replica is not None
        return log_file(self._state, replica, "scripts")

    async def _run(self, name: str, script: str, attempt: Attempt, facts: ScriptFacts) -> str:
        """A sentence where it does not end with 0."""
        kind, log = name.split(maxsplit=1)[0], self._log(attempt)
        file = Path(attempt.file(kind))
        try:
            await asyncio.to_thread(_lay_down, file, script)
            with log.open("ab") as output:
                began = output.tell()
                env = {**facts.env, "SLURM_SCRIPT_CONTEXT": f"{kind}_slurmd"}
                code = await self._ended(file, env, output.fileno(), LogBounds([str(log)], self._most_bytes))
        except OSError as error:
            return f"{name} could not be run on {facts.node}: {error.strerror or error}"
        if code == 0:
            return ""
        how = "needed too long and was killed" if code is None else f"ended with {code}"
        said = await asyncio.to_thread(_last_line, log, began)
        return f"{name} {how} on {facts.node}" + (f": {said}" if said else "")

    async def _ended(self, file: Path, env: dict[str, str], output: int, bounds: LogBounds) -> int | None:
        """Its exit code as a shell reports it; None: it was killed for its time. Its log is kept within its bounds."""
        process = await asyncio.create_subprocess_exec(
            "/bin/bash",
            str(file),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=env,
            cwd="/",
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(self._most_seconds):
                code = await _within_bounds(process, bounds)
        except TimeoutError:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.to_thread(bounds.look)
        return code if code >= 0 else 128 - code


async def _within_bounds(process: asyncio.subprocess.Process, bounds: LogBounds) -> int:
    """The process's exit code, once it has ended."""
    while True:
        seconds = await asyncio.to_thread(bounds.look)
        with suppress(TimeoutError):
            return await asyncio.wait_for(process.wait(), seconds)


def noted(attempt: Attempt) -> ScriptFacts | None:
    """What was written down before its prologs; None: no script concerns it."""
    record = attempt.read("scripts.json")
    return None if record is None else msgspec.convert(record, ScriptFacts)


def _write_down(attempt: Attempt, facts: ScriptFacts, log: Path) -> None:
    Path(attempt.path).mkdir(parents=True, exist_ok=True, mode=0o700)
    log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    attempt.write("scripts.json", msgspec.to_builtins(facts))


def _lay_down(file: Path, script: str) -> None:
    file.write_text(script, encoding="utf-8")
    file.chmod(0o700)


def _last_line(log: Path, began: int) -> str:
    with log.open("rb") as stream:
        stream.seek(max(began, stream.seek(0, os.SEEK_END) - 4096))
        lines = stream.read().decode(errors="replace").split("\n")
    return next((line.strip()[:_LINE] for line in reversed(lines) if line.strip()), "")
