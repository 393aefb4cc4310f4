"""Adds what a distributed mode needs to a job's script: variables that the script sets once it knows its nodes, host
files in the job's folder, and a launcher before the command.

Several jobs share a node's network on a Slurm cluster, so a job's port is made of its number, and each replica's of its
rank: several nodes may be one machine.
"""

from __future__ import annotations

from collections.abc import Iterator

from cockpit.backends.slurm.mapping.groups import Group, groups
from cockpit.backends.slurm.mapping.shelltext import Variable, json_word
from cockpit.launch.modes import mpi_command, tf_values
from cockpit.launch.pools import pool_values
from cockpit.launch.torchlines import torch_command
from cockpit.model.spec import JobSpec, Mode

NODE = "$SLURM_NODEID"
"""The variable with the node's number in its group, from 0."""
_ADDRESSED = frozenset({Mode.TENSORFLOW, Mode.WORKER_POOLS})
_TORCH = frozenset({Mode.PYTORCH, Mode.DEEPSPEED})
_ADDRESSES = """\
cockpit_peers() {
    rank=$1 list=$2 found=
    for each in $(cockpit_hosts "$list"); do
        found="$found${found:+, }\\"$each:$((COCKPIT_PORT + rank))\\""
        rank=$((rank + 1))
    done
    echo "[$found]"
}"""
# `ssh` skips ssh's own options, those with a value together with it, and starts a step on the host instead of a login.
# `hostfile` has the rank of each host in its line number.
_FILES = """\
COCKPIT_FILES="$COCKPIT_OUTPUTS/.cockpit-$SLURM_JOB_ID"
export COCKPIT_FILES
mkdir -p "$COCKPIT_FILES" && trap 'rm -rf "$COCKPIT_FILES"' EXIT
scontrol show hostnames "$SLURM_JOB_NODELIST" | sed 's/$/ slots={slots}/' >"$COCKPIT_FILES/hostfile"
scontrol show hostnames "$SLURM_JOB_NODELIST" | sed 's/$/:{slots}/' >"$COCKPIT_FILES/mpich_hostfile"
cat >"$COCKPIT_FILES/ssh" <<'END'
#!/bin/sh
# For launchers that know only a remote shell: a step of the job on the node that is named.
while [ "${{1#-}}" != "$1" ]; do
    case $1 in -[BbcDEeFIiJLlmOopQRSWw]) shift ;; esac
    shift
done
host=${{1##*@}}
shift
rank=$(sed -n "/^$host /=" "$COCKPIT_FILES/hostfile")
[ -n "$rank" ] || {{ echo "$host is no node of this job" >&2; exit 255; }}
export COCKPIT_REPLICA=$((rank - 1)) RANK=$((rank - 1))
exec srun --overlap --nodes=1 --ntasks=1 --nodelist="$host" sh -c "$*"
END
chmod +x "$COCKPIT_FILES/ssh"
"""
# `^slurm` leaves out Open MPI's component that would take nodes and slots from Slurm's variables, in place of the host
# file.
_HOROVOD = """\
export OMPI_MCA_orte_default_hostfile="$COCKPIT_FILES/hostfile" HYDRA_HOST_FILE="$COCKPIT_FILES/mpich_hostfile"
export PRTE_MCA_prte_default_hostfile="$COCKPIT_FILES/hostfile" PRTE_MCA_plm_ssh_agent="$COCKPIT_FILES/ssh"
export PRTE_MCA_plm=ssh PRTE_MCA_ras=^slurm
export OMPI_MCA_ras=^slurm OMPI_MCA_plm_rsh_agent="$COCKPIT_FILES/ssh" HYDRA_LAUNCHER_EXEC="$COCKPIT_FILES/ssh\""""
# pdsh runs the first `ssh` in PATH, which is then the one above.
_DEEPSPEED = """\
export PATH="$COCKPIT_FILES:$PATH" PDSH_RCMD_TYPE=ssh"""


def prelude(spec: JobSpec) -> Iterator[str]:
    """Yield the lines that run once, before anything is started."""
    (first, *_) = all_groups = groups(spec)
    # From 10000 to 29999: above most services, and below the ports that the kernel hands out (from 32768 on).
    if spec.mode in _ADDRESSED | _TORCH:
        yield "export COCKPIT_PORT=$((10000 + SLURM_JOB_ID % 20000))"
    if spec.mode in _ADDRESSED:
        yield _ADDRESSES
        yield from _addresses(all_groups)
    if spec.mode in _TORCH:
        yield 'export MASTER_ADDR="$COCKPIT_MASTER" MASTER_PORT="$COCKPIT_PORT" WORLD_SIZE="$SLURM_JOB_NUM_NODES"'
        yield f"export SLOTS={first.slots}"
    if spec.mode in {Mode.HOROVOD, Mode.DEEPSPEED}:
        yield _FILES.format(slots=first.slots).rstrip("\n")
        yield _HOROVOD if spec.mode is Mode.HOROVOD else _DEEPSPEED


def of_replica(spec: JobSpec, group: Group) -> Iterator[str]:
    """Yield `NAME=word` of each variable whose value differs between the nodes of the group."""
    if spec.mode in _TORCH:
        yield f'RANK="{NODE}"'
    if spec.mode is Mode.TENSORFLOW:
        cluster = {each.role: Variable(each.peers) for each in groups(spec)}
        yield f'COCKPIT_INDEX="\\"{NODE}\\""'
        yield f"TF_CONFIG={json_word(tf_values(cluster, group.role, Variable('COCKPIT_INDEX')))}"
        yield f'VK_TASK_INDEX="{NODE}"'
    if spec.mode is Mode.WORKER_POOLS:
        yield from _of_pool(spec, group)


def launched_command(spec: JobSpec, group: Group) -> str:
    """Return the command with its mode's launcher before it, for a shell."""
    if spec.mode is Mode.PYTORCH:
        return torch_command(
            group.command,
            slots="$SLOTS",
            nodes="$WORLD_SIZE",
            rank="$RANK",
            master="$MASTER_ADDR",
            port="$MASTER_PORT",
        )
    if spec.mode is Mode.DEEPSPEED:
        return _with_hostfile(group.command)
    return group.command


def under_mpi(spec: JobSpec, group: Group) -> str | None:
    """Return the command under Open MPI, where the nodes have it; None: the mode needs no MPI."""
    if spec.mode is not Mode.HOROVOD:
        return None
    return mpi_command(group.command, f"$((SLURM_JOB_NUM_NODES * {group.slots}))")


def _addresses(all_groups: tuple[Group, ...]) -> Iterator[str]:
    for each in all_groups:
        nodes = each.of_slurm("SLURM_JOB_NODELIST")
        yield f'export {each.peers}="$(cockpit_peers {each.first} "${nodes}")"'


def _of_pool(spec: JobSpec, group: Group) -> Iterator[str]:
    """Yield the lines that set the variables of a worker pool, on each of its nodes."""
    all_groups = groups(spec)
    values = pool_values(
        spec,
        {each.role: Variable(each.peers) for each in all_groups},
        group.role,
        Variable("SLURM_NODEID"),
        job=Variable("COCKPIT_JOB_TEXT"),
        trial=Variable("COCKPIT_TRIAL_TEXT") if spec.sweep is not None else "",
        alone=len(all_groups) == 1 and all_groups[0].nodes == 1,
    )
    yield 'COCKPIT_JOB_TEXT="\\"$SLURM_JOB_ID\\""'
    if spec.sweep is not None:
        yield 'COCKPIT_TRIAL_TEXT="\\"$COCKPIT_TRIAL\\""'
    for name, value in values.items():
        yield f"{name}={json_word(value)}"


def _with_hostfile(command: str) -> str:
    """Add the host file, which DeepSpeed's launcher would look for at a place that only root can write."""
    # Not when the user names a host file.
    program, _, rest = command.strip(" \t\n").partition(" ")
    if program != "deepspeed" or "hostfile" in command:
        return command
    return f'deepspeed --hostfile "$COCKPIT_FILES/hostfile" {rest}'
