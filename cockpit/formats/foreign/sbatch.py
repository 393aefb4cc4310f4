"""Converts a Slurm batch script into a job and back: its `#SBATCH` lines, and what it runs. Source: sbatch(1).

`read_sbatch`:

1. Take the options out of the script's head, where Slurm looks for them: up to its first command. Options of the
   command line override them.
2. Set what every batch script has: Slurm's mode, a writable home, the script's text, its output folder.
3. Take over the submitting shell's variables, as far as `--export` says.
4. Make a command of the script's body, for systems that have no batch scripts.
5. Take over the options, first all those that together decide the size of a node, then each by itself. An option
   without a counterpart is noted in the draft.

`write_sbatch` is the reverse. Fields without an option of sbatch are left out.
"""

from __future__ import annotations

import math
import re
import shlex
import signal
from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, Final

from msgspec.structs import replace

from cockpit.errors import SpecErrors
from cockpit.formats.foreign.draft import UNKNOWN, Draft, Submission, runnable, upwards
from cockpit.formats.foreign.sbatch_options import (
    DIRECTIVE,
    as_directive,
    directives,
    is_command,
    option_values,
    refuse_components,
    script_lines,
)
from cockpit.formats.slurm.begin import begin_moment
from cockpit.model.rules.batchscript import SIGNAL_PATTERN
from cockpit.model.rules.bounds import RESTARTS, VARIABLE_PATTERN
from cockpit.model.spec import HomeAccess, JobSpec, Mode
from cockpit.model.text import is_visible, is_whole

_SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_./+-]+")
_FEATURE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?(?:=[A-Za-z0-9._-]*)?")
_WITH_ZONE: Final = re.compile(r"(?:Z|[+-]\d\d:\d\d)$")
_SIGNAL: Final = re.compile(r"(?:(?P<to>[RBrb]{1,2}):)?(?P<name>[A-Za-z0-9]+)(?:@(?P<seconds>\d{1,5}))?")
_VARIABLE: Final = re.compile(VARIABLE_PATTERN)
_OF_SESSION: Final = frozenset(
    [
        "_",
        "COLUMNS",
        "DISPLAY",
        "HOME",
        "LINES",
        "LOGNAME",
        "LS_COLORS",
        "MAIL",
        "OLDPWD",
        "PWD",
        "SHLVL",
        "STY",
        "TERM",
        "TERMCAP",
        "TMUX",
        "TMUX_PANE",
        "USER",
        "WINDOWID",
        "XAUTHORITY",
    ]
)
_PREFIXES_OF_SESSION: Final = ("COCKPIT_", "DBUS_", "SBATCH_", "SLURM_", "SLURMD_", "SSH_", "XDG_")
_MEMORY: Final = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<unit>[KMGTkmgt]?)[Bb]?")
_MIB_OF: Final = {"K": 1 / 1024, "": 1, "M": 1, "G": 1024, "T": 1024 * 1024}
_RANGES: Final = re.compile(r"\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*", re.ASCII)
_LIST: Final = re.compile(r"(?P<head>[^\[,]*)\[(?P<ranges>[^\]]*)\](?P<tail>[^,]*)")


def is_sbatch(text: str) -> bool:
    return text.startswith("#!") and any(line.startswith(DIRECTIVE) for line in script_lines(text))


def read_sbatch(source: str, text: str, submission: Submission = UNKNOWN) -> Draft:
    """Folders and files of the draft are relative to where the script is submitted. Raises ValueError."""
    draft = Draft()
    lines = script_lines(text)
    # Step 1
    refuse_components(lines)
    options = directives(lines, draft) | option_values(submission.options)
    # Step 2
    draft.values |= {"mode": "slurm", "home": "rw", "script": _script(source, text, options)}
    draft.values["output"] = options.get("chdir", ".")
    # Step 3
    _variables(options.get("export", "ALL"), submission, draft)
    # Step 4
    draft.values["command"] = _command(lines, draft)
    # Step 5
    _take(options, submission, draft)
    return draft


def _take(options: Mapping[str, str], submission: Submission, draft: Draft) -> None:
    _size(options, draft)
    for each in _gres(options):
        if each.partition(":")[0] != "gpu":
            draft.lacks(f"--gres={each}", "cards alone are asked for here, whole or in parts; left out")
    for name, value in options.items():
        if name in _SIZES or name in _OF_SCRIPT:
            continue
        if name in _MOMENTS:
            draft.values[_MOMENTS[name]] = _moment(name, value, submission)
            continue
        if take := _TAKERS.get(name):
            take(value, draft)
        else:
            draft.lacks(f"--{name}")


def _set_field(field: str) -> Callable[[str, Draft], None]:
    def take(value: str, draft: Draft) -> None:
        draft.values[field] = value

    return take


def _listed(field: str) -> Callable[[str, Draft], None]:
    def take(value: str, draft: Draft) -> None:
        draft.values[field] = value.split(",")

    return take


def _flag(field: str) -> Callable[[str, Draft], None]:
    def take(value: str, draft: Draft) -> None:
        if value:
            draft.lacks(f"--{field}={value}", "is taken for the plain flag")
        draft.values[field] = True

    return take


def _dependencies(value: str, draft: Draft) -> None:
    # `?` separates alternatives in --dependency. To drop them would start the job too late or too early, so refuse.
    if "?" in value:
        raise ValueError(
            f"--dependency={value} waits for any of several jobs, and a job here waits for all that it names; write "
            "them with commas, or only the one that decides"
        )
    conditions: list[str] = []
    for condition in value.split(","):
        kind, *jobs = condition.split(":")
        # One kind may name several jobs (`afterok:12:13`); each becomes a condition. `singleton` names none.
        conditions += [f"{kind}:{job.partition('+')[0]}" for job in jobs] or [kind]
        if any("+" in job for job in jobs):
            draft.lacks("--dependency", "a delay behind another job has no counterpart here; taken without it")
    draft.values["dependencies"] = conditions


def _time(value: str, draft: Draft) -> None:
    seconds = _seconds(value)
    if seconds:
        draft.values["time_limit"] = seconds
    else:
        draft.lacks(f"--time={value}", "sets no limit here; the default time limit is used")


def _seconds(value: str) -> int | None:
    days, dash, clock = value.rpartition("-")
    parts = clock.split(":")
    if not all(is_whole(part) for part in (*parts, *([days] if dash else []))) or len(parts) > 3:
        return None
    figures = [int(part) for part in parts]
    if dash:
        # After days: hours, hours:minutes, or hours:minutes:seconds; what is left out is 0.
        figures += [0] * (3 - len(figures))
        return int(days) * 86_400 + figures[0] * 3600 + figures[1] * 60 + figures[2]
    # sbatch(1) --time: one number is minutes, two are minutes:seconds, three hours:minutes:seconds.
    minutes_first = [0, *figures, 0][:3] if len(figures) == 1 else [0, *figures][-3:]
    hours, minutes, seconds = figures if len(figures) == 3 else minutes_first
    return hours * 3600 + minutes * 60 + seconds


def _nice(value: str, draft: Draft) -> None:
    # sbatch(1): --nice without a value is 100.
    draft.values["nice"] = int(value) if is_whole(value.lstrip("-")) else 100


def _variables(value: str, submission: Submission, draft: Draft) -> None:
    """Read which of the submitting shell's variables `--export` passes on."""
    shell = submission.variables
    words = [each for each in value.split(",") if each]
    if shell is not None and ("ALL" in words or all("=" in each for each in words)):
        for name, given in shell.items():
            if _is_taken_over(name, given):
                draft.env(name, given)
    for each in words:
        name, equals, given = each.partition("=")
        if equals:
            draft.env(name, given)
        elif name in {"ALL", "NONE", "NIL"}:
            continue
        elif shell is not None and name in shell:
            draft.env(name, shell[name])
        else:
            draft.lacks(f"--export={name}", "this variable is not set where the script is submitted; left out")


def _is_taken_over(name: str, value: str) -> bool:
    """Return whether a variable is passed on: it belongs neither to the login session nor to another job nor to
    cockpit."""
    ours = name in _OF_SESSION or name.startswith(_PREFIXES_OF_SESSION)
    return not ours and _VARIABLE.fullmatch(name) is not None and is_visible(value.replace("\n", ""))


def _moment(name: str, value: str, submission: Submission) -> str:
    if _WITH_ZONE.search(value):
        return value
    if submission.now is None:
        if value.lower().startswith("now"):
            return value
        raise ValueError(f"--{name}={value} is a local time, and no clock is at hand here; write it with its zone")
    try:
        begin = begin_moment(value, submission.now)
    except ValueError as error:
        raise ValueError(f"--{name}: {error}") from None
    return begin.isoformat(timespec="seconds")


def _constraint(value: str, draft: Draft) -> None:
    """Features that a node must have, as labels."""
    features = [each.strip() for each in re.split(r"[&,]", value)]
    if not all(_FEATURE.fullmatch(each) for each in features):
        draft.lacks(f"--constraint={value}", "choices and counts of features have no counterpart here; left out")
        return
    pairs = [each.partition("=") for each in features]
    draft.values["node_selector"] = {name: given if equals else "true" for name, equals, given in pairs}
    wanted = ", ".join(f"{name}={given}" for name, given in draft.values["node_selector"].items())
    draft.lacks(f"--constraint={value}", f"features are labels of nodes here; taken for {wanted}")


def _container_image(value: str, draft: Draft) -> None:
    """Enroot's `[USER@][REGISTRY#]IMAGE[:TAG]`, or a file."""
    if value.endswith((".sqsh", ".squashfs")):
        draft.lacks(f"--container-image={value}", "packed images of enroot cannot be read here; left out")
        return
    # pyxis: `USER@REGISTRY#IMAGE`. Without a `#`, an `@` begins the image's digest and must stay.
    name = value.removeprefix("docker://").rpartition("@")[2] if "#" in value else value.removeprefix("docker://")
    draft.values["image"] = name.replace("#", "/", 1)


def _early_signal(value: str, draft: Draft) -> None:
    """`[{R|B}:]SIGNAL[@SECONDS]`."""
    match = _SIGNAL.fullmatch(value)
    name = _signal_name(match["name"]) if match is not None else ""
    if match is None or not name:
        raise ValueError(f"--signal={value} is no signal; write --signal=B:USR1@60")
    early: dict[str, object] = {"name": name, "seconds": int(match["seconds"] or 60)}
    if "B" in (match["to"] or "").upper():
        early["shell"] = True
    draft.values["script"]["early_signal"] = early


def _signal_name(given: str) -> str:
    """Return the signal's name; empty: there is no signal of that name or number."""
    try:
        found = signal.Signals(int(given)).name if is_whole(given) else given.upper()
    except ValueError:
        return ""
    name = found.removeprefix("SIG")
    return name if re.fullmatch(SIGNAL_PATTERN, name) else ""


def _requeue(value: str, draft: Draft) -> None:
    """Again where its node fails, however often; a job that gives way to another waits again anyway."""
    del value
    draft.values["restart"] = {"max_restarts": RESTARTS.high, "lost_only": True}


def _no_requeue(value: str, draft: Draft) -> None:
    """Nothing: a job begins again only if it says so."""
    del value, draft


def _nodelist(value: str, draft: Draft) -> None:
    draft.values["node_names"] = [name for part in _split_list(value) for name in part]


def _exclude(value: str, draft: Draft) -> None:
    draft.lacks(
        f"--exclude={value}", "has no counterpart here; left out: name the nodes that the job may use with --nodelist"
    )


def _split_list(value: str) -> list[list[str]]:
    """`n[1-3,7],m2`."""
    parts = re.findall(r"[^,\[]+(?:\[[^\]]*\][^,]*)?", value)
    return [_expanded(part) for part in parts]


def _expanded(part: str) -> list[str]:
    match = _LIST.fullmatch(part)
    if match is None or _RANGES.fullmatch(match["ranges"]) is None:
        return [part]
    names: list[str] = []
    for each in match["ranges"].split(","):
        low, _, high = each.partition("-")
        numbers = range(int(low), int(high or low) + 1)
        # The first number's width counts: `n[08-10]` is n08, n09, n10.
        names += [f"{match['head']}{number:0{len(low)}d}{match['tail']}" for number in numbers]
    return names


_TAKERS: Final[Mapping[str, Callable[[str, Draft], None]]] = {
    "job-name": _set_field("name"),
    "account": _set_field("account"),
    "array": _set_field("array"),
    "qos": _set_field("qos"),
    "reservation": _set_field("reservation"),
    "partition": _listed("partitions"),
    "dependency": _dependencies,
    "time": _time,
    "hold": _flag("hold"),
    "exclusive": _flag("exclusive"),
    "nice": _nice,
    "nodelist": _nodelist,
    "exclude": _exclude,
    "constraint": _constraint,
    "container-image": _container_image,
    "requeue": _requeue,
    "no-requeue": _no_requeue,
    "signal": _early_signal,
}
_OF_SCRIPT: Final = frozenset({"output", "error", "input", "open-mode", "chdir", "export"})
"""Options about the script's files, folders and variables, which are read elsewhere."""
_MOMENTS: Final = {"begin": "begin_at", "deadline": "deadline"}
_SIZES: Final = frozenset(
    {"nodes", "ntasks", "ntasks-per-node", "cpus-per-task", "mem", "mem-per-cpu", "mem-per-gpu"}
    | {"mincpus", "distribution", "gpus", "gpus-per-node", "gpus-per-task", "gres", "cpus-per-gpu"}
)


_ENV_HEAD: Final = "# Variables of the job\n"
_EXPORT: Final = re.compile(
    r"""export (?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>(?:[\w@%+=:,./-]|'[^']*'|"'")*)\n""", re.ASCII
)
"""A line as `shlex.quote` leaves it, where nothing is expanded."""
_OPTION_VALUE: Final = re.compile(r"[\w@%+=:./-]*", re.ASCII)
"""Characters that a value in `--export` may have: it splits at commas and removes quotes."""
_NO_OPTIONS: Final = "true # no options of sbatch follow"
"""Slurm stops looking for options at the first command."""
_TASKS: Final = {
    "cpus-per-task": "SLURM_CPUS_PER_TASK",
    "ntasks": "SLURM_NTASKS",
    "ntasks-per-node": "SLURM_NTASKS_PER_NODE",
}
"""Options that count tasks, and their variables in the script."""
_TOLD: Final = {
    "gpus": "SLURM_GPUS",
    "gpus-per-node": "SLURM_GPUS_PER_NODE",
    "gpus-per-task": "SLURM_GPUS_PER_TASK",
    "cpus-per-gpu": "SLURM_CPUS_PER_GPU",
    "distribution": "SLURM_DISTRIBUTION",
}
"""Options that the script and its steps see as they were requested."""
_MEMORY_SHARES: Final = {"mem-per-cpu": "SLURM_MEM_PER_CPU", "mem-per-gpu": "SLURM_MEM_PER_GPU"}


def _whole(options: Mapping[str, str], name: str) -> int | None:
    value = options.get(name, "")
    return int(value) if is_whole(value) and int(value) else None


def _size(options: Mapping[str, str], draft: Draft) -> None:
    """Read the number of nodes and the resources of each: Slurm counts tasks, cockpit nodes."""
    wanted = options.get("nodes", "")
    least, dash, _ = wanted.partition("-")
    if dash:
        draft.lacks(f"--nodes={wanted}", "the smaller number is taken")
    nodes = int(least) if is_whole(least) and int(least) else 1
    if "nodes" in options:
        draft.values["nodes"] = nodes
    # Slurm distributes tasks evenly; the fullest node decides, since all nodes of a job here are alike.
    per_node = _whole(options, "ntasks-per-node") or math.ceil((_whole(options, "ntasks") or nodes) / nodes)
    each = _whole(options, "cpus-per-task")
    cards, model = _cards(options, nodes, per_node)
    for name, variable in _TOLD.items():
        if name in options:
            draft.env(variable, options[name])
    cpus = per_node * (each or 1) if {"ntasks", "ntasks-per-node", "cpus-per-task"} & options.keys() else None
    cpus = max(cpus or 0, _whole(options, "mincpus") or 0) or None
    # --cpus-per-task and --cpus-per-gpu exclude each other in sbatch(1); the first one wins here.
    if each is None and (per_card := _whole(options, "cpus-per-gpu")):
        cpus = max(cpus or 0, per_card * cards) or None
    draft.spec(cpus=cpus, memory=_memory(options, cpus or 1, cards, draft), cards=cards or None)
    draft.spec(card_models=[model] if model else None)
    for name, variable in _TASKS.items():
        if number := _whole(options, name):
            draft.env(variable, str(number))


def _cards(options: Mapping[str, str], nodes: int, tasks: int) -> tuple[int, str]:
    """Per node, and of which model."""
    for name, share in (("gpus-per-node", 1.0), ("gpus-per-task", float(tasks)), ("gpus", 1 / nodes)):
        if value := options.get(name):
            count, model = _of_one_model(f"--{name}={value}", _split_counts(value))
            # --gpus counts the whole job, the others a node or a task; rounded up, so that each node has enough.
            return math.ceil(count * share), model
    wanted = [each for each in _gres(options) if each.partition(":")[0] == "gpu"]
    text = ",".join(each.partition(":")[2] for each in wanted)
    return _of_one_model(f"--gres={options['gres']}", _split_counts(text)) if wanted else (0, "")


def _gres(options: Mapping[str, str]) -> list[str]:
    """Return each generic resource, without the socket binding that Slurm permits behind it."""
    return [each for each in re.sub(r"\([^)]*\)", "", options.get("gres", "")).split(",") if each]


def _of_one_model(text: str, counts: list[tuple[str, int]]) -> tuple[int, str]:
    """Return the number of cards and their model; the model is empty where any will do."""
    models = {model for model, _ in counts}
    if len(models) > 1:
        names = " and ".join(sorted(model or "any model" for model in models))
        raise ValueError(
            f"{text} asks for cards of several models ({names}) on one node, and a node of a job has cards of one "
            "model; write one of them, or submit a job for each"
        )
    return sum(count for _, count in counts), next(iter(models), "")


def _split_counts(value: str) -> list[tuple[str, int]]:
    """`a100:2,v100` as models and counts."""
    counts = []
    for each in value.split(","):
        model, _, count = each.rpartition(":")
        if count and not is_whole(count):
            # A text behind the colon that is no count belongs to the model: `gpu:a100` is one A100.
            model, count = each, "1"
        counts.append((model, int(count or 1)))
    return counts


def _memory(options: Mapping[str, str], cpus: int, cards: int, draft: Draft) -> str | None:
    for name, times in (("mem", 1), ("mem-per-cpu", cpus), ("mem-per-gpu", max(1, cards))):
        match = _MEMORY.fullmatch(options.get(name, ""))
        if match is None:
            continue
        mib = upwards(float(match["number"]) * _MIB_OF[match["unit"].upper()])
        if mib:
            if name in _MEMORY_SHARES:
                draft.env(_MEMORY_SHARES[name], str(mib))
            return f"{mib * times}M"
        # sbatch(1): a memory of 0 is all memory of the node.
        if "exclusive" not in options:
            draft.lacks(f"--{name}=0", "all memory of a node has no counterpart here; write --exclusive")
    return None


def _script(source: str, text: str, options: Mapping[str, str]) -> dict[str, object]:
    """The fields of the job's script."""
    fields: dict[str, object] = {"text": text, "work_dir": options.get("chdir", "."), "submit_dir": "."}
    for name in ("output", "error", "input"):
        if options.get(name):
            fields[name] = options[name]
    if _PLAIN_NAME.fullmatch(source):
        fields["file"] = source
    mode = options.get("open-mode", "")
    if mode:
        fields["open_mode"] = "append" if mode[:1] in {"a", "A"} else "truncate"
    return fields


def _command(lines: list[str], draft: Draft) -> str:
    """The command that does what a script does, where there is no batch script: in other forms, on other clusters."""
    words = lines[0].removeprefix("#!").split()
    interpreter = PurePosixPath(words[0]).name if words else "sh"
    body = _taken_env("\n".join(_without_directives(lines[1:])).strip("\n"), draft)
    if interpreter in _SHELLS and len(words) == 1:
        return runnable(_without_comments(body)) if body.strip() else "true"
    if words and interpreter == "env":
        # `#!/usr/bin/env -S python3 -u`: env splits what follows, so that the rest is the interpreter itself.
        words = [word for word in words[1:] if word != "-S"]
    return f"{' '.join(words or ['sh'])} -c {shlex.quote(body)}"


def without_script(spec: JobSpec) -> JobSpec:
    """Return a job with the same effect that has a command in place of its script, for systems without batch
    scripts."""
    assert spec.script is not None
    mode = Mode.SLURM if spec.nodes > 1 else None
    return replace(spec, script=None, mode=mode, home=HomeAccess.RO)


def _without_directives(lines: list[str]) -> list[str]:
    """Behind the first command Slurm takes them for comments, and so does the shell."""
    first = next((number for number, line in enumerate(lines) if is_command(line)), len(lines))
    head = [line for line in lines[:first] if not line.startswith(DIRECTIVE)]
    # The marker is a line of `write_sbatch`; without its removal each conversion would add another one.
    behind = lines[first + 1 :] if lines[first : first + 1] == [_NO_OPTIONS] else lines[first:]
    return [*head, *behind]


def _taken_env(body: str, draft: Draft) -> str:
    """Remove the variables that `write_sbatch` sets in a body, and return what is left."""
    if not body.startswith(_ENV_HEAD):
        return body
    rest = body.removeprefix(_ENV_HEAD)
    while match := _EXPORT.match(rest):
        draft.env(match["name"], "".join(shlex.split(match["value"])))
        rest = rest[match.end() :]
    return rest.strip("\n")


def _without_comments(body: str) -> str:
    """A script of one command, whatever is said above it; any other as it is."""
    lines = body.splitlines()
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith("#")):
        lines.pop(0)
    return lines[0] if len(lines) == 1 else body


_FIELDS: Final = {
    "job-name": "name",
    "chdir": "output",
    "partition": "partitions",
    "nodelist": "node_names",
    "dependency": "dependencies",
    "gres": "specs",
    "begin": "begin_at",
}
"""Options that are called otherwise in a job file."""


def write_sbatch(values: Mapping[str, Any]) -> str:
    """`values`: of a job file. What has no counterpart is not there; who reads it again misses it. Variables that
    `--export` cannot carry are set by the script. Raises SpecErrors, with the field, for a value that no option can be
    given."""
    spec = (values.get("specs") or [{}])[0]
    env = dict(values.get("env", {}))
    each, tasks, per_node = (env.pop(variable, None) for variable in _TASKS.values())
    per_node = per_node or (_tasks_per_node(spec.get("cpus", 1), each) if tasks is None else None)
    models = spec.get("card_models", [])
    gres = f"gpu:{models[0]}:{spec['cards']}" if models else f"gpu:{spec['cards']}" if spec.get("cards") else None
    shell = "ALL" if values.get("script") else "NONE"
    memory = _memory_options(spec, env)
    # `--export` splits at commas and removes quotes, so that other values become `export` lines of the script.
    exported = {name: value for name, value in env.items() if _OPTION_VALUE.fullmatch(str(value))}
    options: dict[str, object] = {
        "job-name": values["name"],
        "chdir": values["output"],
        "nodes": values.get("nodes"),
        "ntasks": tasks,
        "ntasks-per-node": per_node,
        "cpus-per-task": each,
        # Where no number of tasks is known, --mincpus requests a node's CPUs and says nothing about tasks.
        "mincpus": None if each or tasks or per_node else spec.get("cpus"),
        **memory,
        "gres": gres,
        "time": values.get("time_limit") and _clock(values["time_limit"]),
        "partition": ",".join(values.get("partitions", [])) or None,
        "nodelist": ",".join(values.get("node_names", [])) or None,
        "dependency": ",".join(values.get("dependencies", [])) or None,
        "export": ",".join([shell, *(f"{name}={value}" for name, value in exported.items())]) if env else None,
        **{name: values.get(name) for name in ("account", "array", "qos", "reservation", "deadline", "nice")},
        "begin": values.get("begin_at"),
        **_script_options(values.get("script") or {}),
    }
    lines = [_directive(name, str(value)) for name, value in options.items() if value is not None]
    lines += [f"{DIRECTIVE} --{name}" for name in ("hold", "exclusive") if values.get(name)]
    if (values.get("restart") or {}).get("lost_only"):
        lines.append(f"{DIRECTIVE} --requeue")
    if script := values.get("script"):
        first, *rest = script_lines(script["text"])
        return "\n".join([first, *lines, *_without_directives(rest), ""])
    exports = [f"export {name}={shlex.quote(str(value))}\n" for name, value in env.items() if name not in exported]
    body = _body(str(values["command"]))
    if exports:
        body = f"{_ENV_HEAD}{''.join(exports)}\n{body}"
    # A command that begins with `#SBATCH` lines of its own: they are text of the job, not options of this file.
    elif _begins_with_options(body):
        body = f"{_NO_OPTIONS}\n{body}"
    return "\n".join(["#!/bin/bash", *lines, "", body, ""])


def _memory_options(spec: Mapping[str, Any], env: dict[str, Any]) -> dict[str, object]:
    """Return the memory options as the script requested them. `env`: their variable is removed from it, since Slurm's
    srun refuses it beside --mem."""
    shares = {name: env.pop(variable) for name, variable in _MEMORY_SHARES.items() if variable in env}
    return {name: f"{mib}M" for name, mib in shares.items()} or {"mem": spec.get("memory")}


def _directive(name: str, value: str) -> str:
    try:
        return as_directive(name, value)
    except ValueError as error:
        raise SpecErrors([f"{_FIELDS.get(name, name)}: {error}; change it, or take another form"]) from None


def _begins_with_options(body: str) -> bool:
    """Return whether Slurm would take the first lines of the command for options of the job."""
    lines = body.split("\n")
    return any(line.startswith(DIRECTIVE) for line in takewhile(lambda line: not is_command(line), lines))


def _script_options(script: Mapping[str, Any]) -> dict[str, object]:
    given = {"chdir": script.get("work_dir"), "open-mode": script.get("open_mode")}
    given |= {name: script.get(name) for name in ("output", "error", "input")}
    if early := script.get("early_signal"):
        given["signal"] = f"{'B:' if early.get('shell') else ''}{early['name']}@{early.get('seconds', 60)}"
    return {name: value for name, value in given.items() if value is not None}


def _tasks_per_node(cpus: int, each: str | None) -> int | None:
    """Return the tasks per node where a node has the CPUs of several tasks."""
    share = int(each) if each is not None and is_whole(each) else 0
    return cpus // share if share and cpus > share and cpus % share == 0 else None


def _clock(duration: object) -> str:
    """Slurm's days-hours:minutes:seconds of a duration as a job file writes it."""
    from cockpit.model.quantity import parse_duration

    seconds = parse_duration(duration) if isinstance(duration, str | int | float) else 0
    seconds = seconds if isinstance(seconds, int) else 0
    return f"{seconds // 86_400}-{seconds // 3600 % 24:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _body(command: str) -> str:
    """The script that bash was handed, else the command itself."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    # Unwrapped only if reading the script would wrap it again in the same words: so both directions agree.
    whole = len(words) == 3 and words[:2] == ["bash", "-c"]
    return words[2].strip("\n") if whole and runnable(words[2].strip("\n")) == command else command
