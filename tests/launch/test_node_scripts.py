"""The variables that the cluster's prologs and epilogs get of a replica."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.launch.nodescripts import script_facts
from cockpit.model.attempt import Attempt, Replica
from cockpit.model.ids import JobId, NodeName
from cockpit.model.job import ArrayTask
from cockpit.model.node import Allocation, CardSlice
from tests.builders import NOON, a_spec
from tests.doubles.samples import job

PLACEMENT = (
    Allocation(0, NodeName("n1"), 2, 512),
    Allocation(1, NodeName("n2"), 2, 512, (CardSlice(3, None), CardSlice(1, 0, 250), CardSlice(1, 1, 250))),
)
ATTEMPT = Attempt(
    number=3,
    spec_index=0,
    placement=PLACEMENT,
    placed_at=NOON,
    replicas=(Replica(rank=0), Replica(rank=1)),
    partition="gpu",
)
JOB = job(
    12, spec=a_spec("train", nodes=2, reservation="night"), attempt=ATTEMPT, account="nlp", qos="high", array=None
)


@pytest.mark.req("JT-24")
def test_a_nodes_scripts_get_slurms_variables_of_the_job_and_none_of_its_own() -> None:
    facts = script_facts(JOB, PLACEMENT[1], "lab")
    assert (facts.node, facts.replicas) == ("n2", 2)
    assert facts.env == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "SLURM_CLUSTER_NAME": "lab",
        "SLURM_JOB_ID": "12",
        "SLURM_JOBID": "12",
        "SLURM_JOB_NAME": "train",
        "SLURM_JOB_USER": JOB.submitter.name,
        "SLURM_JOB_UID": str(JOB.submitter.uid),
        "SLURM_JOB_GID": str(JOB.submitter.gid),
        "SLURM_JOB_ACCOUNT": "nlp",
        "SLURM_JOB_QOS": "high",
        "SLURM_JOB_PARTITION": "gpu",
        "SLURM_JOB_RESERVATION": "night",
        "SLURM_JOB_NODELIST": "n1,n2",
        "SLURM_JOB_NUM_NODES": "2",
        "SLURM_JOB_WORK_DIR": "/data/out",
        "SLURM_JOB_RESTART_COUNT": "2",
        "SLURM_JOB_GPUS": "1,3",
        "SLURMD_NODENAME": "n2",
    }


@pytest.mark.req("JT-24")
def test_scripts_of_an_array_task_know_the_array_and_the_index() -> None:
    env = script_facts(replace(JOB, array=ArrayTask(JobId(10), 2)), PLACEMENT[0], "lab").env
    assert (env["SLURM_ARRAY_JOB_ID"], env["SLURM_ARRAY_TASK_ID"]) == ("10", "2")
