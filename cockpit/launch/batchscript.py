"""Computes the surroundings of a batch script in its container: its path, its output files, and Slurm's variables.

Source of names, patterns and defaults: sbatch(1) and what Slurm 22.05 sets for the same scripts.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from cockpit.launch.cards import slots
from cockpit.model.batchscript import DISCARD, BatchScript, OpenMode
from cockpit.model.ids import ReplicaId
from cockpit.model.job import ArrayTask, Job, Submitter
from cockpit.model.node import Allocation, Placement
from cockpit.model.spec import JobSpec

SPOOL: Final = "/run/cockpit-slurm"
"""Folder of the container, read-only for the job."""
SCRIPT: Final = f"{SPOOL}/slurm_script"
JOB_RECORD: Final = f"{SPOOL}/job"
"""The output of `scontrol show job`, with times as `@seconds@`."""
TOOLS: Final = f"{SPOOL}/bin"
"""Folder of `srun` and `scontrol`."""
LIBRARY: Final = f"{SPOOL}/lib"
"""Folder of the modules that they are made of."""
SCRIPT_NAME: Final = "slurm_script"
_NO_TASK: Final = 4_294_967_294
"""Slurm's value of `%a` for a job without an array."""
_PATTERN: Final = re.compile(r"%(?:%|(?P<width>\d{0,2})(?P<letter>[AajJNnstux]))")
_MOST_WIDTH: Final = 10
_MEMORY_SHARES: Final = frozenset({"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU"})
"""Variables for a script that requests memory per CPU or card; such a script gets no total per node."""
_NTASKS, _PER_NODE, _PER_TASK = "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_CPUS_PER_TASK"


class JobFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts for Slurm's variables beyond the job's spec and placement."""

    account: str = ""
    qos: str = ""
    partition: str = ""
    cluster: str = ""
    """The cluster's name, which is also the name of the submitting machine."""
    started_at: int = 0
    """Seconds since 1970; 0: unknown."""
    submitted_at: int = 0


UNKNOWN_FACTS = JobFacts()


class Run(NamedTuple):
    """One replica of a placed job."""

    submitter: Submitter
    placement: Placement
    replica: ReplicaId
    hosts: Sequence[str]
    """The host names of all replicas, in the order of `placement`."""
    facts: JobFacts


class ScriptFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Standard streams of a script: absolute paths on the machine, `/dev/null` for none."""

    stdin: str
    stdout: str
    stderr: str
    append: bool


def job_facts(job: Job, cluster: str) -> JobFacts:
    """Return the facts of a placed job. `cluster`: as in `JobFacts`."""
    attempt = job.attempt
    assert attempt is not None
    return JobFacts(
        account=job.account,
        qos=job.qos,
        partition=attempt.partition,
        cluster=cluster,
        started_at=attempt.placed_at // 1000,
        submitted_at=job.submitted_at // 1000,
    )


def script_argv(script: BatchScript) -> tuple[str, ...]:
    return (SCRIPT, *script.arguments)


def script_files(
    spec: JobSpec, submitter: Submitter, host: str, replica: ReplicaId, task: ArrayTask | None
) -> ScriptFiles:
    """Return the files of a spec with a script. `host`: where the script runs."""
    script = spec.script
    assert script is not None
    usual = "slurm-%A_%a.out" if task is not None else "slurm-%j.out"

    def path(pattern: str) -> str:
        name = expanded(pattern, name=spec.name, user=submitter.name, host=host, job=int(replica.job), task=task)
        return posixpath.normpath(posixpath.join(script.work_dir, name))

    stdout = path(script.output or usual)
    return ScriptFiles(
        stdin=path(script.input or DISCARD),
        stdout=stdout,
        stderr=path(script.error) if script.error else stdout,
        append=script.open_mode is OpenMode.APPEND,
    )


def output_of(spec: JobSpec, job: int, user: str) -> str:
    """Return where the output goes before the job has a host or a task; `%N` and `%a` are left as they are."""
    script = spec.script
    assert script is not None
    pattern = script.output or ("slurm-%A_%a.out" if spec.array is not None else "slurm-%j.out")
    kept = {"N"} | ({"a", "j", "J"} if spec.array is not None else set())
    # expanded() makes one % of two, so that these patterns are left.
    pieces = re.sub(r"%(\d{0,2})([aNjJ])", lambda match: f"%{match[0]}" if match[2] in kept else match[0], pattern)
    name = expanded(pieces, name=spec.name, user=user, host="", job=job, task=None)
    return posixpath.normpath(posixpath.join(script.work_dir, name))


def output_folders(script: BatchScript) -> list[tuple[str, str]]:
    """Return the folders of its files that are known before it starts, each with the field that names it. None is
    made."""
    given = (("script.output", script.output), ("script.error", script.error), ("script.input", script.input))
    folders = ((field, posixpath.dirname(posixpath.join(script.work_dir, path))) for field, path in given if path)
    return [(field, folder) for field, folder in folders if "%" not in folder and folder != script.work_dir]


def expanded(pattern: str, *, name: str, user: str, host: str, job: int, task: ArrayTask | None) -> str:
    """Return the file name that a pattern of sbatch means. In a pattern with a backslash nothing is replaced, and the
    backslashes are removed."""
    # sbatch(1), "filename pattern": a backslash anywhere switches all replacements off.
    if "\\" in pattern:
        return pattern.replace("\\", "")
    figures = {
        "A": int(task.array) if task is not None else job,
        "a": task.index if task is not None else _NO_TASK,
        "j": job,
        "J": job,
        # The script is task 0, on the first node.
        "n": 0,
        "t": 0,
    }
    words = {"N": host.partition(".")[0], "s": "batch", "u": user, "x": name}

    def filled(match: re.Match[str]) -> str:
        letter = match["letter"]
        if letter is None:
            return "%"
        if letter in words:
            # A job's name may have slashes, a file's has none.
            return words[letter].replace("/", "_")
        # sbatch(1): `%5j` pads with zeros. The width is bounded, since a file name is.
        width = min(int(match["width"] or 0), _MOST_WIDTH)
        return f"{figures[letter]:0{width}d}"

    return _PATTERN.sub(filled, pattern)


def tasks_on_nodes(env: Mapping[str, str], nodes: int) -> list[int]:
    """Return the number of tasks on each node, by the script's options; one per node without them."""
    total, each = _count(env, _NTASKS), _count(env, _PER_NODE)
    if not total:
        return [each or 1] * nodes
    if each and each * nodes == total:
        return [each] * nodes
    # Slurm divides them evenly, too; the first nodes get the rest. Every node runs at least one.
    return [max(1, total // nodes + (node < total % nodes)) for node in range(nodes)]


def slurm_environment(spec: JobSpec, run: Run) -> dict[str, str]:
    """Return Slurm's variables of one replica."""
    submitter, placement, replica, hosts, facts = run
    own = [part.rank for part in placement].index(replica.rank)
    each = tasks_on_nodes(spec.env, len(hosts))
    requested = {name: spec.env[name] for name in (_NTASKS, _PER_NODE, _PER_TASK) if name in spec.env}
    # Slurm sets the number of tasks too when only tasks per node are asked for.
    if _PER_NODE in requested:
        requested[_NTASKS] = str(sum(each))
    if _NTASKS in requested:
        requested["SLURM_NPROCS"] = requested[_NTASKS]
    job, names = str(replica.job), ",".join(hosts)
    env = {
        **requested,
        "SLURMD_NODENAME": hosts[own],
        "SLURM_CLUSTER_NAME": facts.cluster,
        "SLURM_CPUS_ON_NODE": str(placement[own].cpus),
        "SLURM_GTIDS": "0",
        "SLURM_JOBID": job,
        "SLURM_JOB_ACCOUNT": facts.account,
        "SLURM_JOB_CPUS_PER_NODE": runs([part.cpus for part in placement]),
        "SLURM_JOB_GID": str(submitter.gid),
        "SLURM_JOB_ID": job,
        "SLURM_JOB_NAME": spec.name,
        "SLURM_JOB_NODELIST": names,
        "SLURM_JOB_NUM_NODES": str(len(hosts)),
        "SLURM_JOB_PARTITION": facts.partition,
        "SLURM_JOB_QOS": facts.qos,
        "SLURM_JOB_UID": str(submitter.uid),
        "SLURM_JOB_USER": submitter.name,
        "SLURM_LOCALID": "0",
        "SLURM_MEM_PER_NODE": str(placement[own].memory_mib),
        "SLURM_NNODES": str(len(hosts)),
        "SLURM_NODEID": str(own),
        "SLURM_NODELIST": names,
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_PROCID": "0",
        "SLURM_RESTART_COUNT": str(replica.attempt - 1),
        "SLURM_SUBMIT_HOST": facts.cluster,
        "SLURM_TASKS_PER_NODE": runs(each),
        # As topology/none sets the two.
        "SLURM_TOPOLOGY_ADDR": hosts[own],
        "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
        **_of_cards(placement[own]),
    }
    if spec.script is not None:
        env["SLURM_SUBMIT_DIR"] = spec.script.submitted_from
    if facts.started_at:
        env["SLURM_JOB_START_TIME"] = str(facts.started_at)
        env["SLURM_JOB_END_TIME"] = str(facts.started_at + spec.time_limit_seconds)
    if _MEMORY_SHARES & spec.env.keys():
        # srun ends with an error where memory per node and per CPU or card are both set.
        del env["SLURM_MEM_PER_NODE"]
    if replica.attempt == 1:
        # Slurm sets it from the first restart on, and scripts test whether it is set.
        del env["SLURM_RESTART_COUNT"]
    if spec.reservation:
        env["SLURM_JOB_RESERVATION"] = spec.reservation
    if spec.dependencies:
        env["SLURM_JOB_DEPENDENCY"] = ",".join(f"{each.kind}:{each.target}".rstrip(":") for each in spec.dependencies)
    return env


def job_record(spec: JobSpec, run: Run, files: ScriptFiles | None, array: ArrayTask | None) -> str:
    """Return the text that `scontrol show job` prints while the script runs."""
    submitter, placement, replica, hosts, facts = run
    script = spec.script
    names = ",".join(hosts)
    tasks = sum(tasks_on_nodes(spec.env, len(hosts)))
    cpus, memory = sum(part.cpus for part in placement), sum(part.memory_mib for part in placement)
    cards = sum(slots(part.slices) for part in placement if part.slices)
    end = f"@{facts.started_at + spec.time_limit_seconds}@" if facts.started_at else "Unknown"
    command = spec.command if script is None else _script_words(script)
    of_array = [] if array is None else [f"ArrayJobId={array.array}", f"ArrayTaskId={array.index}"]
    lines = [
        " ".join([f"JobId={replica.job}", *of_array, f"JobName={spec.name}"]),
        f"   UserId={submitter.name}({submitter.uid}) GroupId={submitter.gid} MCS_label=N/A",
        f"   Priority=0 Nice={spec.nice} Account={facts.account or '(null)'} QOS={facts.qos or '(null)'}",
        "   JobState=RUNNING Reason=None Dependency=(null)",
        f"   Requeue=1 Restarts={replica.attempt - 1} BatchFlag=1 Reboot=0 ExitCode=0:0",
        f"   RunTime=@since {facts.started_at}@ TimeLimit={clock(spec.time_limit_seconds)} TimeMin=N/A",
        f"   SubmitTime=@{facts.submitted_at}@ EligibleTime=@{facts.submitted_at}@",
        f"   StartTime=@{facts.started_at}@ EndTime={end} Deadline=N/A",
        f"   Partition={facts.partition or '(null)'} AllocNode:Sid={facts.cluster or 'localhost'}:0",
        f"   NodeList={names}",
        f"   BatchHost={hosts[0]}",
        f"   NumNodes={len(hosts)} NumCPUs={cpus} NumTasks={tasks} CPUs/Task={spec.env.get(_PER_TASK, '1')}",
        # Without TRESBillingWeights Slurm bills the CPUs.
        f"   TRES=cpu={cpus},mem={memory}M,node={len(hosts)},billing={cpus}" + (f",gres/gpu={cards}" if cards else ""),
        f"   MinCPUsNode={placement[0].cpus} MinMemoryNode={placement[0].memory_mib}M MinTmpDiskNode=0",
        f"   Command={command}",
        f"   WorkDir={script.work_dir if script is not None else spec.output}",
    ]
    if files is not None:
        lines += [f"   StdErr={files.stderr}", f"   StdIn={files.stdin}", f"   StdOut={files.stdout}"]
    return "\n".join([*lines, ""])


def runs(counts: Sequence[int]) -> str:
    """Return the counts of each node as Slurm writes them: `4(x2),1`."""
    return ",".join(_runs(counts))


def clock(seconds: int) -> str:
    """Return a time as Slurm writes it: `1-00:00:00`."""
    days, rest = divmod(seconds, 86_400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def _script_words(script: BatchScript) -> str:
    return " ".join([script.file or SCRIPT_NAME, *map(shlex.quote, script.arguments)])


def _runs(counts: Sequence[int]) -> Iterator[str]:
    begin = 0
    for at in range(1, len(counts) + 1):
        if at == len(counts) or counts[at] != counts[begin]:
            yield f"{counts[begin]}(x{at - begin})" if at - begin > 1 else str(counts[begin])
            begin = at


def _of_cards(part: Allocation) -> dict[str, str]:
    if not part.slices:
        return {}
    numbers = sorted({each.card for each in part.slices})
    return {"SLURM_GPUS_ON_NODE": str(slots(part.slices)), "SLURM_JOB_GPUS": ",".join(map(str, numbers))}


def _count(env: Mapping[str, str], name: str) -> int:
    value = env.get(name, "")
    return int(value) if value.isascii() and value.isdigit() else 0
