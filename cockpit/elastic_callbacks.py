"""For scripts with PyTorch Lightning or Accelerate: end together with the ring, after a checkpoint, and resume from it.

    trainer = Trainer(callbacks=[elastic_callbacks.lightning_callback()])
    trainer.fit(model, ckpt_path=elastic.latest_checkpoint("step-*.ckpt"))

    training = elastic_callbacks.AccelerateElastic(accelerator)
    first = training.resume()
    for step in range(first, steps):
        ...
        training.end_step(step + 1)

Start the script with `cockpit.elastic_torchrun`. When the job's workers change, all ranks save a checkpoint after the
same step and exit with -1; torchrun then starts them again with the new workers. Neither framework is imported before
it is needed. Every container has this module, also as `kubeai.elastic_callbacks`; it runs on Python 3.8.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Callable, List, Optional

from . import elastic

_FRAMEWORKS = ("lightning.pytorch", "pytorch_lightning")
"""Lightning's two packages, whose classes are not the same; 2.0 or later."""


class Ring:
    """The hosts with which this process was started."""

    def __init__(self) -> None:
        named = os.environ.get("COCKPIT_RING", "")
        self.hosts: List[str] = named.split(",") if named else elastic.world()["hosts"]

    def is_over(self) -> bool:
        """Return whether workers have come, have to end or have ended since. Each call is a heartbeat."""
        return bool(elastic.world()["hosts"] != self.hosts)


def lightning_callback(folder: Optional[str] = None, every: int = 1) -> Any:  # noqa: ANN401 - a class of the framework
    """Return a callback for Lightning's Trainer.

    `folder`: for checkpoints `step-N.ckpt`; by default the job's, `$COCKPIT_CHECKPOINTS`. `every`: number of batches
    between two looks at the workers, in each of which all ranks exchange a bit.
    """
    base: Any = _lightning().Callback
    ring = Ring()

    class ElasticCallback(base):  # type: ignore[misc] # a class of the framework, unknown to mypy
        """Saves a checkpoint and exits on all ranks when the workers change, in training and in validation."""

        # Before a batch, not after it: Lightning counts a batch as done only after the hook for its end.
        def on_train_batch_start(self, trainer: Any, *arguments: Any, **_: Any) -> None:  # noqa: ANN401 - as above
            # Before the first batch, these are the steps of the checkpoint.
            elastic.step(trainer.global_step, trainer.max_steps if trainer.max_steps > 0 else None)
            self._look(trainer, arguments[2])

        def on_train_end(self, trainer: Any, *_: Any) -> None:  # noqa: ANN401 - as above
            elastic.step(trainer.global_step)

        def on_validation_batch_start(self, trainer: Any, *arguments: Any, **_: Any) -> None:  # noqa: ANN401 - as above
            self._look(trainer, arguments[2])

        def _look(self, trainer: Any, batch: int) -> None:  # noqa: ANN401 - as above
            if batch % every or not trainer.strategy.reduce_boolean_decision(ring.is_over(), all=False):
                return
            path = os.path.join(_folder(folder), f"step-{trainer.global_step}.ckpt")
            _save_together(path, trainer.is_global_zero, trainer.strategy.broadcast, trainer.save_checkpoint)
            trainer.strategy.barrier()
            sys.exit(-1)

    return ElasticCallback()


class AccelerateElastic:
    """Saves the state of an Accelerator and exits on all ranks when the workers change.

    `folder`: for checkpoints, which are folders `step-N`; by default the job's, `$COCKPIT_CHECKPOINTS`.
    """

    def __init__(self, accelerator: Any, folder: Optional[str] = None) -> None:  # noqa: ANN401 - of the framework
        self._accelerator = accelerator
        self._folder = _folder(folder)
        self._ring = Ring()

    def resume(self) -> int:
        """Load the latest checkpoint into what the accelerator has prepared. Return the number of steps done."""
        path, done = elastic.latest_checkpoint("step-*", self._folder), 0
        if path is not None:
            self._accelerator.load_state(path)
            done = int(re.findall(r"\d+", os.path.basename(path))[-1])
        elastic.step(done)
        return done

    def end_step(self, done: int) -> None:
        """Call this on all ranks after each step; it exits at the end of the ring. `done`: the number of steps done."""
        elastic.step(done)
        seen = import_module("torch").tensor(float(self._ring.is_over()), device=self._accelerator.device)
        if not self._accelerator.reduce(seen, "sum").item():
            return
        self.save(done)
        sys.exit(-1)

    def save(self, done: int) -> None:
        """Save a checkpoint that is complete or absent. All ranks must call it."""
        path = os.path.join(self._folder, f"step-{done}")
        accelerator = self._accelerator

        def write(draft: str) -> None:
            accelerator.save_state(draft)
            # The first rank renames the folder next.
            accelerator.wait_for_everyone()

        _save_together(path, accelerator.is_main_process, _broadcast, write)
        accelerator.wait_for_everyone()


def _broadcast(text: str) -> str:
    """Return the text of the first rank."""
    return str(import_module("accelerate.utils").broadcast_object_list([text])[0])


def _save_together(path: str, is_first: bool, broadcast: Callable[[str], str], write: Callable[[str], object]) -> None:
    """Let all ranks write one checkpoint, which the first one then gives its name.

    `broadcast`: returns the first rank's text on every rank. `write`: returns once all ranks have written.
    """
    with ExitStack() as stack:
        draft = ""
        # A folder of that name is complete: an earlier start saved it after the same step.
        if is_first and not os.path.isdir(path):
            draft = stack.enter_context(elastic.save(path))
        draft = broadcast(draft)
        if draft:
            write(draft)


def _folder(folder: Optional[str]) -> str:
    return folder or os.environ.get("COCKPIT_CHECKPOINTS", ".")


def _lightning() -> Any:  # noqa: ANN401 - a module
    """Return the package of Lightning that the script uses: the one imported already, else one that is installed."""
    for name in _FRAMEWORKS:
        if name in sys.modules:
            return sys.modules[name]
    for name in _FRAMEWORKS:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ImportError("Lightning is not installed: pip install lightning")
