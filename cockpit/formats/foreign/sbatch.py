"""Converts a Slurm batch script into a job: its `#SBATCH` lines, and what it runs. Source: sbatch(1).

`read_sbatch`:

1. Take the options out of the script's head, where Slurm looks for them: up to its first command. Options of the
   command line override them.
2. Set what every batch script has: Slurm's mode, a writable home, the script's text, its output folder.
3. Take over the submitting shell's variables, as far as `--export` says.
4. Make a command of the script's body, for systems that have no batch scripts.
5. Take over the options, first all those that together decide the size of a node, then each by itself. An option
   without a counterpart is noted in the draft.

`sbatch_writing` is the reverse.
"""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import Final

from msgspec.structs import replace

from cockpit.formats.foreign.draft import UNKNOWN, Draft, Submission, remedy, runnable
from cockpit.formats.foreign.sbatch_options import (
    DIRECTIVE,
    directives,
    is_command,
    misspelled,
    option_values,
    refuse_components,
    script_lines,
)
from cockpit.formats.foreign.sbatch_sizes import SIZES, gres, take_size
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
_NO_LIMIT: Final = frozenset({"-1", "infinite", "unlimited"})
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
_RANGES: Final = re.compile(r"\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*", re.ASCII)
_LIST: Final = re.compile(r"(?P<head>[^\[,]*)\[(?P<ranges>[^\]]*)\](?P<tail>[^,]*)")


def is_sbatch(text: str) -> bool:
    return text.startswith("#!") and any(line.startswith(DIRECTIVE) for line in script_lines(text))


def read_sbatch(source: str, text: str, submission: Submission = UNKNOWN) -> Draft:
    """Read a batch script. Raises ValueError.

    Folders and files of the draft are relative to where the script is submitted.
    """
    draft = Draft()
    lines = script_lines(text)
    # Step 1
    refuse_components(lines)
    options = directives(lines, draft) | option_values(submission.options)
    # Step 2
    draft.values |= {"mode": "slurm", "home": "rw", "script": _script(source, text, options)}
    # A batch script has no output folder; its files go to the folder where it runs.
    draft.values["output"] = options.get("chdir", ".")
    # Step 3
    _variables(options.get("export", "ALL"), submission, draft)
    # Step 4
    draft.values["command"] = _command(lines, draft)
    # Step 5
    _take(options, submission, draft)
    return draft


def _take(options: Mapping[str, str], submission: Submission, draft: Draft) -> None:
    """Take the options, and note each without a counterpart."""
    take_size(options, draft)
    for each in gres(options):
        if each.partition(":")[0] != "gpu":
            draft.lacks(f"--gres={each}", "cards alone are asked for here, whole or in parts; left out")
    for name, value in options.items():
        if name in SIZES or name in _OF_SCRIPT:
            continue
        if name in _MOMENTS:
            draft.values[_MOMENTS[name]] = _moment(name, value, submission)
            continue
        if take := _TAKERS.get(name):
            take(value, draft)
        elif meant := misspelled(name):
            draft.refuse(f"--{name}", f"is no option of sbatch; write {' or '.join(f'--{each}' for each in meant)}")
        else:
            draft.lacks(f"--{name}")


def _set_field(field: str) -> Callable[[str, Draft], None]:
    def take(value: str, draft: Draft) -> None:
        draft.values[field] = value

    return take


def _array(value: str, draft: Draft) -> None:
    # sbatch takes brackets around the tasks, and no bound for `%0`.
    draft.values["array"] = re.sub(r"^\[(.*)\]", r"\1", value).removesuffix("%0")


def _set_list(field: str) -> Callable[[str, Draft], None]:
    def take(value: str, draft: Draft) -> None:
        draft.values[field] = value.split(",")

    return take


def _set_flag(field: str) -> Callable[[str, Draft], None]:
    def take(value: str, draft: Draft) -> None:
        if value:
            draft.lacks(f"--{field}={value}", "is taken for the plain flag")
        draft.values[field] = True

    return take


def _dependencies(value: str, draft: Draft) -> None:
    """Take dependencies on other jobs. Raises ValueError for alternatives."""
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
    seconds = _seconds(value.strip())
    if seconds:
        draft.values["time_limit"] = seconds
    elif seconds == 0 or value.strip().lower() in _NO_LIMIT:
        draft.lacks(f"--time={value}", "sets no limit here; the default time limit is used")
    else:
        usual = "write minutes, hours:minutes:seconds or days-hours, such as --time=90, --time=1:30:00 or --time=2-0"
        draft.refuse(f"--time={value}", f"is no time limit of sbatch; {remedy(value, usual)}")


def _seconds(value: str) -> int | None:
    """Return the seconds of a time limit, also 0; None if it is none."""
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
    # As sbatch(1) says, named variables go alone, with SLURM_*; only ALL adds those of the shell.
    if shell is not None and ("ALL" in words or not words):
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
    """Return a moment with its zone, or one that counts from the submission. Raises ValueError."""
    if _WITH_ZONE.search(value):
        return value
    # `now+1hour` needs no clock to be read: the job file has the same form, which counts from the submission.
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
    """Take features that a node must have, as labels."""
    features = [each.strip() for each in re.split(r"[&,]", value)]
    if not all(_FEATURE.fullmatch(each) for each in features):
        draft.lacks(f"--constraint={value}", "choices and counts of features have no counterpart here; left out")
        return
    pairs = [each.partition("=") for each in features]
    draft.values["node_selector"] = {name: given if equals else "true" for name, equals, given in pairs}
    wanted = ", ".join(f"{name}={given}" for name, given in draft.values["node_selector"].items())
    draft.lacks(f"--constraint={value}", f"features are labels of nodes here; taken for {wanted}")


def _container_image(value: str, draft: Draft) -> None:
    """Take Enroot's `[USER@][REGISTRY#]IMAGE[:TAG]`, or a file, as the image."""
    if value.endswith((".sqsh", ".squashfs")):
        draft.lacks(f"--container-image={value}", "packed images of enroot cannot be read here; left out")
        return
    # pyxis: `USER@REGISTRY#IMAGE`. Without a `#`, an `@` starts the image's digest and must stay.
    name = value.removeprefix("docker://").rpartition("@")[2] if "#" in value else value.removeprefix("docker://")
    draft.values["image"] = name.replace("#", "/", 1)


def _early_signal(value: str, draft: Draft) -> None:
    """Take `[{R|B}:]SIGNAL[@SECONDS]` as the early signal."""
    match = _SIGNAL.fullmatch(value)
    name = _signal_name(match["name"]) if match is not None else ""
    if match is None or not name:
        raise ValueError(f"--signal={value} is no signal; write --signal=B:USR1@60")
    # sbatch(1): without a time the signal comes 60 seconds before the end.
    early: dict[str, object] = {"name": name, "seconds": int(match["seconds"] or 60)}
    # `R:` lets a job overlap with a reservation that has a MaxStartDelay, which none has here.
    if "B" in (match["to"] or "").upper():
        early["shell"] = True
    draft.values["script"]["early_signal"] = early


def _signal_name(given: str) -> str:
    """Return the signal's name; empty: there is no signal of that name or number."""
    try:
        full_name = signal.Signals(int(given)).name if is_whole(given) else given.upper()
    except ValueError:
        return ""
    name = full_name.removeprefix("SIG")
    return name if re.fullmatch(SIGNAL_PATTERN, name) else ""


def _requeue(value: str, draft: Draft) -> None:
    """Restart the job when its node fails, however often; a preempted job is requeued anyway."""
    del value
    draft.values["restart"] = {"max_restarts": RESTARTS.high, "lost_only": True}


def _no_requeue(value: str, draft: Draft) -> None:
    """Do nothing: a job restarts only if it says so."""
    del value, draft


def _nodelist(value: str, draft: Draft) -> None:
    draft.values["node_names"] = [name for part in _split_list(value) for name in part]


def _exclude(value: str, draft: Draft) -> None:
    draft.lacks(
        f"--exclude={value}", "has no counterpart here; left out: name the nodes that the job may use with --nodelist"
    )


def _split_list(value: str) -> list[list[str]]:
    """Return the names of each part of a list of nodes such as `n[1-3,7],m2`."""
    parts = re.findall(r"[^,\[]+(?:\[[^\]]*\][^,]*)?", value)
    return [_expand_ranges(part) for part in parts]


def _expand_ranges(part: str) -> list[str]:
    """Return the names of one part of a list of nodes."""
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
    "array": _array,
    "qos": _set_field("qos"),
    "reservation": _set_field("reservation"),
    "partition": _set_list("partitions"),
    "dependency": _dependencies,
    "time": _time,
    "hold": _set_flag("hold"),
    "exclusive": _set_flag("exclusive"),
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


ENV_HEAD: Final = "# Variables of the job\n"
_EXPORT: Final = re.compile(
    r"""export (?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>(?:[\w@%+=:,./-]|'[^']*'|"'")*)\n""", re.ASCII
)
"""A line as `shlex.quote` leaves it, where nothing is expanded."""
NO_OPTIONS: Final = "true # no options of sbatch follow"
"""Slurm stops looking for options at the first command."""


def _script(source: str, text: str, options: Mapping[str, str]) -> dict[str, object]:
    """Return the fields of the job's script."""
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
    """Return the command that does what a script does, for forms and clusters without batch scripts."""
    words = lines[0].removeprefix("#!").split()
    interpreter = PurePosixPath(words[0]).name if words else "sh"
    body = _taken_env("\n".join(without_directives(lines[1:])).strip("\n"), draft)
    # Options of the interpreter, such as `bash -x`, would be lost.
    if interpreter in _SHELLS and len(words) == 1:
        return runnable(_without_comments(body)) if body.strip() else "true"
    if words and interpreter == "env":
        # `#!/usr/bin/env -S python3 -u`: env splits what follows, so that the rest is the interpreter itself.
        words = [word for word in words[1:] if word != "-S"]
    return shlex.join([*(words or ["sh"]), "-c", body])


def without_script(spec: JobSpec) -> JobSpec:
    """Return a job with the same effect that has a command in place of its script, for systems without batch
    scripts."""
    assert spec.script is not None
    mode = Mode.SLURM if spec.nodes > 1 else None
    return replace(spec, script=None, mode=mode, home=HomeAccess.RO)


def without_directives(lines: list[str]) -> list[str]:
    """Return the lines without options of sbatch.

    Behind the first command Slurm takes `#SBATCH` for a comment, and so does the shell.
    """
    first = next((number for number, line in enumerate(lines) if is_command(line)), len(lines))
    head = [line for line in lines[:first] if not line.startswith(DIRECTIVE)]
    # The marker is a line of `write_sbatch`; without its removal each conversion would add another one.
    behind = lines[first + 1 :] if lines[first : first + 1] == [NO_OPTIONS] else lines[first:]
    return [*head, *behind]


def _taken_env(body: str, draft: Draft) -> str:
    """Remove the variables that `write_sbatch` sets in a body, and return what is left."""
    if not body.startswith(ENV_HEAD):
        return body
    rest = body.removeprefix(ENV_HEAD)
    while match := _EXPORT.match(rest):
        draft.env(match["name"], "".join(shlex.split(match["value"])))
        rest = rest[match.end() :]
    return rest.strip("\n")


def _without_comments(body: str) -> str:
    """Return a script of one command without the comments above it; any other as it is."""
    lines = body.splitlines()
    while lines and (not lines[0].strip() or lines[0].lstrip().startswith("#")):
        lines.pop(0)
    return lines[0] if len(lines) == 1 else body
