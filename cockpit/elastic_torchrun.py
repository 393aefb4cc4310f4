"""Run PyTorch's torchrun on an elastic job's workers, and again whenever these change.

    command: python3 -m cockpit.elastic_torchrun [options of torchrun] /workspace/algorithm/train.py

Every worker runs it. It starts torchrun with as many nodes as the job has workers, each with its rank among them, and
with the rendezvous at the first of the job's hosts. So the rank 0 of the script is on the worker that has been there
longest; torchrun's own elastic mode would order the nodes by their names. When the workers change, the script should
save a checkpoint and exit with -1 on all of them together; `elastic_callbacks` does that. A script that has not ended
after `PATIENCE_SECONDS` gets SIGTERM, except on a worker that has to end: the engine gives it a time of its own. Then
torchrun starts again with the new hosts, and the script resumes from its checkpoint. Exit code 0 of the script ends
this worker. For the same hosts, torchrun is started again at most three times.

Every container has it, also as `kubeai.elastic_torchrun`. Standard library only; runs on Python 3.8.
"""

from __future__ import annotations

import binascii
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, List

from . import elastic

PORTS = range(29400, 30400)
"""Ports of the rendezvous, from torchrun's own default on. The hosts of a ring choose one."""
PATIENCE_SECONDS = 60
"""Longest time for a script to end by itself after a change."""
_IDLE_SECONDS = 5
"""Longest time after a change for a torchrun without a script to end by itself."""
_NEWS_SECONDS = 10
"""Longest time between the end of a worker and the notice about it."""
_TERM_SECONDS = 40
"""Longest time for torchrun to end after SIGTERM: it gives its script 30 s."""
_MOST_FAILURES = 3
"""How often torchrun may fail with the same hosts, such as by meeting the store of the ring before."""
_LOOK_SECONDS = 0.1


class Supervisor:
    """Runs torchrun for one ring after the other. `arguments`: torchrun's, with the script and its own."""

    def __init__(self, arguments: List[str]) -> None:
        self._arguments = arguments
        self._env = dict(os.environ)
        # Only the script's own calls are heartbeats: this process would beat for a script that hangs.
        os.environ.pop("COCKPIT_PULSE_FILE", None)
        self._changed = threading.Event()

    def run(self) -> int:
        """Return the exit code of this worker."""
        elastic.on_change(lambda _: self._changed.set())
        # The engine signals torchrun too, which is in the same process group; this process reports how that ends.
        signal.signal(signal.SIGTERM, lambda *_: None)
        failures = 0
        while True:
            self._changed.clear()
            ring = elastic.world()
            if ring["rank"] is None:
                return -1
            code = self._run_once(ring)
            if code == 0:
                return 0
            if self._is_over(ring, within_seconds=_NEWS_SECONDS):
                failures = 0
                continue
            failures += 1
            if failures > _MOST_FAILURES:
                return code

    def _run_once(self, ring: Dict[str, Any]) -> int:
        """Run torchrun until it has ended, and return its exit code. A script that ignores a change is terminated."""
        process = subprocess.Popen(command(ring, self._env, self._arguments), env=environment(ring, self._env))
        over_at = busy_at = 0.0
        while process.poll() is None:
            now = time.monotonic()
            if _children(process.pid):
                busy_at = now
            if self._changed.wait(_LOOK_SECONDS):
                # Cleared first: a change that comes now must be looked at again.
                self._changed.clear()
                if not over_at and self._is_over(ring):
                    over_at = now
            # Without a script there is nothing that could save anything: torchrun waits for other workers, at the start
            # for ones that may never come, and at the end 5 minutes for ones that are gone.
            is_late = now - over_at >= PATIENCE_SECONDS or now - busy_at >= _IDLE_SECONDS
            if over_at and is_late and elastic.check_alive():
                return _terminate(process)
        return process.returncode

    def _is_over(self, ring: Dict[str, Any], within_seconds: float = 0) -> bool:
        """Return whether the job's workers are others than those of the ring, or will be within the time."""
        until = time.monotonic() + within_seconds
        while elastic.world()["hosts"] == ring["hosts"]:
            if time.monotonic() >= until:
                return False
            time.sleep(_LOOK_SECONDS)
        return True


def _terminate(process: subprocess.Popen[bytes]) -> int:
    """End torchrun with its script, and return its exit code."""
    process.terminate()
    try:
        return process.wait(_TERM_SECONDS)
    # While it waits for the other nodes, which it does in C++, it handles no signal.
    except subprocess.TimeoutExpired:
        # Its script first, which would else train on.
        for pid in [*_children(process.pid), process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return process.wait()


def _children(pid: int) -> List[int]:
    """Return the ids of a process's children; the process itself where the kernel does not say it."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return [pid]


def command(ring: Dict[str, Any], env: Dict[str, str], arguments: List[str]) -> List[str]:
    """Return the command of torchrun on one worker of a ring."""
    name = ".".join([*(env.get(each, "0") for each in ("COCKPIT_JOB_ID", "COCKPIT_ATTEMPT")), *ring["hosts"]])
    return [
        # Unbuffered, since torchrun may print what its script writes (--tee).
        *(sys.executable, "-u", "-m", "torch.distributed.run"),
        # A script that has exited should not be noticed only after torchrun's 5 s.
        "--monitor_interval=1",
        f"--nnodes={ring['size']}",
        f"--nproc_per_node={env.get('COCKPIT_SLOTS', '1')}",
        "--rdzv_backend=static",
        f"--node_rank={ring['rank']}",
        # A rendezvous of its own for each ring: no worker is admitted that still has the hosts of another one.
        f"--rdzv_endpoint={ring['hosts'][0]}:{PORTS[binascii.crc32(name.encode()) % len(PORTS)]}",
        f"--rdzv_id={name}",
        *arguments,
    ]


def environment(ring: Dict[str, Any], env: Dict[str, str]) -> Dict[str, str]:
    """Return the environment of the script, which gets to know the hosts of its ring."""
    return {**env, "COCKPIT_RING": ",".join(ring["hosts"])}


if __name__ == "__main__":
    code = Supervisor(sys.argv[1:]).run()
    # As a shell reports a program that a signal has ended.
    sys.exit(code if code >= 0 else 255 if code == -1 else 128 - code)
