"""A small cluster set up otherwise: no database, jobs in order of submission, whole nodes, and hidden ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from cockpit.backends.slurm.backend import SlurmBackend
from cockpit.errors import RequestRefused
from cockpit.model.asking import ShellRequest
from cockpit.model.cluster import PriorityKind
from cockpit.model.ids import JobId
from cockpit.model.job import JobState
from tests.e2e.slurm_daemons import SlurmDaemons
from tests.ports import free_ports
from tests.real.slurm.conftest import backend_for, eventually
from tests.real.slurm.real_cluster import lacking
from tests.real.slurm.test_ssh import read_all

pytestmark = [pytest.mark.real, pytest.mark.real_slurm]
NOBODY = "nobody"
HOUR_MS = 3_600_000
"""The partition's limit."""
CONF = """
ClusterName=small
SlurmctldHost=localhost
SlurmctldPort={controller}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
PriorityType=priority/basic
SelectType=select/linear
PrivateData=nodes,partitions
NodeName=w1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={node} CPUs=4 RealMemory=8000
PartitionName=all Nodes=w1 Default=YES MaxTime=60 State=UP
"""


class SmallCluster(SlurmDaemons):
    """slurmctld and one slurmd."""

    def begin(self) -> None:
        controller, node = free_ports(2)
        (self.folder / "slurm.conf").write_text(CONF.format(folder=self.folder, controller=controller, node=node))
        (self.folder / "cgroup.conf").touch()
        (self.folder / "spool").mkdir()
        self._start_munge()
        self._start("slurmctld", "-D", "-i", until=lambda: "UP" in (self.ask("scontrol", "ping") or ""))
        self._start("slurmd", "-D", "-N", "w1", until=lambda: "idle" in (self.ask("sinfo", "-h", "-o", "%t") or ""))

    @property
    def env(self) -> dict[str, str]:
        return self._env

    def home(self, _person: str) -> Path:
        return self.folder


@pytest.fixture(scope="module")
def small() -> Iterator[SmallCluster]:
    if os.geteuid() != 0:
        pytest.skip("only root runs Slurm's daemons")
    if lacking():
        pytest.skip(f"a real Slurm cluster lacks {', '.join(lacking())}")
    with tempfile.TemporaryDirectory(prefix="cockpit-small-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        made = SmallCluster(Path(folder))
        try:
            made.begin()
            yield made
        finally:
            made.ask("scancel", "--user=root")
            made.stop()


@pytest.fixture
async def root(small: SmallCluster) -> SlurmBackend:
    return backend_for(small, "root")


@pytest.mark.req("SL-02", "SL-10", "SL-22")
async def test_without_a_database_and_in_order_of_submission(small: SmallCluster, root: SlurmBackend) -> None:
    work = small.folder / "work"
    work.mkdir()
    numbers = [
        int(
            (
                small.ask("sbatch", "--parsable", f"--chdir={work}", "--output=/dev/null", "--wrap=sleep 3600") or "0"
            ).strip()
        )
        for _ in range(3)
    ]
    rows = await eventually(root.jobs, lambda rows: any(row.state is JobState.RUNNING for row in rows))
    assert [row.id for row in rows] == numbers
    assert [row.state for row in rows].count(JobState.QUEUED) == 2, "each has the whole node"
    own = [(await root.explain(row.id)).forecast.likely_at for row in rows if row.queued]
    assert own[0] is not None
    assert own[1] is not None
    assert own[1] - own[0] >= HOUR_MS, "one after the other: nodes are given whole"
    shell = await root.open_shell(ShellRequest(job=JobId(numbers[0]), command=("pwd",), terminal=True))
    assert str(work).encode() in read_all(shell.terminal_fd)
    assert [row.id for row in await root.jobs(ended=True)] == numbers
    assert (await root.priorities()).kind is PriorityKind.BASIC
    assert [row.node.name for row in await root.nodes()] == ["w1"]
    assert [row.path for row in (await root.queues()).rows] == ["all"]
    with pytest.raises(RequestRefused, match="has no accounting database"):
        await root.accounting()
    with pytest.raises(RequestRefused, match="There is no job 4711"):
        await root.job(4711)


@pytest.mark.req("SL-02", "SL-11")
async def test_a_user_who_may_see_no_nodes_still_sees_jobs(small: SmallCluster, root: SlurmBackend) -> None:
    there = {row.id for row in await root.jobs()}
    nobody = backend_for(small, NOBODY)
    assert {row.id for row in await nobody.jobs()} == there
    with pytest.raises(RequestRefused, match="does not show its nodes to you"):
        await nobody.nodes()
