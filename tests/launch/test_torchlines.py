"""Which Python commands PyTorch's launcher is put before, and that the lines which come out of it run."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from cockpit.launch.command import expand
from cockpit.launch.torchlines import torch_command
from tests.torch_launcher import needs_torch, require_launcher

PYTHON = "/usr/bin/python3"
PLACE = "--nproc_per_node=2 --nnodes=1 --node_rank=0 --master_addr=localhost --master_port=2222"
SCRIPT = """import os, sys
import torch, torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(total)
words = [word for word in sys.argv[1:] if not word.startswith("--local")]
print("rank", dist.get_rank(), "of", dist.get_world_size(), "total", total.item(), *words, flush=True)
dist.destroy_process_group()
"""


def launched(command: str, port: str = "2222") -> str:
    return torch_command(command, slots="2", nodes="1", rank="0", master="localhost", port=port)


@pytest.mark.req("LA-31")
@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("python train.py --lr 1", f"python -m torch.distributed.launch {PLACE} train.py --lr 1"),
        ("python3 -u train.py", f"python3 -u -m torch.distributed.launch {PLACE} train.py"),
        (
            "python -OO -W ignore -Xdev t.py -u",
            f"python -OO -W ignore -Xdev -m torch.distributed.launch {PLACE} t.py -u",
        ),
        (
            "python --check-hash-based-pycs never t.py",
            f"python --check-hash-based-pycs never -m torch.distributed.launch {PLACE} t.py",
        ),
        ("python -- t.py", f"python -m torch.distributed.launch {PLACE} t.py"),
        ("python -m pkg.train --m 1", f"python -m torch.distributed.launch {PLACE} --module pkg.train --m 1"),
        ("python -um pkg.train", f"python -u -m torch.distributed.launch {PLACE} --module pkg.train"),
        ("python -mpkg.train", f"python -m torch.distributed.launch {PLACE} --module pkg.train"),
        (
            "python -u -c 'import a; a.b()' x",
            f"python -u -m torch.distributed.launch {PLACE} --use_env --no_python python -u -c 'import a; a.b()' x",
        ),
        ("python t.py torchrun", f"python -m torch.distributed.launch {PLACE} t.py torchrun"),
    ],
)
def test_the_interpreters_options_stay_with_it(command: str, line: str) -> None:
    assert launched(command) == line
    assert launched(line) == line


@pytest.mark.req("LA-31")
@pytest.mark.parametrize(
    "command",
    [
        "torchrun train.py",
        "accelerate launch train.py",
        "deepspeed train.py",
        "python -m torch.distributed.run train.py",
        "python -u -mtorch.distributed.run train.py",
        "python3 -m accelerate.commands.launch train.py",
        "python -m deepspeed.launcher.runner train.py",
        "python -m horovod.runner train.py",
        "python /opt/conda/bin/torchrun train.py",
        "python /usr/lib/python3/dist-packages/torch/distributed/run.py train.py",
        "python -m debugpy --listen 5678 -m torch.distributed.run train.py",
        "python",
        "python -V",
        "python -V train.py",
        "python --help train.py",
        "python -h train.py",
        "python - train.py",
        "python -",
        "python -i",
        "python -m",
        "python2 train.py",
        "env A=1 python train.py",
    ],
)
def test_a_command_with_own_processes_or_without_a_program_is_not_changed(command: str) -> None:
    assert launched(command) == command


@pytest.mark.req("LA-31")
@needs_torch
@pytest.mark.parametrize("command", ["python3 -u train.py a", "python3 -W ignore -um pkg.train a", "python3 -c"])
def test_the_lines_run_under_the_real_launcher(command: str, tmp_path: Path) -> None:
    """PyTorch 1.13 knows under Python 3.11 only of redirected output, hence the two variables."""
    require_launcher()
    (tmp_path / "pkg").mkdir()
    for name in ("train.py", "pkg/train.py", "pkg/__init__.py"):
        (tmp_path / name).write_text("" if "__init__" in name else SCRIPT)
    if command.endswith("-c"):
        command = f"{command} '{SCRIPT}' a"
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = str(probe.getsockname()[1])
    env = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "PET_REDIRECTS": "1",
        "PET_TEE": "1",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    argv = expand(launched(command, port), {})
    run = subprocess.run(
        argv, cwd=tmp_path, env=env | {"LANG": os.environ.get("LANG", "C")}, capture_output=True, text=True, check=False
    )
    said = sorted(line for line in run.stdout.splitlines() if "rank" in line)
    assert said == [f"[default{rank}]:rank {rank} of 2 total 3 a" for rank in (0, 1)], run.stderr
