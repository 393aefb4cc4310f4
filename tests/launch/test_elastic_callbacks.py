"""The callbacks for Lightning and Accelerate, with doubles of the frameworks that have the hooks they document."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from cockpit import elastic, elastic_callbacks
from tests.launch.elastic_workers import Workers, listed

pytestmark = pytest.mark.req("EL-02", "EL-03")


class Strategy:
    """Of two ranks, of which this is one. `other_saw`: whether the other one sees a change."""

    def __init__(self) -> None:
        self.other_saw = False
        self.barriers = 0

    def reduce_boolean_decision(self, decision: bool, all: bool = True) -> bool:  # noqa: A002 - Lightning's name
        assert not all
        return decision or self.other_saw

    def broadcast(self, text: str) -> str:
        return text or "the first rank's draft"

    def barrier(self) -> None:
        self.barriers += 1


class Trainer:
    def __init__(self, *, first: bool = True) -> None:
        self.strategy, self.is_global_zero, self.global_step = Strategy(), first, 12
        self.max_steps = 40
        self.saved: list[str] = []

    def save_checkpoint(self, path: str) -> None:
        self.saved.append(path)
        if self.is_global_zero:
            Path(path).write_text("state")


@pytest.fixture
def callback(workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    framework = ModuleType("pytorch_lightning")
    framework.Callback = type("Callback", (), {})
    monkeypatch.setitem(sys.modules, "pytorch_lightning", framework)
    made = elastic_callbacks.lightning_callback(str(tmp_path))
    assert isinstance(made, framework.Callback)
    return made


def ends(call) -> int | None:
    """The code with which a call exits; None if it returns."""
    try:
        call()
    except SystemExit as ended:
        return ended.code
    return None


@pytest.mark.parametrize("hook", ["on_train_batch_start", "on_validation_batch_start"])
def test_lightning_saves_and_exits_once_a_rank_has_seen_a_change(callback, tmp_path: Path, hook: str) -> None:
    trainer = Trainer()
    look = getattr(callback, hook)
    assert ends(lambda: look(trainer, "module", "batch", 3)) is None
    trainer.strategy.other_saw = True
    assert ends(lambda: look(trainer, "module", "batch", 4)) == -1
    assert elastic.latest_checkpoint("step-*.ckpt", str(tmp_path)) == str(tmp_path / "step-12.ckpt")
    assert trainer.strategy.barriers == 1


def test_lightnings_other_ranks_write_to_the_draft_of_the_first_one(callback, workers: Workers, tmp_path: Path) -> None:
    trainer = Trainer(first=False)
    workers.show(listed(0, 1))
    assert ends(lambda: callback.on_train_batch_start(trainer, "module", "batch", 4)) == -1
    assert trainer.saved == ["the first rank's draft"]
    assert not list(tmp_path.glob("*.ckpt"))


def test_batches_between_two_looks_exchange_nothing(callback, workers: Workers, tmp_path: Path) -> None:
    seldom = elastic_callbacks.lightning_callback(str(tmp_path), every=10)
    workers.show(listed(0, 1))
    assert ends(lambda: seldom.on_train_batch_start(Trainer(), "module", "batch", 9)) is None
    assert ends(lambda: seldom.on_train_batch_start(Trainer(), "module", "batch", 10)) == -1


class Accelerator:
    """Of one rank."""

    is_main_process, device = True, "cpu"

    def __init__(self) -> None:
        self.loaded: list[str] = []

    def reduce(self, tensor, how: str):
        assert how == "sum"
        return tensor

    def save_state(self, folder: str) -> None:
        Path(folder).mkdir()
        Path(folder, "model.bin").write_text("state")

    def load_state(self, folder: str) -> None:
        self.loaded.append(folder)

    def wait_for_everyone(self) -> None:
        pass


@pytest.fixture
def accelerator(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> Accelerator:
    torch, utils = ModuleType("torch"), ModuleType("accelerate.utils")
    torch.tensor = lambda value, device: SimpleNamespace(item=lambda: value)
    utils.broadcast_object_list = lambda objects: objects
    for module in (torch, ModuleType("accelerate"), utils):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return Accelerator()


def test_accelerate_saves_a_folder_and_resumes_after_its_step(
    accelerator: Accelerator, workers: Workers, tmp_path: Path
) -> None:
    training = elastic_callbacks.AccelerateElastic(accelerator, str(tmp_path))
    assert training.resume() == 0
    assert ends(lambda: training.end_step(11)) is None
    workers.show(listed(0, 1))
    # Twice: the next start may end after the same step.
    assert [ends(lambda: training.end_step(12)) for _ in range(2)] == [-1, -1]
    assert (tmp_path / "step-12/model.bin").read_text() == "state"
    again = elastic_callbacks.AccelerateElastic(accelerator, str(tmp_path))
    assert again.resume() == 12
    assert accelerator.loaded == [str(tmp_path / "step-12")]
    assert ends(lambda: again.end_step(13)) is None


def test_a_change_before_the_script_began_is_seen_by_the_ring_of_torchrun(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not elastic_callbacks.Ring().is_over()
    monkeypatch.setenv("COCKPIT_RING", "train-worker-0,train-worker-1")
    assert elastic_callbacks.Ring().is_over()


def test_no_framework_is_imported_with_the_module() -> None:
    frameworks = {"torch", "accelerate", "lightning", "pytorch_lightning"}
    code = f"import sys, cockpit.elastic_callbacks; print([each for each in {frameworks} if each in sys.modules])"
    root = Path(elastic.__file__).parents[1]
    run = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_without_lightning_the_error_says_what_to_install(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elastic_callbacks, "_FRAMEWORKS", ("lightning_that_is.nowhere", "lightning_that_is_not"))
    with pytest.raises(ImportError, match="pip install lightning"):
        elastic_callbacks.lightning_callback()


def test_both_frameworks_report_their_steps(
    callback, accelerator: Accelerator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[tuple[int, int | None]] = []
    monkeypatch.setattr(elastic, "step", lambda done, total_steps=None: reported.append((done, total_steps)))
    trainer = Trainer()
    callback.on_train_batch_start(trainer, "module", "batch", 1)
    trainer.max_steps, trainer.global_step = -1, 13
    callback.on_train_batch_start(trainer, "module", "batch", 2)
    callback.on_train_end(trainer, "module")
    assert reported == [(12, 40), (13, None), (13, None)]
    reported.clear()
    training = elastic_callbacks.AccelerateElastic(accelerator, str(tmp_path))
    training.end_step(training.resume() + 1)
    assert reported == [(0, None), (1, None)]
