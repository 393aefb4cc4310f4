"""Which other clusters this machine can reach: Slurm, Kubernetes."""

from __future__ import annotations

from pathlib import Path

from cockpit.runtime.checks.surroundings import Surroundings
from cockpit.runtime.findings import Finding, missing, note, ok
from cockpit.runtime.probe_command import Outcome

_SILENT = "no answer in time"


def slurm(around: Surroundings) -> list[Finding]:
    """`scontrol ping`: `Slurmctld(primary) at host is UP` (scontrol(1))."""
    answer = around.probe(("scontrol", "ping"))
    if answer.ok and " is UP" in answer.text:
        return [ok("Slurm", answer.first_line)]
    if answer.outcome is Outcome.ABSENT:
        said = "no scontrol here"
    else:
        said = f"slurmctld does not answer: {answer.first_line if answer.outcome is Outcome.ANSWERED else _SILENT}"
    if around.slurm:
        advice = "Run `scontrol ping`. Commands without -c ask this cluster and no other; -c local is your own engine."
        return [missing("Slurm", f"configured by {around.slurm}, but {said}", advice)]
    if answer.outcome is Outcome.ABSENT:
        return [note("Slurm", said, "Slurm clusters are reached from a login node, or over SSH.")]
    return [note("Slurm", f"scontrol is here, but {said}", "Run `scontrol ping`.")]


def kubernetes(around: Surroundings) -> list[Finding]:
    """Only whether a kubeconfig is there: a cluster far away is not asked without being told to."""
    files = _kubeconfigs(around)
    present = [str(path) for path in files if path.is_file()]
    if present:
        return [ok("Kubernetes", f"kubeconfig {', '.join(present)}; open it with -c")]
    return [note("Kubernetes", f"no kubeconfig at {files[0]}", "Set KUBECONFIG to open a Kubernetes cluster.")]


def _kubeconfigs(around: Surroundings) -> list[Path]:
    listed = [Path(path) for path in around.env.get("KUBECONFIG", "").split(":") if path]
    return listed or [Path(around.env.get("HOME", "/")) / ".kube/config"]
