"""`srun` in a batch script: runs a command as tasks in the containers of the script's job.

A task on the script's own host is a child of this process, any other is started by the agent of its container. Signals
are forwarded to all tasks; the exit code is the largest of theirs. Source: srun(1) of Slurm 22.05.
"""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from cockpit.runtime.containers.slurmtools.gpus import (
    cards_per_task,
    own_cards,
    own_cards_elsewhere,
    step_resources,
)
from cockpit.runtime.containers.slurmtools.options import (
    Task,
    Unusable,
    assign_tasks,
    format_counts,
    number,
    parse,
    programs,
    seconds,
)
from cockpit.runtime.containers.slurmtools.steps import Steps
from cockpit.runtime.containers.slurmtools.streams import Outputs, is_nothing, spread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

AGENT = "/run/cockpit-launch/agent"
FAILED = 1
"""Exit code of a step that could not be started, as of Slurm's srun."""
_NO_MPI = "tasks of srun are no ranks of one MPI program here; start it by mpirun, which knows the hosts of the job"
KILL_WAIT_SECONDS = 30
"""The time between SIGTERM and SIGKILL, as slurm.conf's KillWait has it."""
FORWARDED_SIGNALS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCONT")
OF_EACH_CONTAINER = (
    *("COCKPIT_", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_"),
    *("SLURMD_NODENAME", "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "SLURM_CPUS_ON_NODE"),
)


class Step:
    """One `srun`."""

    def __init__(self, options: dict[str, str], command: list[str], env: dict[str, str]) -> None:
        self.options = options
        self.command = command
        self.env = env
        self.tasks = assign_tasks(options, env)
        self.number = 0
        self.running: dict[int, Task] = {}
        """Tasks by the process that is one, or that is the agent of one."""
        self.feeds: list[IO[bytes]] = []
        self.address = _address(env.get("SLURMD_NODENAME", ""))
        self.limit = seconds(options.get("time", env.get("SLURM_TIMELIMIT", "0")), "--time")
        """Seconds; 0: as long as the job."""
        self.patience = _patience(options, env)
        self._timers: list[threading.Timer] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._has_started = False
        self._early_signals: list[int] = []
        """Signals that came before all tasks had been started."""

    def variables(self, task: Task) -> dict[str, str]:
        """Return the variables of a task that differ from the script's own."""
        shares = self._shares()
        hosts = list(dict.fromkeys(each.host for each in self.tasks))
        job = self.env.get("SLURM_JOB_ID", "")
        # Some of them under an older name too, which scripts still read: SLURM_JOBID, SLURM_NPROCS, SLURM_STEPID.
        values = {
            "SLURMD_NODENAME": task.host,
            "SLURM_GTIDS": ",".join(str(each.rank) for each in self.tasks if each.node == task.node),
            "SLURM_JOBID": job,
            "SLURM_LOCALID": str(task.local),
            "SLURM_NNODES": str(len(hosts)),
            "SLURM_NODEID": str(task.node),
            "SLURM_NPROCS": str(len(self.tasks)),
            "SLURM_NTASKS": str(len(self.tasks)),
            "SLURM_PROCID": str(task.rank),
            "SLURM_STEPID": str(self.number),
            "SLURM_STEP_ID": str(self.number),
            "SLURM_STEP_NODELIST": ",".join(hosts),
            "SLURM_STEP_NUM_NODES": str(len(hosts)),
            "SLURM_STEP_NUM_TASKS": str(len(self.tasks)),
            "SLURM_STEP_TASKS_PER_NODE": shares,
            "SLURM_TASKS_PER_NODE": shares,
        }
        if self.address:
            values.update({"SLURM_LAUNCH_NODE_IPADDR": self.address, "SLURM_SRUN_COMM_HOST": self.address})
        if "job-name" in self.options:
            values["SLURM_JOB_NAME"] = self.options["job-name"]
        if "cpus-per-task" in self.options:
            values["SLURM_CPUS_PER_TASK"] = self.options["cpus-per-task"]
        return {**values, **own_cards(self.options, self.env, task)}

    def _shares(self) -> str:
        counts = [sum(each.node == node for each in self.tasks) for node in range(self.tasks[-1].node + 1)]
        return format_counts(counts)

    def start(self, outputs: Outputs) -> None:
        """Start all tasks in the order of their ranks."""
        lines = programs(_text(self.command[0])) if "multi-prog" in self.options else []
        # One task reads the script's own input; several need a copy each, if there is any input.
        feeds = len(self.tasks) > 1 and not is_nothing(0)
        for task in self.tasks:
            words = _line_of(lines, task, self.tasks) if lines else self.command
            stdin, stdout, stderr = outputs.of(task, self.number)
            stdin = subprocess.PIPE if feeds and stdin is None else stdin
            process = self._start_task(words, task, stdin, stdout, stderr)
            if process.stdin is not None:
                self.feeds.append(process.stdin)
            outputs.follow(process, task)
            self.running[process.pid] = task
            self._processes.append(process)
        # In a thread, which ends with the process: input may never end.
        if self.feeds:
            threading.Thread(target=spread, args=(self.feeds,), daemon=True).start()
        self._has_started = True
        for signum in self._early_signals:
            self.send(signum)

    def _start_task(
        self, words: list[str], task: Task, stdin: int | None, stdout: int | None, stderr: int | None
    ) -> subprocess.Popen[bytes]:
        here = task.host == self.env.get("SLURMD_NODENAME", task.host)
        folder = self.options.get("chdir") or None
        streams = (stdin, stdout, stderr)
        if not here:
            text = self._text_for(words, task, folder or str(Path.cwd()))
            return _child([AGENT, task.host, text], streams)
        env = {**_exported_variables(self.options, self.env), **self.variables(task)}
        try:
            return _child(words, streams, env=env, folder=folder, own_session="pty" not in self.options)
        # A task that cannot be executed is a failed task and not a failed step: the others run, as in Slurm.
        except OSError as error:
            # A folder of PATH that the user may not enter makes exec deny a program that no folder has.
            is_missing = isinstance(error, FileNotFoundError) or (
                "/" not in words[0] and shutil.which(words[0], os.F_OK, env.get("PATH")) is None
            )
            # Slurm's exit code is that of the system's error, and not 127 or 126 as a shell's is.
            code = errno.ENOENT if is_missing else error.errno or errno.EACCES
            sys.stderr.write(f"srun: error: execve(): {words[0]}: {os.strerror(code)}\n")
            return _child(["/bin/sh", "-c", f"exit {code}"], streams)

    def _text_for(self, words: list[str], task: Task, folder: str) -> str:
        """Return the text that the shell of another container runs."""
        common = {
            name: value
            for name, value in _exported_variables(self.options, self.env).items()
            if not name.startswith(OF_EACH_CONTAINER)
        }
        variables = [f"{name}={value}" for name, value in {**common, **self.variables(task)}.items()]
        text = shlex.join(["env", *variables, *words])
        # A missing program ends the task as it ends one here, and not with a shell's 127. No shell may stand between
        # env and the program: dash drops bash's exported functions.
        path = [f"PATH={common['PATH']}"] if "PATH" in common else []
        found = shlex.join(["env", *path, "/bin/sh", "-c", 'command -v "$0" >/dev/null', words[0]])
        said = shlex.quote(f"srun: error: execve(): {words[0]}: {os.strerror(errno.ENOENT)}")
        check = f"{found} || {{ echo {said} >&2; exit {errno.ENOENT}; }}; "
        cards = own_cards_elsewhere(self.options, task)
        # The folder may be missing there; then the task starts where its shell does.
        return f"cd {shlex.quote(folder)} 2>/dev/null; {check}{cards}exec {text}"

    def forward(self, number: int) -> None:
        """Send a signal that srun got to every task; to those that have not been started yet, once they are."""
        # A script may send one as soon as a task runs, which is before `running` has its process.
        if self._has_started:
            self.send(number)
        else:
            self._early_signals.append(number)

    def send(self, number: int) -> None:
        """Send a signal to every task, and to all processes that it has started."""
        # A copy: `wait` removes entries meanwhile, in another thread or below this signal's handler.
        for pid, task in list(self.running.items()):
            here = task.host == self.env.get("SLURMD_NODENAME", task.host)
            try:
                # a task on this host leads a session, whose group has all that it has started; an agent forwards the
                # signal itself
                if here and "pty" not in self.options:
                    os.killpg(pid, number)
                else:
                    os.kill(pid, number)
            except ProcessLookupError:
                continue

    def wait(self) -> int:
        """Wait for all tasks, and return the largest exit code. Failed tasks are reported on standard error."""
        kills = _kills_on_bad_exit(self.options, self.env)
        worst = 0
        # the limit counts from the start of the tasks, as that of a step in Slurm
        if self.limit:
            self._later(self.limit, self._end_at_limit)
        while self.running:
            pid, status = os.wait()
            task = self.running.pop(pid, None)
            if task is None:
                continue
            code = _code(status)
            # Once: `--wait` counts from the end of the first task.
            if self.running and self.patience and len(self.running) == len(self.tasks) - 1:
                self._later(self.patience, self._end_stragglers)
            # Once, for the first task that fails.
            if code and not worst and kills and self.running:
                sys.stderr.write(f"srun: Terminating StepId={self.env.get('SLURM_JOB_ID')}.{self.number}\n")
                self.send(signal.SIGTERM)
            if code and "quiet" not in self.options:
                sys.stderr.write(f"srun: error: {task.host}: task {task.rank}: {_how(status, code)}\n")
            worst = max(worst, code)
        # A timer that fires after the last task would signal pids that other processes have by now.
        for each in self._timers:
            each.cancel()
        return worst

    def _later(self, delay: int, act: Callable[[], None]) -> None:
        timer = threading.Timer(delay, act)
        timer.daemon = True
        timer.start()
        self._timers.append(timer)

    def _end_at_limit(self) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%S")
        step = f"{self.env.get('SLURM_JOB_ID')}.{self.number}"
        sys.stderr.write(
            f"srun: Job step aborted: Waiting up to {KILL_WAIT_SECONDS + 2} seconds for job step to finish.\n"
            f"srun: error: *** STEP {step} CANCELLED AT {now} DUE TO TIME LIMIT ***\n"
        )
        self._end()

    def _end_stragglers(self) -> None:
        ranks = ",".join(str(task.rank) for task in self.running.values())
        sys.stderr.write(f"srun: First task exited {self.patience}s ago; still running: {ranks}\n")
        sys.stderr.write(f"srun: Terminating StepId={self.env.get('SLURM_JOB_ID')}.{self.number}\n")
        self._end()

    def _end(self) -> None:
        self.send(signal.SIGTERM)
        self._later(KILL_WAIT_SECONDS, lambda: self.send(signal.SIGKILL))


def _child(
    words: list[str],
    streams: tuple[int | None, int | None, int | None],
    env: dict[str, str] | None = None,
    folder: str | None = None,
    *,
    own_session: bool = True,
) -> subprocess.Popen[bytes]:
    stdin, stdout, stderr = streams
    return subprocess.Popen(
        words, stdin=stdin, stdout=stdout, stderr=stderr, env=env, cwd=folder, start_new_session=own_session
    )


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise Unusable(f"Unable to open the program file {path}: {error.strerror}") from None


def _line_of(lines: list[tuple[set[int], list[str]]], task: Task, tasks: list[Task]) -> list[str]:
    named = set().union(*(ranks for ranks, _ in lines))
    for ranks, command in lines:
        if task.rank in ranks or (not ranks and task.rank not in named):
            number = sorted(ranks or {each.rank for each in tasks} - named).index(task.rank)
            return [word.replace("%t", str(task.rank)).replace("%o", str(number)) for word in command]
    raise Unusable(f"The program file says nothing of task {task.rank}")


def _exported_variables(options: dict[str, str], env: dict[str, str]) -> dict[str, str]:
    """Return the variables that tasks get: all of the script's, unless `--export` chooses others."""
    wanted = [each for each in options.get("export", "ALL").split(",") if each]
    names = {each for each in wanted if "=" not in each}
    given = dict(each.split("=", 1) for each in wanted if "=" in each)
    if "ALL" in names or not names:
        return {**env, **given}
    # Slurm's own variables are always passed on (srun(1), --export); PATH and HOME, since little starts without them
    kept = {name: value for name, value in env.items() if name.startswith("SLURM") or name in names | {"PATH", "HOME"}}
    return {**kept, **given}


def _address(name: str) -> str:
    """Return the address of a host, at which other hosts of the job reach it; empty where it has none."""
    try:
        return socket.gethostbyname(name) if name else ""
    except OSError:
        return ""


def _patience(options: dict[str, str], env: dict[str, str]) -> int:
    """Return how many seconds after the first task ends the others are ended (`--wait`); 0: never."""
    given = {"wait": options.get("wait", env.get("SLURM_WAIT", "0"))}
    return 0 if given["wait"] == "0" else number(given, "wait", 0)


def _kills_on_bad_exit(options: dict[str, str], env: dict[str, str]) -> bool:
    value = options.get("kill-on-bad-exit", env.get("SLURM_KILL_BAD_EXIT", "0"))
    return value != "0"


def _code(status: int) -> int:
    """Return the exit code as a shell reports it."""
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _how(status: int, code: int) -> str:
    if os.WIFEXITED(status):
        return f"Exited with exit code {code}"
    return signal.strsignal(os.WTERMSIG(status)) or f"Signal {os.WTERMSIG(status)}"


def _refuse_mpi(options: dict[str, str]) -> None:
    """Refuse an MPI plugin: without one each task would be an MPI program of its own. Raises `Unusable`."""
    if options.get("mpi", "none") not in {"", "none"}:
        raise Unusable(f"--mpi={options['mpi']}: {_NO_MPI}")


def main(words: list[str]) -> int:
    """Run srun with these arguments, and return its exit code."""
    if words and words[0] in {"-V", "--version"}:
        sys.stdout.write("slurm 22.05 (cockpit)\n")
        return 0
    env = dict(os.environ)
    steps = Steps(env)
    if "--mpi=list" in words:
        sys.stdout.write("MPI plugin types are...\n\tnone\n")
        return 0
    try:
        options, command = parse(words)
        _refuse_mpi(options)
        cards_per_task(options, env)
        step = Step(options, command, env)
        step.number = steps.begin(step_resources(step.tasks, options, env), _say_busy)
    except Unusable as error:
        sys.stderr.write(f"srun: error: {error}\n")
        return FAILED
    # After the step has its resources: before that, a signal ends this process as any other.
    for name in FORWARDED_SIGNALS:
        signal.signal(getattr(signal, name), lambda number, _frame: step.forward(number))
    try:
        outputs = Outputs(options, env, len(step.tasks))
        step.start(outputs)
        code = step.wait()
        outputs.finish()
    except Unusable as error:
        sys.stderr.write(f"srun: error: {error}\n")
        # Tasks that were started before the error was known must not be left.
        step.send(signal.SIGKILL)
        return FAILED
    finally:
        steps.end()
    return code


def _say_busy() -> None:
    sys.stderr.write("srun: Step creation temporarily disabled, retrying (Requested nodes are busy)\n")
