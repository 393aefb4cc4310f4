"""Checks the rules of a cluster against each other, as slurm.conf's manual states and slurmctld enforces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cockpit.model.cluster import Partition, Preemption, Project

_EXCLUSIVE = ("CANCEL", "REQUEUE", "SUSPEND")


def preemption_errors(preemption: Preemption, *, kind: str = "type", mode: str = "mode") -> Iterator[str]:
    """Yield what is wrong with the rules of preemption.

    `kind`, `mode`: what the file calls the two. Source: slurm.conf(5), PreemptMode; slurmctld's own check.
    """
    modes = set(preemption.mode)
    acts = [each for each in _EXCLUSIVE if each in modes]
    if not modes:
        yield f"{mode}: is empty; write OFF, CANCEL, REQUEUE or SUSPEND,GANG"
    if "OFF" in modes and len(modes) > 1:
        yield f"{mode}: OFF excludes all other modes; remove it, or the others"
    if len(acts) > 1:
        yield f"{mode}: {' and '.join(acts)} exclude each other; keep one"
    if "SUSPEND" in modes and "GANG" not in modes:
        yield f"{mode}: SUSPEND needs GANG beside it, which resumes what was suspended; write SUSPEND,GANG"
    if preemption.kind == "preempt/none" and acts:
        yield f"{mode}: {acts[0]} needs another {kind} than preempt/none; set it, or write OFF"
    if preemption.kind != "preempt/none" and modes and not acts:
        yield f"{mode}: {preemption.kind} needs CANCEL, REQUEUE or SUSPEND,GANG"
    if "WITHIN" in modes and preemption.kind != "preempt/qos":
        yield f"{mode}: WITHIN is for preempt/qos"
    if {"WITHIN", "GANG"} <= modes:
        yield f"{mode}: WITHIN and GANG exclude each other; keep one"


def partition_errors(partitions: Sequence[Partition]) -> Iterator[str]:
    """Return conflicts between the partitions of a file."""
    seen: set[str] = set()
    defaults = [each.name for each in partitions if each.default]
    for at, each in enumerate(partitions):
        if each.name in seen:
            yield f"partitions[{at}].name: {each.name} is the name of an earlier partition"
        seen.add(each.name)
        if each.default and each.name != defaults[0]:
            yield f"partitions[{at}].default: {defaults[0]} is the default already"
        yield from _bounds_errors(f"partitions[{at}]", each)


def project_errors(projects: Sequence[Project]) -> Iterator[str]:
    """Return conflicts between the projects of a file."""
    seen: set[str] = set()
    for at, each in enumerate(projects):
        if each.name in seen:
            yield f"projects[{at}].name: {each.name} is the name of an earlier project"
        seen.add(each.name)


def _bounds_errors(at: str, partition: Partition) -> Iterator[str]:
    """Yield bounds of a partition that exclude each other."""
    if partition.max_nodes is not None and partition.max_nodes < partition.min_nodes:
        yield f"{at}.max_nodes: is below min_nodes, so no job ever fits"
    longest, usual = partition.max_time_seconds, partition.default_time_seconds
    if longest is not None and usual is not None and usual > longest:
        yield f"{at}.default_time: is above max_time"
    for allow, deny in (("allow_accounts", "deny_accounts"), ("allow_qos", "deny_qos")):
        if getattr(partition, allow) and getattr(partition, deny):
            yield f"{at}.{deny}: counts for nothing beside {allow}; keep one of them"
