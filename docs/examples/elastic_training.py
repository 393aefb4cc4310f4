"""Train a small model with PyTorch on workers that come and go; docs/elastic.md explains it part by part.

Whatever the number of workers at a step, its batch is the same. The result is that of one process that nothing
disturbs, up to the order in which floating-point numbers are added. Without cockpit it runs as that one process:

    PYTHONPATH=. python3 docs/examples/elastic_training.py
"""

import json
import os
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss

from cockpit import elastic

SAMPLES, EPOCHS = 240, 5
GLOBAL_BATCH, MICRO_BATCH = 24, 4  # samples of a step, and of one forward pass on one worker
STEPS = EPOCHS * SAMPLES // GLOBAL_BATCH
PORT = 29400
JOINED = set()  # the rings that this process has been in
LOST = (RuntimeError, OSError)  # raised by torch.distributed where another worker does not answer
OUTPUTS = os.environ.get("COCKPIT_CHECKPOINTS", ".")
RESULT = os.path.join(OUTPUTS, "result.json")

torch.set_num_threads(1)
_random = torch.Generator().manual_seed(7)
X = torch.randn(SAMPLES, 8, generator=_random)
Y = torch.tanh(X.sum(1, keepdim=True) / 2) + 0.05 * torch.randn(SAMPLES, 1, generator=_random)


class Training:
    """Everything that a new worker needs in order to continue: what a checkpoint contains."""

    def __init__(self):
        torch.manual_seed(1)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.losses = []  # of each step
        self.ledger = []  # of each step, the samples that were used

    @property
    def step(self):
        return len(self.ledger)

    def state(self):
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "losses": self.losses,
            "ledger": self.ledger,
        }

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.losses, self.ledger = state["losses"], state["ledger"]

    def save(self):
        with elastic.save(os.path.join(OUTPUTS, f"step-{self.step}.pt")) as path:
            torch.save(self.state(), path)

    def resume(self):
        path = elastic.latest_checkpoint("step-*.pt", OUTPUTS)
        if path is not None:
            self.load(torch.load(path))

    def share(self, ring):
        """Let all workers of a new ring continue from the furthest step that one of them has completed."""
        if ring.size == 1:
            return
        steps = [torch.zeros(1) for _ in range(ring.size)]
        dist.all_gather(steps, torch.tensor([float(self.step)]))
        source = max(range(ring.size), key=lambda rank: steps[rank].item())
        states = [self.state()]
        dist.broadcast_object_list(states, source)
        self.load(states[0])


class Ring:
    """The workers that train together until others come or one of them goes.

    They meet at a store in the first worker's process. It numbers the rings, so that no worker takes the addresses of
    an earlier ring of the same hosts for those of this one.
    """

    _server = None

    def __init__(self):
        """Wait until all workers of the world are here. Exit if this worker has to end, or the others have ended."""
        while not self._join(elastic.world()):
            if not elastic.check_alive():
                sys.exit(-1)
            if os.path.exists(RESULT):
                sys.exit(0)
            time.sleep(0.05)

    def _join(self, world):
        self.hosts, self.rank, self.size = world["hosts"], world["rank"], world["size"]
        if self.rank is None or self.size == 1:
            return self.rank is not None
        try:
            store = self._store()
            names = ",".join(self.hosts)
            if self.rank == 0:
                store.set(names, str(store.add("rings", 1)))
            number = None
            # The world may change while this worker waits for the others, of which some may be starting.
            while elastic.world()["hosts"] == self.hosts:
                number = number or self._count_in(store, names)
                if number and store.add(f"{number}/here", 0) == self.size:
                    found = dist.PrefixStore(number, store)
                    limit = timedelta(seconds=60)
                    dist.init_process_group("gloo", store=found, rank=self.rank, world_size=self.size, timeout=limit)
                    return True
                time.sleep(0.02)
        except LOST as error:  # no answer yet, or no longer
            print("ring:", str(error).splitlines()[0], file=sys.stderr, flush=True)
            self.leave()
        return False

    def _store(self):
        patience = timedelta(seconds=5)
        if self.rank:
            return dist.TCPStore(self.hosts[0], PORT, is_master=False, timeout=patience)
        if Ring._server is None:
            Ring._server = dist.TCPStore("localhost", PORT, is_master=True, timeout=patience, wait_for_workers=False)
        return Ring._server

    def _count_in(self, store, names):
        number = store.get(names).decode()
        if (self.hosts[0], number) in JOINED:
            return None  # that ring is over, and the first worker is about to number a new one
        JOINED.add((self.hosts[0], number))
        store.add(f"{number}/here", 1)
        return number

    def has_changed(self):
        return elastic.world()["hosts"] != self.hosts

    def sum(self, values):
        if self.size > 1:
            dist.all_reduce(values)

    def leave(self):
        if dist.is_initialized():
            dist.destroy_process_group()


def batch(step):
    """Return the samples of a step. Every sample comes once in an epoch, in an order that all workers know."""
    epoch, first = divmod(step * GLOBAL_BATCH, SAMPLES)
    order = torch.randperm(SAMPLES, generator=torch.Generator().manual_seed(epoch))
    return order[first : first + GLOBAL_BATCH]


def train_step(training, ring):
    """Do one step together. Return whether a worker has seen that the world has changed: then all leave the ring."""
    parts = batch(training.step).split(MICRO_BATCH)[ring.rank :: ring.size]
    used, loss_sum = torch.zeros(SAMPLES), torch.zeros(1)
    parameters = list(training.model.parameters())
    training.optimizer.zero_grad()
    for part in parts:  # accumulates gradients: with fewer workers, each has more parts
        loss = mse_loss(training.model(X[part]), Y[part], reduction="sum") / GLOBAL_BATCH
        loss.backward()
        loss_sum += loss.detach()
        used[part] += 1
    gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in parameters]
    # One message for all: either every worker gets everything of this step, or it raises an error.
    message = torch.cat(
        [*(each.flatten() for each in gradients), used, loss_sum, torch.tensor([float(ring.has_changed())])]
    )
    ring.sum(message)
    *summed, used, loss_sum, changed = message.split([*(each.numel() for each in parameters), SAMPLES, 1, 1])
    for parameter, gradient in zip(parameters, summed):
        parameter.grad = gradient.view_as(parameter)
    training.optimizer.step()
    training.losses.append(loss_sum.item())
    training.ledger.append([sample for sample, times in enumerate(used.tolist()) for _ in range(round(times))])
    return changed.item() > 0


def report(training, ring):
    if ring.rank == 0:
        print(f"step {training.step}: loss {training.losses[-1]:.4f}, workers {ring.size}", flush=True)


def leave_together(ring):
    """Leave the ring after a step that was its last, and wait until this worker too sees the change."""
    ring.leave()
    until = time.monotonic() + 30
    while not ring.has_changed() and time.monotonic() < until:
        time.sleep(0.02)


def main():
    elastic.init()
    training = Training()
    training.resume()
    ring = None
    while training.step < STEPS:
        try:
            if ring is None:
                ring = Ring()
                training.share(ring)
                elastic.step(training.step, total_steps=STEPS)
            changed = train_step(training, ring)
        except LOST as error:  # a worker was killed: its connections are closed
            print("step:", str(error).splitlines()[0], file=sys.stderr, flush=True)
            ring.leave()
            ring = None
            continue
        elastic.step(training.step)
        report(training, ring)
        if changed:
            leave_together(ring)
            ring = None
        if elastic.checkpoint_requested() or (ring and ring.rank == 0 and training.step % 10 == 0):
            training.save()
        if not elastic.check_alive():
            sys.exit(-1)
    if ring is None or ring.rank == 0:
        with elastic.save(RESULT) as path, open(path, "w") as stream:
            json.dump({"losses": training.losses, "ledger": training.ledger}, stream)


if __name__ == "__main__":
    main()
