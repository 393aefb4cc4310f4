from __future__ import annotations

import subprocess
import sys
from statistics import median
from time import perf_counter

from tests.bench.figures import Figures, Peer

ROUNDS = 15


def milliseconds_to_run(code: str) -> float:
    before = perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (perf_counter() - before) * 1000


def test_start_of_a_command(figure: Figures):
    ours, bare = [], []
    for _ in range(ROUNDS):
        ours.append(milliseconds_to_run("import cockpit.headless"))
        bare.append(milliseconds_to_run("pass"))
    figure("PF-10", "of it, starting Python with headless loaded", median(ours), peer=Peer("bare Python", median(bare)))
