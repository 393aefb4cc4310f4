"""Containers on the nodes of a cluster: pyxis's are options of srun, apptainer's are a command before the job's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from cockpit.backends.slurm.mapping.shelltext import quoted
from cockpit.launch.modes import LAUNCHED_BY_FIRST
from cockpit.model.image import HOST, ImageKind, image_of
from cockpit.model.spec import JobSpec


class Runtime(StrEnum):
    """The program that runs containers."""

    PYXIS = "pyxis"
    APPTAINER = "apptainer"


PROBE = (
    "sh",
    "-c",
    "srun --help 2>&1 | grep -q -- --container-image && echo pyxis; command -v apptainer >&2 && echo apptainer; :",
)
"""Says on a login node what there is, the better one first."""
_NONE = "this cluster's login node has neither pyxis nor apptainer; let the script start a container"
_LEFT = re.compile(r"cockpit:contained rc=\d{1,3} node=(\S+) with=(pyxis|apptainer) kept=(.+) image=(\S+)")


class HeldContainer(NamedTuple):
    """A container that a failed job has left behind."""

    node: str
    runtime: Runtime
    kept: str
    """The name of the held container, or the folder with the files that it changed."""
    image: str


def runtime_of(printed: str) -> Runtime | None:
    """Return the runtime that the output of `PROBE` shows."""
    # Other words may come from the profile of the login shell.
    known = [each for each in printed.split() if each in set(Runtime)]
    return Runtime(known[0]) if known else None


def image_refusals(spec: JobSpec, runtime: Runtime | None) -> Iterator[str]:
    """Yield why Slurm cannot run the job in a container with its image."""
    for position, pool in enumerate(spec.worker_pools):
        if pool.image:
            yield f"worker_pools[{position}].image: all pools have the job's image there; write `image`"
    if spec.image == HOST:
        return
    kind = image_of(spec.image).kind
    if runtime is None:
        yield f"image: {_NONE}"
    elif kind is ImageKind.TAR:
        yield f"image: {runtime} begins with no packed folder; write the name of an image"
    elif kind is ImageKind.DIR and runtime is Runtime.PYXIS:
        yield "image: pyxis begins with no folder; write the name of an image"
    elif spec.mode in LAUNCHED_BY_FIRST:
        yield f"image: the launcher of {spec.mode} starts its processes outside of containers; leave it out"
    # Both characters separate the parts of a mount in the options of both runtimes.
    elif any(mark in path for path in _folders(spec) for mark in ",:"):
        yield f"image: {runtime} shows no folder whose name has a comma or a colon"


def step_in_container(spec: JobSpec, runtime: Runtime, srun: str, script: str) -> str:
    """Return the command line of a step whose `script` runs in a container; `srun`: with its options, for one that srun
    starts."""
    where = image_of(spec.image).where
    if runtime is Runtime.PYXIS:
        mounts = ",".join(f"{each}:{each}" for each in _folders(spec))
        options = f"--container-image={quoted(where)} --container-mounts={quoted(mounts)}"
        # A container of pyxis is an option of srun, so even a command on one node needs a step. By its name the held
        # container is found again (`leave_container`).
        return f'{srun or "srun"} {options} --container-name="cockpit-$SLURM_JOB_ID" {script}'
    binds = " ".join(f"--bind {quoted(each)}" for each in _folders(spec))
    # --nv binds NVIDIA's driver libraries of the host, which an image must not bring itself.
    cards = " --nv" if spec.specs[0].card_milli else ""
    changes = f' --overlay "{_OVERLAY}"' if spec.terminal else ""
    made = f'mkdir -p "{_OVERLAY}" && ' if spec.terminal else ""
    # exec: apptainer takes the place of the shell, so that signals of Slurm reach it.
    inside = f"{made}exec apptainer exec{cards}{changes} {binds} {quoted(_source(spec))} {script}"
    return f"{srun} sh -c {quoted(inside)}".lstrip()


def leave_container(spec: JobSpec, runtime: Runtime) -> Iterator[str]:
    """Yield lines that run `cockpit_run`.

    When it fails, the container stays on its node, and the nodes are given back.
    """
    kept = "cockpit-$SLURM_JOB_ID" if runtime is Runtime.PYXIS else _OVERLAY
    yield "cockpit_run"
    yield "rc=$?"
    yield 'if [ "$rc" -ne 0 ]; then'
    yield f'    left="node=$SLURMD_NODENAME with={runtime} kept={kept}" image={quoted(_source(spec))}'
    # `|| :`: the job's exit code must not depend on whether the comment could be written.
    yield '    scontrol update JobId="$SLURM_JOB_ID" Comment="cockpit:contained rc=$rc $left image=$image" || :'
    yield '    echo "cockpit: ended with $rc; its container is held for cockpit shell $SLURM_JOB_ID" >&2'
    yield "fi"
    yield 'exit "$rc"'


def held_container_of(comment: str) -> HeldContainer | None:
    """Return the held container that the comment of a job names."""
    match = _LEFT.fullmatch(comment)
    return HeldContainer(match[1], Runtime(match[2]), match[3], match[4]) if match else None


_OVERLAY = "$COCKPIT_OUTPUTS/.cockpit-overlay-$SLURM_JOB_ID-$SLURMD_NODENAME"
"""The folder where apptainer stores changed files, so that another container can continue with them."""


def _source(spec: JobSpec) -> str:
    """Return the image in the runtime's notation; apptainer's names include the source, by default a registry."""
    kind, where = image_of(spec.image)
    # apptainer takes a plain word for a file in the current folder.
    return where if kind is ImageKind.DIR or "://" in where else f"docker://{where}"


def _folders(spec: JobSpec) -> list[str]:
    """Return the folders of the node that the container sees."""
    code = [spec.algorithm.path] if spec.algorithm is not None else []
    return list(dict.fromkeys([spec.output, *code]))
