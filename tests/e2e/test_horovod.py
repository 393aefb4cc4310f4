"""Horovod itself, with the elastic driver that `horovodrun` has, on real workers: a reclaim, and a growth.

It is compiled, which takes many minutes, and therefore no package of the tests. COCKPIT_HOROVOD names a folder with it,
for Debian's torch (packages libtorch-dev and pybind11-dev):

    HOROVOD_WITH_PYTORCH=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1 HOROVOD_WITHOUT_TENSORFLOW=1 \\
        HOROVOD_WITHOUT_MXNET=1 \\
        pip install --target FOLDER --no-build-isolation --no-deps horovod==0.28.1 cloudpickle packaging
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.e2e.cockpit_user import eventually
from tests.torch_launcher import SYSTEM_PYTHON, needs_torch

if TYPE_CHECKING:
    from tests.e2e.cockpit_user import CockpitUser

HOROVOD = os.environ.get("COCKPIT_HOROVOD", "")
pytestmark = [
    pytest.mark.real,
    needs_torch,
    pytest.mark.usefixtures("host_mounts"),
    pytest.mark.skipif(not HOROVOD, reason="COCKPIT_HOROVOD names no folder with Horovod"),
]

NODE = '{{ name = "n{}", cpus = 1, memory = "1G" }}'
RULES = f"overcommit = true\nnodes = [{', '.join(map(NODE.format, range(1, 4)))}]\n"
ENV = {
    "PYTHONPATH": "/workspace/volume/horovod",
    "OMP_NUM_THREADS": "1",
    # A new worker imports PyTorch, for which Horovod's 30 s are too short where many others run.
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "300",
}
SECONDS = 300
"""Patience, for the same reason."""
COMMAND = (
    f"{SYSTEM_PYTHON} -m horovod.runner.launch --gloo --start-timeout 300 -np $((${{workers}}*${{gpus}})) "
    "--min-np $((${minWorkers}*${gpus})) --max-np $((${maxWorkers}*${gpus})) "
    f"--host-discovery-script /etc/edl/discover_hosts.sh {SYSTEM_PYTHON} /workspace/algorithm/train.py"
)
TRAIN = """
import os, time
import torch
import horovod.torch as hvd

hvd.init()
out = os.environ["COCKPIT_OUTPUTS"]
model = torch.nn.Linear(4, 1)
optimizer = hvd.DistributedOptimizer(
    torch.optim.SGD(model.parameters(), 0.01), named_parameters=model.named_parameters()
)

@hvd.elastic.run
def train(state):
    while not state.ends:
        optimizer.zero_grad()
        model(torch.ones(8, 4)).square().mean().backward()
        optimizer.step()
        state.step += 1
        state.ends = bool(hvd.allreduce(torch.tensor(float(os.path.exists(out + "/end")))))
        if hvd.rank() == 0:
            with open(out + "/ring.new", "w") as file:
                file.write(f"{hvd.size()} {state.step}")
            os.rename(out + "/ring.new", out + "/ring")
        time.sleep(0.1)
        state.commit()

state = hvd.elastic.TorchState(model=model, optimizer=optimizer, step=0, ends=False)
train(state)
print("done", hvd.rank(), hvd.size(), flush=True)
"""


def ring(user: CockpitUser) -> tuple[int, int]:
    """The size of the ring and the number of steps, as rank 0 wrote it last."""
    with suppress(FileNotFoundError):
        size, step = (user.work / "train/out/ring").read_text().split()
        return int(size), int(step)
    return 0, 0


@pytest.mark.req("EL-01", "EL-02", "EL-06")
def test_horovodrun_trains_on_with_the_hosts_that_the_script_prints(user: CockpitUser) -> None:
    user.configure("cluster.toml", RULES)
    user.write("train/algo/train.py", TRAIN)
    user.ok("nodes", "drain", "n3", "--reason", "later")
    job = user.submit(
        "",
        name="train",
        mode="horovod",
        command=COMMAND,
        specs=[{"cpus": 1, "memory": "900M"}],
        volumes=[{"name": "horovod", "path": HOROVOD}],
        env=ENV,
        elastic={"workers": 2, "min_workers": 1, "max_workers": 3},
    )
    eventually(lambda: ring(user)[0] == 2, SECONDS)

    # A node is taken back: the ring goes on with one worker, and with the state of the step that was committed.
    before = ring(user)[1]
    user.ok("reclaim", "n2", "--grace", "10")
    eventually(lambda: ring(user)[0] == 1, SECONDS)
    assert ring(user)[1] >= before

    # Nodes come free: the job grows, and the ring with it.
    before = ring(user)[1]
    user.ok("nodes", "resume", "n2", "n3")
    eventually(lambda: ring(user)[0] == 3, SECONDS)
    assert ring(user)[1] >= before
    (user.work / "train/out/end").touch()
    assert user.wait(job) == 0, json.dumps(user.rows("events", job)) + user.ok("logs", f"{job}/0", "--stderr")
    assert "done 0 3" in user.ok("logs", f"{job}/0")
