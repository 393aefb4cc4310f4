"""The callbacks in the real PyTorch Lightning and Accelerate.

They are large, and therefore no packages of the tests. COCKPIT_FRAMEWORKS names a folder with them, for Debian's torch:

    pip install --target FOLDER --no-deps pytorch-lightning==2.0.9 lightning-utilities==0.10.0 torchmetrics==1.2.1 \\
        accelerate==0.24.1 'huggingface_hub<0.24' fsspec packaging tqdm PyYAML psutil filelock requests urllib3 idna \\
        certifi charset_normalizer typing_extensions
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cockpit import elastic
from tests.launch.elastic_workers import Workers, listed
from tests.torch_launcher import SYSTEM_PYTHON, needs_torch

FRAMEWORKS = os.environ.get("COCKPIT_FRAMEWORKS", "")
pytestmark = [
    needs_torch,
    pytest.mark.req("EL-03"),
    pytest.mark.skipif(not FRAMEWORKS, reason="COCKPIT_FRAMEWORKS names no folder with Lightning and Accelerate"),
]

BEGIN = """
import dataclasses, os, sys
made = dataclasses.dataclass
def dataclass(cls=None, **options):
    # Debian's torch 1.13 is older than Python 3.11, which requires hashes of defaults
    def wrap(each):
        hashed = "__hash__" in each.__dict__ or "eq" in options
        return made(each, **({} if hashed else {"unsafe_hash": True}) | options)
    return wrap if cls is None else wrap(cls)
dataclasses.dataclass = dataclass
import torch
from cockpit import elastic, elastic_callbacks

X = torch.randn(64, 4)
def change(step):
    if step == int(sys.argv[1]):
        os.rename("next", "workers.json")
"""
LIGHTNING = """
import pytorch_lightning as lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, index):
        change(self.global_step)
        print("step", self.global_step, flush=True)
        return self.layer(batch).square().mean()
    def validation_step(self, batch, index):
        pass
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
batches = torch.utils.data.DataLoader(X, batch_size=8)
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    callbacks=[elastic_callbacks.lightning_callback()],
)
trainer.fit(Model(), batches, batches, ckpt_path=elastic.latest_checkpoint("step-*.ckpt"))
"""
ACCELERATE = """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
training = elastic_callbacks.AccelerateElastic(accelerator)
for step in range(training.resume(), 16):
    change(step)
    print("step", step, flush=True)
    accelerator.backward(model(X).square().mean())
    optimizer.step()
    training.end_step(step + 1)
"""


@pytest.mark.parametrize(
    ("script", "name"), [(LIGHTNING, "step-6.ckpt"), (ACCELERATE, "step-6")], ids=["lightning", "accelerate"]
)
def test_a_script_ends_with_a_checkpoint_after_a_change_and_resumes_from_it(
    tmp_path: Path, script: str, name: str
) -> None:
    workers = Workers(tmp_path)
    workers.show(listed(0))
    (tmp_path / "next").write_bytes(listed(0, 1))
    env = {
        **os.environ,
        "PYTHONPATH": f"{Path(elastic.__file__).parents[1]}:{FRAMEWORKS}",
        "COCKPIT_WORKERS_FILE": str(workers.file),
        "COCKPIT_CHECKPOINTS": str(tmp_path),
    }

    def run(change_at: int) -> tuple[int, list[int], str]:
        words = [SYSTEM_PYTHON, "-c", BEGIN + script, str(change_at)]
        ended = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
        steps = [int(line.split()[1]) for line in ended.stdout.splitlines() if line.startswith("step ")]
        return ended.returncode, steps, ended.stderr

    code, steps, errors = run(5)
    assert (code, steps) == (255, [*range(6)]), errors
    assert (tmp_path / name).exists()
    code, steps, errors = run(-1)
    assert (code, steps) == (0, [*range(6, 16)]), errors
