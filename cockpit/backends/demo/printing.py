"""Computes what jobs print from their script and their run time so far: longer runs only append."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from cockpit.backends.demo.fixture import Printing
from cockpit.model.asking import LogStream
from cockpit.model.ids import ReplicaId
from cockpit.runtime.containers.shim.logorder import RECORD, order_path
from cockpit.runtime.logs import log_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from cockpit.backends.demo.scripts import Scripts
    from cockpit.engine.ports import Clock
    from cockpit.engine.steps import StepLog
    from cockpit.model.attempt import ExitStatus, Replica
    from cockpit.model.job import Job
    from cockpit.model.steps import StepReport


LINES = 240
"""The number of lines in a whole run, however long it is; a short one has a line every `LEAST_MS`."""
LEAST_MS = 2_000
BAR = 20


def printed_until(printing: Printing, total_ms: int, elapsed_ms: int, chance: Random) -> str:
    """Return the standard output after `elapsed_ms`; `total_ms` is the length of the whole run."""
    lines = max(1, min(LINES, total_ms // LEAST_MS))
    done = int(lines * min(1.0, elapsed_ms / max(1, total_ms)))
    text = _HEADERS[printing] + "".join(_BODIES[printing](done, lines, chance))
    return text if done < lines else text + _ENDS[printing]


def steps_until(report: StepReport | None, chance: Random) -> str:
    """Return the standard output of an elastic training that has reported this; None: nothing yet."""
    text = _HEADERS[Printing.TRAINING]
    if report is None or report.total is None:
        return text
    every = max(1, report.total // LINES)
    # From the first line behind the checkpoint on, as the script has loaded that.
    for step in range((report.began // every + 1) * every, report.step + 1, every):
        text += _training_line(step, report.total, chance)
    return text + _ENDS[Printing.TRAINING] if report.step == report.total else text


def error_output(status: ExitStatus, chance: Random) -> str:
    """Return the standard error of a replica that has ended."""
    # A replica that was killed (9) prints nothing: it could not.
    if status.signal == 15:
        return "received SIGTERM, leaving\n"
    if status.code == 3:
        return _BAD_INPUT.format(row=chance.randrange(100, 90_000))
    return chance.choice(_TRACEBACKS) if status.code else ""


def _training(done: int, lines: int, chance: Random) -> Iterator[str]:
    """Yield the lines of a training run up to `done`: a falling loss, a rate that warms up, and checkpoints."""
    for at in range(1, done + 1):
        yield _training_line(at * 25, lines * 25, chance)
        if at % 40 == 0:
            yield f"saved /workspace/outputs/checkpoint-{at * 25}\n"


def _training_line(step: int, steps: int, chance: Random) -> str:
    share = step / steps
    loss = 0.9 + 1.9 * math.exp(-3.2 * share) + chance.gauss(0, 0.03)
    rate = 2e-5 * min(1.0, share * 20) * (1 - share * 0.9)
    speed = chance.gauss(14.2, 0.2)
    return (
        f"step {step:>5}/{steps}  epoch {3 * share:4.2f}  loss {loss:6.4f}  lr {rate:.2e}"
        f"  grad {abs(chance.gauss(0.8, 0.15)):4.2f}  {speed:4.1f}k tok/s\n"
    )


def _progress(done: int, lines: int, chance: Random) -> Iterator[str]:
    """Yield a tqdm bar that redraws itself with carriage returns; ten epochs, or as many as there are lines."""
    epochs = min(10, lines)
    for at in range(1, done + 1):
        epoch = (at * epochs - 1) // lines
        # The lines of an epoch; `at` is within them, so `last > first`.
        first, last = epoch * lines // epochs, (epoch + 1) * lines // epochs
        share = (at - first) / (last - first)
        full = round(share * BAR)
        loss = 0.31 * math.exp(-2 * at / lines) + abs(chance.gauss(0, 0.004))
        bar = "█" * full + " " * (BAR - full)
        end = "\n" if at == last else ""
        steps = round(share * 1000)
        yield f"\rEpoch {epoch + 1:>2}/{epochs}: {share:4.0%}|{bar}| {steps:>4}/1000 [loss={loss:.4f}]{end}"


def _evaluation(done: int, lines: int, chance: Random) -> Iterator[str]:
    right = 0.0
    for at in range(1, done + 1):
        right += chance.gauss(0.842, 0.02)
        yield f"batch {at:>4}/{lines}  accuracy {min(1.0, right / at):.4f}  {chance.gauss(212, 9):5.1f} ms\n"


def _shards(done: int, lines: int, chance: Random) -> Iterator[str]:
    for at in range(1, done + 1):
        dropped = max(0, int(chance.gauss(3, 4)))
        yield f"shard {at:04}/{lines:04}: {chance.randrange(17_000, 21_000)} documents, {dropped} dropped\n"


def _notebook(done: int, _lines: int, chance: Random) -> Iterator[str]:
    for _ in range(done):
        page = chance.choice(("/api/contents/explore.ipynb", "/api/kernels", "/api/sessions", "/lab/api/settings"))
        yield f"[I ServerApp] 200 GET {page} (10.1.0.{chance.randrange(2, 90)}) {abs(chance.gauss(4, 2)):.2f}ms\n"


_HEADERS = {
    Printing.TRAINING: "torch 2.6.0+cu124, nccl 2.23.4\nreading /workspace/algorithm/config.yaml\n",
    Printing.PROGRESS: "found 1 281 167 images in 1 000 classes\n",
    Printing.EVALUATION: "loading best.pt (1.34 GB)\n",
    Printing.SHARDS: "reading /workspace/algorithm/manifest.txt\n",
    Printing.NOTEBOOK: "[I ServerApp] Serving notebooks from local directory: /workspace/algorithm\n"
    "[I ServerApp] Jupyter Server 2.15.0 is running at http://0.0.0.0:8888/lab\n",
}
_BODIES: dict[Printing, Callable[[int, int, Random], Iterator[str]]] = {
    Printing.TRAINING: _training,
    Printing.PROGRESS: _progress,
    Printing.EVALUATION: _evaluation,
    Printing.SHARDS: _shards,
    Printing.NOTEBOOK: _notebook,
}
_ENDS = {
    Printing.TRAINING: "saved /workspace/outputs/final\ndone\n",
    Printing.PROGRESS: "\nsaved /workspace/outputs/model.safetensors\n",
    Printing.EVALUATION: "wrote /workspace/outputs/results.json\n",
    Printing.SHARDS: "all shards written\n",
    Printing.NOTEBOOK: "[I ServerApp] Shutting down 1 kernel\n",
}
_BAD_INPUT = """\
checking the input …
error: manifest.txt, line {row}: the file it names is empty
nothing was written; repair the manifest and start again
"""
_TRACEBACKS = (
    """\
Traceback (most recent call last):
  File "/workspace/algorithm/train.py", line 214, in <module>
    main()
  File "/workspace/algorithm/train.py", line 187, in main
    loss = step(model, batch)
  File "/workspace/algorithm/train.py", line 96, in step
    logits = model(batch["tokens"].cuda(non_blocking=True))
RuntimeError: CUDA error: device-side assert triggered
""",
    """\
Traceback (most recent call last):
  File "/workspace/algorithm/train.py", line 214, in <module>
    main()
  File "/workspace/algorithm/train.py", line 171, in main
    state = torch.load(args.resume, map_location="cpu")
FileNotFoundError: [Errno 2] No such file or directory: '/workspace/outputs/checkpoint-1000/state.pt'
""",
    """\
Traceback (most recent call last):
  File "/workspace/algorithm/train.py", line 214, in <module>
    main()
  File "/workspace/algorithm/train.py", line 189, in main
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of
which 1.21 GiB is free.
""",
)


UNENDING = 1.3
"""A run that only its time limit ends, printed as if it were so many limits long."""


class LogFiles:
    """The log files below `folder`, where the engine looks for them. `steps`: what elastic trainings have reported."""

    def __init__(self, folder: Path, scripts: Scripts, clock: Clock, steps: StepLog) -> None:
        self._folder = folder
        self._steps = steps
        self._scripts = scripts
        self._clock = clock

    def bring_up(self, job: Job) -> None:
        """Write what the replicas of the job's current attempt have printed by now."""
        for replica in job.attempt.replicas if job.attempt is not None else ():
            if replica.started_at is not None:
                self._append(job, replica, LogStream.STDOUT, self._output(job, replica, replica.started_at))
                self._append(job, replica, LogStream.STDERR, self._errors(job, replica))
                self._record_order(job, replica, replica.started_at)

    def _append(self, job: Job, replica: Replica, stream: LogStream, text: str) -> None:
        """Append only what is missing, so that a reader's position in the file stays valid."""
        assert job.attempt is not None
        path = log_path(self._folder, ReplicaId(job.id, job.attempt.number, replica.rank), stream)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            # In append mode `tell` is the size of the file, which is as much as was printed before.
            file.write(text.encode()[file.tell() :])

    def _record_order(self, job: Job, replica: Replica, started_at: int) -> None:
        """Record when the new lines came, as a holder would: those of stdout evenly since the last one, then stderr."""
        assert job.attempt is not None
        ids = ReplicaId(job.id, job.attempt.number, replica.rank)
        out, err = (log_path(self._folder, ids, stream) for stream in (LogStream.STDOUT, LogStream.STDERR))
        with Path(order_path(str(out))).open("a+b") as order:
            size = order.seek(0, os.SEEK_END)
            order.seek(max(0, size - RECORD.size))
            last = RECORD.unpack(order.read(RECORD.size)) if size else (started_at, 0, 0)
            at, whole, errors = last
            until = replica.ended_at if replica.ended_at is not None else self._clock.now()
            ends = [whole + each.end() for each in re.finditer(rb"\n", out.read_bytes()[whole:])]
            order.writelines(
                RECORD.pack(at + (until - at) * number // len(ends), end, errors) for number, end in enumerate(ends, 1)
            )
            if (now := err.stat().st_size) > errors:
                order.write(RECORD.pack(until, ends[-1] if ends else whole, now))

    def _output(self, job: Job, replica: Replica, started_at: int) -> str:
        """Return what a replica has printed until now, or until it ended."""
        script = self._scripts.of(job.spec)
        # The same chance at every call: the text so far has to come out the same, for `_append` to add only the rest.
        chance = self._scripts.chance("printed", job.spec.name, replica.rank)
        if job.spec.elastic is not None and job.attempt is not None and script.printing is Printing.TRAINING:
            # How far it is depends on its workers, and not on the time alone.
            reported = self._steps.of(ReplicaId(job.id, job.attempt.number, replica.rank))
            return steps_until(replica.steps or reported, chance)
        limit_ms = job.spec.time_limit_seconds * 1000
        total_ms = int(UNENDING * limit_ms) if script.runs_ms is None else script.runs_ms
        # A failing job prints at the pace of a whole run, and stops in the middle of it.
        if not script.exit.ok:
            total_ms = max(total_ms, limit_ms)
        until = replica.ended_at if replica.ended_at is not None else self._clock.now()
        return printed_until(script.printing, total_ms, until - started_at, chance)

    def _errors(self, job: Job, replica: Replica) -> str:
        if replica.exit is None:
            return ""
        return error_output(replica.exit, self._scripts.chance("complained", job.spec.name))
