"""Sets the variables of the cluster's prologs and epilogs, by Slurm's names (prolog_epilog.html)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from cockpit.model.job import Job
    from cockpit.model.node import Allocation

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ScriptFacts(msgspec.Struct, frozen=True):
    """The facts that a node's scripts need of one replica, even after the job is gone."""

    node: str
    replicas: int
    """The number of replicas of the attempt; ranks count from 0."""
    env: dict[str, str]


def script_facts(job: Job, allocation: Allocation, cluster: str) -> ScriptFacts:
    """Return what prolog and epilog learn of a placed job. As in Slurm, nothing is from the job's own environment."""
    attempt = job.attempt
    assert attempt is not None
    cards = ",".join(str(card) for card in sorted({each.card for each in allocation.slices}))
    env = {
        "PATH": PATH,
        "SLURM_CLUSTER_NAME": cluster,
        "SLURM_JOB_ID": str(job.id),
        "SLURM_JOBID": str(job.id),
        "SLURM_JOB_NAME": job.spec.name,
        "SLURM_JOB_USER": job.submitter.name,
        "SLURM_JOB_UID": str(job.submitter.uid),
        "SLURM_JOB_GID": str(job.submitter.gid),
        "SLURM_JOB_ACCOUNT": job.account,
        "SLURM_JOB_QOS": job.qos,
        "SLURM_JOB_PARTITION": attempt.partition,
        "SLURM_JOB_RESERVATION": job.spec.reservation,
        "SLURM_JOB_NODELIST": ",".join(each.node for each in attempt.placement),
        "SLURM_JOB_NUM_NODES": str(len(attempt.placement)),
        "SLURM_JOB_WORK_DIR": job.spec.output,
        "SLURM_JOB_RESTART_COUNT": str(attempt.number - 1),
        "SLURM_JOB_GPUS": cards,
        "SLURMD_NODENAME": allocation.node,
    }
    if job.array is not None:
        env |= {"SLURM_ARRAY_JOB_ID": str(job.array.array), "SLURM_ARRAY_TASK_ID": str(job.array.index)}
    return ScriptFacts(allocation.node, len(attempt.placement), env)
