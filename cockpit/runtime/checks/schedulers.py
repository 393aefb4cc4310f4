"""Check which other clusters this machine can reach: Slurm, Kubernetes."""

from __future__ import annotations

from pathlib import Path

from cockpit.runtime.checks.surroundings import Surroundings
from cockpit.runtime.findings import Finding, missing, note, ok
from cockpit.runtime.probe_command import Outcome

_SILENT = "no answer in time"


def slurm(around: Surroundings) -> list[Finding]:
    """Check that `scontrol ping` answers, with `Slurmctld(primary) at host is UP` (scontrol(1))."""
    answer = around.probe(("scontrol", "ping"))
    if answer.ok and " is UP" in answer.text:
        return [ok("Slurm", answer.first_line)]
    if answer.outcome is Outcome.ABSENT:
        result = "scontrol is not installed"
    else:
        result = f"slurmctld does not answer: {answer.first_line if answer.outcome is Outcome.ANSWERED else _SILENT}"
    if around.slurm:
        advice = "Run `scontrol ping`. Commands without -c use this cluster; -c local is your own engine."
        return [missing("Slurm", f"configured by {around.slurm}, but {result}", advice)]
    if answer.outcome is Outcome.ABSENT:
        return [note("Slurm", result, "Slurm clusters are reached from a login node, or over SSH.")]
    return [note("Slurm", f"scontrol is installed, but {result}", "Run `scontrol ping`.")]


def kubernetes(around: Surroundings) -> list[Finding]:
    """Check only whether a kubeconfig exists: doctor does not connect to remote clusters."""
    files = _kubeconfigs(around)
    present = [str(path) for path in files if path.is_file()]
    if present:
        return [ok("Kubernetes", f"kubeconfig {', '.join(present)}; open it with -c")]
    return [note("Kubernetes", f"no kubeconfig at {files[0]}", "Set KUBECONFIG to open a Kubernetes cluster.")]


def _kubeconfigs(around: Surroundings) -> list[Path]:
    listed = [Path(path) for path in around.env.get("KUBECONFIG", "").split(":") if path]
    return listed or [Path(around.env.get("HOME", "/")) / ".kube/config"]
