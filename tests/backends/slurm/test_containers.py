"""Images on a Slurm cluster: what makes containers there, how a job is begun in one, and what a failed one leaves."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cockpit.backends.slurm.entering import command_in_new_job
from cockpit.backends.slurm.mapping.containers import PROBE, HeldContainer, Runtime, held_container_of, runtime_of
from cockpit.backends.slurm.mapping.refusals import refusals
from cockpit.backends.slurm.mapping.script import submission
from cockpit.model.asking import ShellRequest
from cockpit.model.ids import JobId, Millis, UserName
from cockpit.model.job import Job, JobState, Submitter
from cockpit.model.spec import DebugHold, HoldAllocation, JobSpec, Mode, NodeSpec
from tests.builders import a_spec

FREE = DebugHold(allocation=HoldAllocation.FREE)


def boxed(**fields: Any) -> JobSpec:
    return replace(a_spec("job"), **{"command": "python3 t.py; exit 3", "image": "library/python:3.11", **fields})


@pytest.mark.req("SL-23")
@pytest.mark.parametrize(
    ("programs", "found"),
    [
        ({"srun": "echo '      --container-image=[USER@]IMAGE'"}, Runtime.PYXIS),
        ({"srun": "echo Usage: srun", "apptainer": ":"}, Runtime.APPTAINER),
        ({"srun": "echo Usage: srun"}, None),
    ],
)
def test_the_container_program_of_the_cluster_is_detected(
    tmp_path: Path, programs: dict[str, str], found: Runtime | None
) -> None:
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "grep").symlink_to("/usr/bin/grep")
    (tmp_path / "sh").symlink_to("/bin/sh")
    asked = subprocess.run(PROBE, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert runtime_of(asked.stdout) is found


@pytest.mark.parametrize(
    ("spec", "runtime", "said"),
    [
        (boxed(), None, "neither pyxis nor apptainer"),
        (boxed(image="dir:/root"), Runtime.PYXIS, "pyxis begins with no folder"),
        (boxed(image="tar:/root.tar"), Runtime.APPTAINER, "no packed folder"),
        (boxed(mode=Mode.HOROVOD, nodes=2), Runtime.PYXIS, "outside of containers"),
        (boxed(output="/a:b"), Runtime.PYXIS, "comma or a colon"),
    ],
)
def test_the_reason_for_no_container_program_is_reported(spec: JobSpec, runtime: Runtime | None, said: str) -> None:
    (line,) = refusals(spec, runtime)
    assert line.startswith("image: ")
    assert said in line


@pytest.mark.req("SL-20")
def test_under_pyxis_srun_starts_the_container_by_name() -> None:
    script = submission(boxed(nodes=2), Runtime.PYXIS).script
    assert (
        "--container-image=library/python:3.11 --container-mounts=/data/out:/data/out "
        '--container-name="cockpit-$SLURM_JOB_ID" bash -c'
    ) in script


@pytest.mark.req("SL-23", "TR-06")
def test_apptainer_keeps_the_changes_of_a_failed_job_and_prints_the_path(tmp_path: Path) -> None:
    programs, out = tmp_path / "bin", tmp_path / "it's out"
    programs.mkdir()
    out.mkdir()
    for name, text in {
        "apptainer": f'for each; do echo "$each"; done >"{tmp_path}/words"; exit 3',
        "scontrol": f'case $1 in update) echo "$3" >"{tmp_path}/said" ;; *) echo n1 ;; esac',
        "getent": ":",
    }.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    spec = boxed(terminal=True, debug_hold=FREE, output=str(out), specs=(NodeSpec(card_milli=1000),))
    env = {"PATH": f"{programs}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "SLURM_NODEID": "0", "SLURM_JOB_NUM_NODES": "1"}
    script = submission(spec, Runtime.APPTAINER).script
    done = subprocess.run(["sh"], input=script, env=env | {"SLURMD_NODENAME": "n1"}, text=True, check=False)
    assert done.returncode == 3
    overlay = f"{out}/.cockpit-overlay-7-n1"
    words = (tmp_path / "words").read_text().splitlines()
    assert words[:7] == ["exec", "--nv", "--overlay", overlay, "--bind", str(out), "docker://library/python:3.11"]
    assert Path(overlay).is_dir()
    comment = (tmp_path / "said").read_text().strip().removeprefix("Comment=")
    assert held_container_of(comment) == HeldContainer("n1", Runtime.APPTAINER, overlay, "docker://library/python:3.11")


@pytest.mark.req("SL-23")
@pytest.mark.parametrize(
    ("comment", "inside"),
    [
        (
            "cockpit:contained rc=3 node=n1 with=apptainer kept=/o/.cockpit-overlay-7-n1 image=docker://x",
            ("apptainer", "exec", "--overlay", "/o/.cockpit-overlay-7-n1", "docker://x", "id"),
        ),
        ("cockpit:contained rc=3 node=n1 with=pyxis kept=cockpit-7 image=x", ("--container-name=cockpit-7", "id")),
    ],
)
def test_a_new_job_reopens_the_remaining_container(comment: str, inside: tuple[str, ...]) -> None:
    who = Submitter(UserName("ann"), 1, 1, (1,), "/home/ann")
    state = {"submitted_at": Millis(0), "state": JobState.ERROR, "state_since": Millis(0)}
    job = Job(id=JobId(7), spec=boxed(debug_hold=FREE), submitter=who, project="nlp", **state)  # type: ignore[arg-type]  # of Job
    argv = command_in_new_job(job, comment, ShellRequest(job=7, command=("id",)))
    assert argv[: -len(inside)][-1] == "--nodelist=n1"
    assert argv[-len(inside) :] == inside
