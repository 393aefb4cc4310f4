"""What the distributed jobs of the tests run: small, and every process of them speaks with every other."""

from __future__ import annotations

HYDRA = """
import os, socket

print("rank", os.environ["PMI_RANK"], "of", os.environ["PMI_SIZE"], "on", socket.gethostname())
"""
"""What MPICH's launcher says to what it starts. Not MPICH itself: Debian's waits for ever in MPI_Finalize at times."""

TORCH = """
import torch, torch.distributed as dist

dist.init_process_group("gloo")
total = torch.tensor([dist.get_rank() + 1])
dist.all_reduce(total)
print("rank", dist.get_rank(), "of", dist.get_world_size(), "total", total.item(), flush=True)
dist.destroy_process_group()
"""

PAIRS = '''
"""Connects every pair of the cluster that the variables or the host file describe; each says who reached it."""
import json, os, socket, subprocess, sys, threading, time


def described():
    """(all addresses, own address)."""
    for name in ("CLUSTER_SPEC", "TF_CONFIG"):
        if name in os.environ:
            config = json.loads(os.environ[name])
            task = config["task"]
            everybody = [each for role in sorted(config["cluster"]) for each in config["cluster"][role]]
            return everybody, config["cluster"][task["type"]][int(task["index"])]
    return sys.argv[2].split(","), sys.argv[1]


def meet(everybody, own):
    server = socket.create_server(("", int(own.split(":")[1])))
    met = []

    def accept():
        while len(met) < len(everybody):
            caller, _ = server.accept()
            met.append(caller.makefile().readline().strip())

    thread = threading.Thread(target=accept)
    thread.start()
    for each in everybody:
        host, port = each.split(":")
        deadline = time.monotonic() + 60
        while True:
            try:
                with socket.create_connection((host, int(port)), timeout=60) as there:
                    there.sendall((own + "\\n").encode())
                break
            except OSError:
                assert time.monotonic() < deadline, each
                time.sleep(0.05)
    thread.join()
    print("at", own, "met", *sorted(met), flush=True)


def launch(hostfile):
    """As DeepSpeed does: a process on each host of the file, through a remote shell."""
    hosts = [line.split() for line in open(hostfile).read().splitlines()]
    everybody = ",".join(host + ":2300" for host, slots in hosts if slots == "slots=1")
    started = [
        subprocess.Popen(["ssh", "-o", "BatchMode=yes", host, "python3", __file__, host + ":2300", everybody])
        for host, _ in hosts
    ]
    sys.exit(max(each.wait() for each in started))


if sys.argv[1:2] == ["--hostfile"]:
    launch(sys.argv[2])
meet(*described())
'''
