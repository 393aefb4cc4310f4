"""A change that Slurm did not answer may have been accepted, and is never said not to have been."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cockpit.backends.slurm import acting
from cockpit.backends.slurm.acting import Acts
from cockpit.backends.slurm.wire.local import LocalCommands
from cockpit.errors import MayBeAccepted, RequestRefused, Unreachable
from cockpit.model.directives import SubmitScript
from cockpit.protocol.messages import DrainArgs

pytestmark = pytest.mark.req("SL-01", "TR-01")
SCRIPT = "#!/bin/sh\n#SBATCH --job-name=night'ly\n#SBATCH -n 1\nsleep 1\n"


def acts(folder: Path, runs: str, name: str = "sbatch") -> Acts:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{runs}\n")
    program.chmod(0o755)
    reading: Any = SimpleNamespace(forget=lambda _: None)
    return Acts(LocalCommands({"PATH": f"{folder}:{os.environ['PATH']}"}), reading, "ann")


@pytest.mark.parametrize(
    "sbatch",
    [
        "exec sleep 60",
        "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1",
        "echo 'sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received' >&2; exit 1",
    ],
)
async def test_a_submission_without_an_answer_may_have_been_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sbatch: str
) -> None:
    monkeypatch.setattr(acting, "SECONDS", 0.5)
    with pytest.raises(MayBeAccepted) as uncertain:
        await acts(tmp_path, sbatch).direct(SubmitScript(SCRIPT, ()))
    assert "The request may have been accepted" in str(uncertain.value)
    assert "squeue --me --name=night --sort=-V" in str(uncertain.value)
    assert "--request" not in str(uncertain.value)


async def test_another_change_without_an_answer_may_have_been_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acting, "SECONDS", 0.5)
    drain = DrainArgs(name="n1", reason="disk")
    for said in ("exec sleep 60", "echo 'slurm_update error: Socket timed out on send/recv operation' >&2; exit 1"):
        with pytest.raises(MayBeAccepted, match="Look at what it changes before you run the command again"):
            await acts(tmp_path, said, "scontrol").act("drain_node", drain)
    down = "echo 'slurm_update error: Unable to contact slurm controller' >&2; exit 1"
    with pytest.raises(Unreachable, match="does not answer scontrol"):
        await acts(tmp_path, down, "scontrol").act("drain_node", drain)


async def test_a_controller_that_was_never_reached_has_accepted_nothing(tmp_path: Path) -> None:
    said = "echo 'sbatch: error: Batch job submission failed: Unable to contact slurm controller' >&2; exit 1"
    with pytest.raises(Unreachable, match="does not answer sbatch"):
        await acts(tmp_path, said).direct(SubmitScript(SCRIPT, ()))


async def test_a_refusal_of_slurm_is_a_refusal(tmp_path: Path) -> None:
    said = "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2; exit 1"
    with pytest.raises(RequestRefused, match="Invalid account"):
        await acts(tmp_path, said).direct(SubmitScript(SCRIPT, ()))
