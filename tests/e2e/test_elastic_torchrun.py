"""torchrun on the workers of an elastic job: a new rendezvous whenever they change, also without the first one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import CockpitUser, eventually
from tests.e2e.test_distributed import TEES
from tests.e2e.test_elastic_training import ONE, RULES
from tests.torch_launcher import SYSTEM_PYTHON, needs_torch, require_launcher

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("host_mounts")]

SCRIPT = """
import os, sys, time
import torch
import torch.distributed as dist
from cockpit import elastic

outputs, ring = os.environ["COCKPIT_CHECKPOINTS"], os.environ["COCKPIT_RING"].split(",")
dist.init_process_group("gloo")
path = elastic.latest_checkpoint("step-*.txt")
step = int(open(path).read()) if path else 0
print("rank", dist.get_rank(), "of", dist.get_world_size(), "from", step, flush=True)
while True:
    seen = torch.tensor([float(elastic.world()["hosts"] != ring), float(os.path.exists(outputs + "/gate"))])
    dist.all_reduce(seen)
    if seen[1]:
        sys.exit(0)
    if seen[0]:
        if dist.get_rank() == 0:
            with elastic.save(f"{outputs}/step-{step}.txt") as draft, open(draft, "w") as stream:
                stream.write(str(step))
        dist.barrier()
        os._exit(255)
    step += 1
    time.sleep(0.01)
"""
RANK = re.compile(r"rank (\d) of (\d) from (\d+)")


def rings(user: CockpitUser, job: str, replica: int) -> Sequence[tuple[str, ...]]:
    """Rank, size and first step of each ring that the worker was in."""
    return RANK.findall(user.run("logs", f"{job}/{replica}").stdout.decode())


@needs_torch
@pytest.mark.req("EL-01", "EL-02", "EL-03")
def test_torchrun_trains_on_with_the_workers_that_there_are(user: CockpitUser) -> None:
    require_launcher()
    user.configure("cluster.toml", RULES)
    user.write("train/algo/train.py", SCRIPT)
    user.ok("nodes", "drain", "n3", "--reason", "later")
    job = user.submit(
        "",
        name="train",
        command=f"{SYSTEM_PYTHON} -m cockpit.elastic_torchrun /workspace/algorithm/train.py",
        specs=ONE,
        env=TEES,
        elastic={"workers": 2, "min_workers": 1, "max_workers": 3},
    )

    def last_ring(*replicas: int) -> bool:
        expected = [(str(rank), str(len(replicas))) for rank in range(len(replicas))]
        return [tuple(each[-1][:2]) if (each := rings(user, job, replica)) else () for replica in replicas] == expected

    eventually(lambda: last_ring(0, 1), 250)
    # The first worker, where the rendezvous is, leaves; the second continues alone from the checkpoint.
    user.ok("nodes", "drain", "n1", "--reason", "spot", "--within", "60s")
    eventually(lambda: last_ring(1), 250)
    user.ok("nodes", "resume", "n3")
    eventually(lambda: last_ring(1, 2), 250)
    (user.work / "train/out/gate").touch()
    assert user.wait(job) == 0, user.ok("events", job) + user.ok("logs", f"{job}/1", "--stderr")
    starts = [int(first) for _, _, first in rings(user, job, 1)]
    assert starts == sorted(set(starts))
