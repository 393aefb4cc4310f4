"""`scontrol` inside of a batch script: what it can show without the cluster's daemon.

scontrol show hostnames [LIST]     show hostlist NAMES     show hostlistsorted NAMES     show job [ID]
"""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

from cockpit.runtime.containers.slurmtools.hostlists import HostListError, compress, expand

RECORD = Path(__file__).parents[5] / "job"
"""The job's record in the container, in the folder of the script: five folders above this module's copy."""
_MOMENT = re.compile(r"@(?P<since>since )?(?P<seconds>[0-9]+)@")
_NAMED = re.compile(r"(?P<head>.*?)(?P<number>[0-9]*)", re.DOTALL)
USAGE = "show hostnames [LIST], show hostlist NAMES, show hostlistsorted NAMES and show job [ID] work in a container"

ELSEWHERE = {
    **{name: f"{name} ID" for name in ("hold", "release", "requeue", "suspend", "resume")},
    "requeuehold": "requeue ID",
    "update": "edit ID",
}
"""The verb of cockpit that does what scontrol's verb does."""


def main(words: list[str]) -> int:
    flags = [word for word in words if word.startswith("-")]
    words = [word for word in words if not word.startswith("-")]
    if {"-V", "--version"} & set(flags):
        sys.stdout.write("slurm 22.05 (cockpit)\n")
        return 0
    try:
        return _run(words, one_line=bool({"-o", "--oneliner"} & set(flags)))
    except HostListError as error:
        return _fail(str(error))


def _run(words: list[str], *, one_line: bool) -> int:
    verb, what, rest = [*words, ""][0], [*words, "", ""][1], words[2:]
    if verb in ELSEWHERE:
        return _fail(f"{verb}: does not work in a container; outside of it run `cockpit {ELSEWHERE[verb]}`")
    if not (verb and "show".startswith(verb)):
        return _fail(f"{verb or 'nothing to do'}: {USAGE}; outside of it `cockpit --help` lists what there is")
    if what and "hostnames".startswith(what):
        return _say(expand(rest[0] if rest else os.environ.get("SLURM_JOB_NODELIST", "")))
    if what in {"hostlist", "hostlistsorted"} and rest:
        names = expand(",".join(rest))
        return _say([compress(sorted(names, key=_order) if what.endswith("sorted") else names)])
    if what in {"job", "jobs", "jobid"}:
        return _show_job(rest, one_line=one_line)
    return _fail(f"show {what}: {USAGE}")


def _order(name: str) -> tuple[str, int]:
    match = _NAMED.fullmatch(name)
    return (match["head"], int(match["number"] or 0)) if match else (name, 0)


def _show_job(rest: list[str], *, one_line: bool) -> int:
    own = {os.environ.get("SLURM_JOB_ID", ""), _array_name()}
    wanted = rest[0].partition("=")[2] or rest[0] if rest else os.environ.get("SLURM_JOB_ID", "")
    if wanted not in own:
        return _fail(f"job {wanted}: only the script's own job is known here; `cockpit job {wanted}` shows others")
    # Times are filled in when it is asked, such as how long the job has been running.
    text = _MOMENT.sub(_fill_in, RECORD.read_text(encoding="utf-8", errors="surrogateescape"))
    lines = text.rstrip("\n").split("\n")
    return _say([" ".join(line.strip() for line in lines)] if one_line else [*lines, ""])


def _array_name() -> str:
    env = os.environ
    return f"{env.get('SLURM_ARRAY_JOB_ID', '')}_{env.get('SLURM_ARRAY_TASK_ID', '')}"


def _fill_in(match: re.Match[str]) -> str:
    seconds = int(match["seconds"])
    if not seconds:
        return "Unknown"
    if match["since"]:
        return _clock(max(0, int(time.time()) - seconds))  # noqa: TID251 - in a container there is no other clock
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))


def _clock(seconds: int) -> str:
    days, rest = divmod(seconds, 86_400)
    text = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
    return f"{days}-{text}" if days else text


def _say(lines: list[str]) -> int:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _fail(sentence: str) -> int:
    sys.stderr.write(f"scontrol: error: {sentence}\n")
    return 1
