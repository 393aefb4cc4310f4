"""An `arena submit …` command line. Source: arena's own help of etjob, pytorchjob, mpijob, tfjob, horovodjob and
deepspeedjob, and of its global options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final

from cockpit.formats.foreign.commandlines import Line, command_line, read_line, refuse_expansions
from cockpit.formats.foreign.draft import Draft, cpu_count, memory_mib, runnable, take_longest_wait
from cockpit.formats.foreign.podresources import read_resources, take_folder
from cockpit.formats.foreign.pods import BEST_EFFORT, take_labels, take_namespace, take_priority_class
from cockpit.formats.foreign.pytorchjob import take_torchrun
from cockpit.formats.foreign.torchrun import without_nodes
from cockpit.launch.checks import COMPUTE_QOS, SUPERVISED
from cockpit.launch.shellform import without_patterns
from cockpit.model.names import name_error
from cockpit.model.quantity import parse_duration
from cockpit.model.resilience import Elastic
from cockpit.model.spec import PARAMETER_SERVER
from cockpit.model.text import is_whole

_MODES: Final = {
    **dict.fromkeys(("etjob", "et", "mpijob", "mpi", "mj", "horovodjob", "horovod", "hj"), "horovod"),
    **dict.fromkeys(("pytorchjob", "pytorch"), "pytorch"),
    **dict.fromkeys(("tfjob", "tf"), "tensorflow"),
    **dict.fromkeys(("deepspeedjob", "dp"), "deepspeed"),
}
_KINDS: Final = {"horovod": "mpijob", "pytorch": "pytorchjob", "tensorflow": "tfjob", "deepspeed": "deepspeedjob"}
"""The job kinds of arena by mode, for jobs that are not elastic."""
_SHORT: Final = {"e": "env", "d": "data", "a": "annotation", "l": "label", "p": "priority", "n": "namespace"}
# Options without a value: without this list `read_line` would take the next word for one.
_FLAGS: Final = frozenset(
    {"spot-instance", "tensorboard", "chief", "evaluator", "gang", "rdma", "pprof", "trace", "helm-binary", "queue"}
    | {"hostNetwork", "hostIPC", "hostPID", "gputopology", "mounts-on-launcher"}
)
_REPEATED: Final = frozenset(
    {"data", "data-dir", "env", "toleration", "selector", "annotation", "label", "device", "config-file"}
    | {"image-pull-secret", "launcher-annotation", "worker-annotation"}
)
_ARENAS_OWN: Final = frozenset({"loglevel", "pprof", "trace", "arena-namespace", "config", "helm-binary"})
_ELASTIC: Final = {
    "min-workers": "min_workers",
    "max-workers": "max_workers",
    "max-wait-time": "max_wait_time",
    "job-restart-policy": "job_restart_policy",
    "job-backoff-limit": "backoff_limit",
    "worker-restart-policy": "worker_restart_policy",
    "spot-instance": "spot",
    "launcher-selector": "launcher_selector",
}
_PROCESSES: Final = "nproc-per-node"
_COUNTS: Final = frozenset({"min_workers", "max_workers", "max_wait_time", "backoff_limit"})
_VARIABLES: Final = ("workers", "gpus", "minWorkers", "maxWorkers")
"""The placeholders that arena fills into a command; here they are variables of the job."""
_REASONS: Final[Mapping[str, str]] = {
    "gang": "all replicas of a job start together or not at all anyway",
    "image-pull-policy": "nothing is ever pulled; left out",
    "image-pull-secret": "nothing is ever pulled; left out",
    "share-memory": "every container has a /dev/shm as large as its memory; left out",
    "scheduler": "cockpit schedules; left out",
    "ssh-secret": "there is no SSH here; left out",
    "mounts-on-launcher": "every replica sees the same folders",
    "shell": "the command runs by itself, or in bash where it needs a shell",
    "tensorboard": "`cockpit tensorboard` starts one for a job; left out",
}
_BACKOFF_LIMIT: Final = "6"
"""The number of retries that arena assumes without an option."""
_OF_FILE: Final = Elastic(workers=1, max_workers=1)
"""The settings of an elastic job whose file says nothing of them."""
_UPPER: Final = re.compile(r"(?<=[a-z])[A-Z]|^[A-Z]")


def is_arena(text: str) -> bool:
    """Return whether a text is an `arena submit` line."""
    try:
        words, _ = command_line(text)
    except ValueError:
        return False
    if not words or PurePosixPath(words[0]).name != "arena":
        return False
    # Global options such as --loglevel may come before the verb.
    return read_line(words[1:], _FLAGS).rest[:1] == ["submit"]


def read_arena(text: str, elastic_fields: frozenset[str]) -> Draft:
    """Read an `arena submit` line.

    `elastic_fields`: what a job file knows under `elastic`.
    """
    (_, *words), rest = command_line(text)
    line = _long_options(read_line(words, _FLAGS))
    # `arena submit` alone has no kind; the empty one is refused below.
    _, kind, *command = [*line.rest, ""] if len(line.rest) == 1 else line.rest
    draft = Draft()
    draft.lacks_behind(rest)
    refuse_expansions(text, line.options, draft)
    if kind not in _MODES:
        raise ValueError(f"arena submit {kind} is a kind of job that does not run here; these do: {', '.join(_MODES)}")
    draft.values["mode"] = _MODES[kind]
    options: dict[str, str] = {}
    for name, value in line.options:
        if name in _REPEATED:
            _take_repeated(name, value, draft)
        else:
            options[name] = value
    _take(kind, options, draft, elastic_fields)
    words_of_command = [word for word in command if word] or []
    # One word is the text of a shell, as arena takes it; several are a program and its arguments.
    text_of = command[0] if len(command) == 1 else shlex.join(words_of_command)
    if text_of:
        draft.values["command"] = runnable(text_of)
    else:
        draft.run([])
    _variables(text_of, options, draft)
    # After the size, by which the number of processes is judged.
    take_torchrun(draft, options.get(_PROCESSES), f"--{_PROCESSES}")
    take_roles({name: options[name] for name in options if name in ROLE_OPTIONS}, draft)
    return draft


def _long_options(line: Line) -> Line:
    """Return the line with arena's long names of options, also for old spellings such as `psCpu`."""

    def long(name: str) -> str:
        if name in _FLAGS:
            return name
        return _UPPER.sub(lambda match: ("-" if match.start() else "") + match[0].lower(), _SHORT.get(name, name))

    return Line([(long(name), value) for name, value in line.options], line.rest)


def _take_repeated(name: str, value: str, draft: Draft) -> None:
    """Take an option that may be given several times."""
    key, _, given = value.partition("=")
    if name == "env" and "=" in value:
        draft.env(key, given)
    elif name == "toleration":
        # arena writes `KEY=VALUE:EFFECT,OPERATOR`; there is only one effect here (NoSchedule).
        draft.values.setdefault("tolerations", []).append("*" if value == "all" else value.partition(":")[0])
    elif name == "selector" and "=" in value:
        draft.values.setdefault("node_selector", {})[key] = given
    elif name == "device" and "=" in value:
        read_resources({"limits": {key: given}}, "--device", draft)
    elif name == "data" and ":" in value:
        claim, _, place = value.partition(":")
        take_folder(claim, "", place, f"--data={value}", draft)
        draft.lacks(f"--data={value}", f"{claim} is the volume of that name in the catalogue")
    elif name == "data-dir" and value:
        path, _, place = value.partition(":")
        folder = PurePosixPath(path).name
        # A folder such as `.cache` has a name that no mount of a job may have.
        take_folder("data" if name_error(folder) else folder, path, place or path, f"--data-dir={value}", draft)
    # These two are a label and an annotation of Alibaba's scheduler that mean something here; they come before the
    # general case, which would keep them as plain labels.
    elif value == f"{COMPUTE_QOS}={BEST_EFFORT}":
        draft.values["best_effort"] = True
    elif value == f"{SUPERVISED}=true":
        draft.values["supervised"] = True
    elif name == "label" and "=" in value:
        take_labels({key: given}, "--label", draft)
    else:
        _note(name, value, draft)


def _note(name: str, value: str, draft: Draft) -> None:
    if name in _ARENAS_OWN:
        draft.lacks(f"--{name}={value}" if value else f"--{name}", "is about arena itself; left out")
    else:
        draft.lacks(f"--{name}" + (f"={value}" if value else ""), *((_REASONS[name],) if name in _REASONS else ()))


def _take(kind: str, options: Mapping[str, str], draft: Draft, elastic_fields: frozenset[str]) -> None:
    """Read the options that are given once; those of an elastic job go below `elastic`."""
    # Annotations and labels were taken before (`_take_repeated`); these two belong to the elastic part.
    elastic: dict[str, Any] = {
        name: draft.values.pop(name) for name in ("best_effort", "supervised") if name in draft.values
    }
    is_elastic = kind in {"etjob", "et"}
    for name, value in options.items():
        if name in ROLE_OPTIONS or name == _PROCESSES:
            continue
        if name in _ELASTIC and _ELASTIC[name] in elastic_fields and (is_elastic or kind not in {"deepspeedjob", "dp"}):
            elastic[_ELASTIC[name]] = _elastic_value(_ELASTIC[name], value)
        elif not _carry_over(name, value, options, draft):
            _note(name, value, draft)
    if is_elastic:
        elastic.setdefault("backoff_limit", int(_BACKOFF_LIMIT))
        if "max_workers" not in elastic:
            draft.lacks("--max-workers", "arena's default is 1000; without it the job grows to its --workers only")
    if elastic or is_elastic:
        # A job file has either `nodes` or `elastic`.
        draft.values["elastic"] = {"workers": draft.values.pop("nodes", 1), **elastic}


def _carry_over(name: str, value: str, options: Mapping[str, str], draft: Draft) -> bool:
    """Return whether the option was carried over; else a note in `draft` says why not."""
    if name in {"name", "image", "running-timeout"}:
        draft.values["time_limit" if name == "running-timeout" else name] = value
    elif name in {"gpus", "cpu", "memory", "workers"}:
        _size(name, value, draft)
    elif name in _TAKERS:
        _TAKERS[name](value, f"--{name}={value}", draft)
    # arena's --queue is a flag (kube-queue holds the job until it is dequeued), not the name of a queue.
    elif name == "queue" and value in {"", "true"}:
        draft.values["suspension"] = {"scheduling": True}
    elif name == "starting-timeout" and isinstance(seconds := parse_duration(value), int):
        limit = parse_duration(options.get("running-timeout", ""))
        take_longest_wait(seconds, f"--starting-timeout={value}", draft, limit if isinstance(limit, int) else None)
    else:
        return _are_retries(name, value, options, draft)
    return True


_TAKERS: Final[Mapping[str, Callable[[str, str, Draft], None]]] = {
    "namespace": take_namespace,
    "priority": take_priority_class,
}


def _are_retries(name: str, value: str, options: Mapping[str, str], draft: Draft) -> bool:
    """Carry over retries of jobs that are not elastic."""
    retries = 0
    if name == "retry" and is_whole(value):
        retries = int(value)
    elif name == "job-restart-policy" and value in {"Never", "OnFailure"}:
        given = options.get("job-backoff-limit", _BACKOFF_LIMIT)
        retries = int(given) if value == "OnFailure" and is_whole(given) else 0
    # The limit by itself says nothing: the restart policy reads it.
    elif name != "job-backoff-limit" or not is_whole(value):
        return False
    if retries:
        draft.values["restart"] = {"max_restarts": retries}
    return True


def _elastic_value(field: str, value: str) -> object:
    if field in _COUNTS and is_whole(value):
        return int(value)
    if field == "launcher_selector":
        # A value without `=` stays text, so that the job file's own check reports it at its field.
        return dict([value.split("=", 1)]) if "=" in value else value
    return True if value in {"", "true"} else value


def _size(name: str, value: str, draft: Draft) -> None:
    """Take the size of a node, or the number of workers."""
    if name == "workers":
        draft.values["nodes"] = draft.whole(value, "--workers")
    elif name == "memory":
        mib = memory_mib(value)
        draft.spec(memory=f"{mib}M" if mib else value)
    elif name == "cpu":
        draft.spec(cpus=cpu_count(value) or value)
    # --gpus=0 is arena's default and asks for none; a spec without cards says the same.
    elif value != "0":
        draft.spec(cards=int(value) if is_whole(value) else value)


def _variables(command: str, options: Mapping[str, str], draft: Draft) -> None:
    """Set the variables that arena puts into a command. The launcher of an elastic job has them by itself."""
    if "elastic" in draft.values:
        return
    given = {
        "workers": options.get("workers", "1"),
        "gpus": options.get("gpus", "0"),
        "minWorkers": options.get("min-workers", "1"),
        "maxWorkers": options.get("max-workers", options.get("workers", "1")),
    }
    for name in _VARIABLES:
        # Only those that the command uses, so that other jobs get no variables that they do not know.
        if f"${{{name}}}" in command or f"${name}" in command:
            draft.env(name, given[name])


def write_arena(values: Mapping[str, Any]) -> str:
    """Return the `arena submit` line for the values of a job file. Fields without an option are left out."""
    spec = (values.get("specs") or [{}])[0]
    elastic = dict(values.get("elastic") or {})
    kind = "etjob" if elastic else _KINDS.get(str(values.get("mode", "")), "pytorchjob")
    # arena fills these in by itself.
    env = {name: value for name, value in values.get("env", {}).items() if name not in _VARIABLES}
    seconds = parse_duration(values.get("time_limit", ""))
    if elastic:
        # Always written: where an option is missing, arena takes other defaults than a job file has.
        elastic = {
            "max_workers": elastic.get("workers"),
            "max_wait_time": _OF_FILE.max_wait_seconds,
            "backoff_limit": _OF_FILE.backoff_limit,
            **elastic,
        }
    folders = values.get("volumes", [])
    options: list[tuple[str, object]] = [
        ("name", values["name"]),
        ("namespace", values.get("project")),
        ("image", values.get("image")),
        ("workers", elastic.pop("workers", None) or values.get("nodes", 1)),
        ("gpus", spec.get("cards")),
        ("cpu", spec.get("cpus")),
        # M and G are binary in a job file, and Mi and Gi in a quantity of Kubernetes.
        ("memory", spec.get("memory") and f"{spec['memory']}i"),
        ("ps", values.get("parameter_servers")),
        # Only these two kinds have the option.
        ("running-timeout", f"{seconds}s" if kind in {"tfjob", "pytorchjob"} and isinstance(seconds, int) else None),
        ("retry", (values.get("restart") or {}).get("max_restarts")),
        ("priority", values.get("priority")),
        ("queue", "true" if (values.get("suspension") or {}).get("scheduling") else None),
        *((option, _flag_text(elastic[field])) for option, field in _ELASTIC.items() if field in elastic),
        *((("label", f"{COMPUTE_QOS}={BEST_EFFORT}"),) if "best_effort" in elastic else ()),
        *((("annotation", f"{SUPERVISED}=true"),) if "supervised" in elastic else ()),
        *(("label", f"{name}={value}") for name, value in values.get("labels", {}).items()),
        *(("env", f"{name}={value}") for name, value in env.items()),
        *(("selector", f"{name}={value}") for name, value in values.get("node_selector", {}).items()),
        *(("toleration", "all" if each == "*" else each) for each in values.get("tolerations", [])),
        *(_folder(each) for each in folders),
    ]
    lines = [f"--{name}={shlex.quote(str(value))}" for name, value in options if value is not None]
    # arena hands the text to a shell.
    command = without_patterns(without_nodes(str(values["command"])))
    # Else the command would be read as an option.
    options_end = ["--"] if command.startswith("-") else []
    return " \\\n  ".join([f"arena submit {kind}", *lines, *options_end, shlex.quote(command)]) + "\n"


def _folder(volume: Mapping[str, Any]) -> tuple[str, str]:
    """Return the option for a folder of the machine, or for one that the catalogue knows."""
    if "path" in volume:
        return "data-dir", str(volume["path"])
    return "data", f"{volume['name']}:/workspace/volume/{volume['name']}"


def _flag_text(value: object) -> object:
    if isinstance(value, dict):
        return ",".join(f"{name}={item}" for name, item in value.items())
    return "true" if value is True else value


_ROLES: Final = ("chief", "worker", "ps", "evaluator")
"""The roles, by the position of the pool."""
_OF_ROLE: Final = ("image", "cpu", "cpu-limit", "memory", "memory-limit", "gpus", "selector")
ROLE_OPTIONS: Final = frozenset(
    {f"{role}-{each}" for role in _ROLES for each in _OF_ROLE} | {"ps", "chief", "evaluator"}
)

_SERVER: Final = (
    f"a parameter server has {PARAMETER_SERVER.cpus} CPU, {PARAMETER_SERVER.memory_mib} MiB, the job's image"
)


def take_roles(options: Mapping[str, str], draft: Draft) -> None:
    """Read the options of single roles; where a role says nothing, it has what is said of all.

    `options`: those of the roles.
    """
    own = {role: _role_spec(role, options, draft) for role in _ROLES}
    servers = draft.whole(options.get("ps"), "--ps")
    # A job file has these roles only as worker pools.
    if _is_on(options, "chief") or _is_on(options, "evaluator"):
        _take_pools(options, own, servers, draft)
        return
    worker = own["worker"]
    draft.spec(**worker.pop("spec", {}))
    if selector := worker.pop("selector", None):
        draft.values["node_selector"] = selector
    draft.values |= worker
    if "ps" in options:
        draft.values["parameter_servers"] = servers
    for name, value in options.items():
        role = name.partition("-")[0]
        # `ps` and `chief` have no hyphen: for them role and name are equal, and they were read above.
        if role not in {"worker", name}:
            draft.lacks(f"--{name}={value}", _SERVER if role == "ps" else f"there is no {role}; left out")


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "false") in {"", "true"}


def _role_spec(role: str, options: Mapping[str, str], draft: Draft) -> dict[str, Any]:
    """Return a role's `image`, `spec` and `selector`; a limit comes before a request, which is noted."""
    spec: dict[str, Any] = {}
    for name in ("cpu", "memory"):
        limits, limit = (options.get(f"{role}-{each}") for each in (name, f"{name}-limit"))
        # A job here has a single amount, where Kubernetes distinguishes what is reserved from what is allowed.
        if limits and limit and limits != limit:
            draft.lacks(f"--{role}-{name}={limits}", f"the limit, {limit}, is taken")
        if value := limit or limits:
            mib = memory_mib(value)
            # If it is no quantity, it is passed on as it is, and the job file's own check reports it.
            known = cpu_count(value) if name == "cpu" else f"{mib}M" if mib else None
            spec["cpus" if name == "cpu" else "memory"] = known or value
    if (cards := options.get(f"{role}-gpus", "0")) != "0":
        spec["cards"] = int(cards) if is_whole(cards) else cards
    values: dict[str, Any] = {"spec": spec} if spec else {}
    if image := options.get(f"{role}-image"):
        values["image"] = image
    if "=" in (selector := options.get(f"{role}-selector", "")):
        key, _, value = selector.partition("=")
        values["selector"] = {key: value}
    return values


def _take_pools(options: Mapping[str, str], own: dict[str, dict[str, Any]], servers: int, draft: Draft) -> None:
    """Make worker pools of the roles: a chief, or in its place the first worker, comes first."""
    workers, whole = int(draft.values.pop("nodes", 1)), (draft.values.pop("specs", None) or [{}])[0]
    has_chief = _is_on(options, "chief")
    # Without a chief the first worker is one, so that the others are one fewer.
    counts = [1, workers if has_chief else workers - 1, servers, int(_is_on(options, "evaluator"))]
    if not has_chief:
        own["chief"] = own["worker"]
    pools: list[dict[str, Any]] = []
    for role, count in zip(_ROLES, counts, strict=True):
        mine = own[role]
        if selector := mine.pop("selector", None):
            words = ",".join(f"{key}={value}" for key, value in selector.items())
            draft.lacks(f"--{role}-selector={words}", "all replicas of a job have the same node_selector; left out")
        is_worker = role == "worker" or (role == "chief" and not has_chief)
        spec = {**(whole if is_worker else {}), **mine.pop("spec", {})}
        pools.append({"replicas": count, **({"spec": spec} if spec else {}), **mine} if count else {})
    # Empty pools keep the positions of those behind them; at the end there are none.
    while not pools[-1]:
        pools.pop()
    draft.values |= {"mode": "worker-pools", "worker_pools": pools}
