"""The wrapper that keeps the container of a failed command: nothing can be run in a container that has ended.

The container runs POSIX sh, which starts the command, passes signals on to it, and ends it at the job's time limit.
After a failure it prints a line that says until when it holds, waits until then, and ends with the command's exit code.
The end of the hold is in a file, so that it can be changed from outside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cockpit.errors import RequestRefused
from cockpit.model.ids import Millis
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import HoldReplicas

if TYPE_CHECKING:
    from cockpit.backends.kubernetes.objects.meta import ObjectMeta
    from cockpit.model.spec import JobSpec

HOLD_SECONDS = "cockpit/hold-seconds"
"""Annotation of jobs whose command is wrapped, with the length of the hold."""
HOLD_REPLICAS = "cockpit/hold-replicas"
"""Annotation of jobs of which each replica that fails is held (`all`); without it, the first that failed."""
DEFAULT_SECONDS = 4 * 3600
SLACK_SECONDS = 120
"""What is added to the deadline of a job with a wrapper, which ends the command and the hold by itself."""
UNTIL = "until"
"""Name of the file with the end of the hold, in seconds since 1970."""
# Backquotes and expr: Kubernetes itself would take `$(…)` in an argument for a variable, and `$$` for a dollar sign.
_SCRIPT = r"""
began=`date +%s`
"$@" & child=$!
stop() { stopped=1; kill -s "$1" "$child" 2>/dev/null; }
trap 'stop TERM' TERM; trap 'stop INT' INT; trap 'stop HUP' HUP
( trap 'kill $! 2>/dev/null; exit' TERM; sleep "$COCKPIT_LIMIT_SECONDS" & wait $!; kill -s TERM "$child"
  sleep 30 & wait $!; kill -s KILL "$child" ) >/dev/null 2>&1 & timer=$!
while :; do wait "$child"; code=$?; kill -0 "$child" 2>/dev/null || break; done
kill "$timer" 2>/dev/null
now=`date +%s`
[ `expr "$now" - "$began"` -lt "$COCKPIT_LIMIT_SECONDS" ] || stopped=1
if [ "$code" -eq 0 ] || [ -n "$stopped" ]; then exit "$code"; fi
trap 'exit "$code"' TERM INT HUP
folder=`mktemp -d 2>/dev/null`
until=`expr "$now" + "$COCKPIT_HOLD_SECONDS"`
[ -n "$folder" ] && echo "$until" >"$folder/until"
echo "cockpit:held rc=$code at=$now until=$until folder=$folder"
while [ `date +%s` -lt "$until" ]; do
  sleep 1 & wait $!
  # A file that is just being written may be empty.
  [ -n "$folder" ] && read -r wanted 2>/dev/null <"$folder/until" && [ -n "$wanted" ] && until=$wanted
done
exit "$code"
"""
_HELD = re.compile(rb"^cockpit:held rc=(\d{1,3}) at=(\d{1,12}) until=(\d{1,12}) folder=(/[\w./-]{1,200})?$")


class Hold(NamedTuple):
    """A container whose command has failed and that is held."""

    exit_code: int
    at: Millis
    """When the command failed."""
    until: Millis
    """When the hold ends, as the wrapper said at its beginning."""
    folder: str
    """The folder with the file `UNTIL` in the container; empty: its end cannot be changed."""


def hold_in(log_tail: bytes) -> Hold | None:
    """Return the hold that the last line of a container's log announces; None: its command has not failed."""
    lines = log_tail.rstrip(b"\n").rsplit(b"\n", 1)
    match = _HELD.fullmatch(lines[-1])
    if match is None:
        return None
    code, at, until, folder = match.groups()
    return Hold(int(code), Millis(1000 * int(at)), Millis(1000 * int(until)), (folder or b"").decode())


def without_announcement(log_tail: bytes) -> bytes:
    """Return the end of a container's log without the line that announces its hold, if that is the last one."""
    if hold_in(log_tail) is None:
        return log_tail
    before = log_tail.rstrip(b"\n").rpartition(b"\n")[0]
    return before + b"\n" if before else b""


def added_seconds(meta: ObjectMeta) -> int:
    """Return by how much the deadline of a job with a wrapper is later than its time limit; 0: it has none."""
    hold = meta.annotation(HOLD_SECONDS)
    return int(hold) + SLACK_SECONDS if hold.isascii() and hold.isdigit() and len(hold) < 10 else 0


def unwrapped(words: Sequence[str]) -> Sequence[str]:
    """Return a container's command without the wrapper, if it has one."""
    return words[4:] if list(words[:4]) == ["sh", "-c", _SCRIPT, "cockpit"] else words


def wrap(manifest: dict[str, Any], spec: JobSpec) -> None:
    """Wrap the commands of all pods of a manifest, and let the job live as long as its hold may last.

    Raises `RequestRefused` for a container without a command: the image's own is not known outside of the image.
    """
    seconds = DEFAULT_SECONDS if spec.debug_hold.window_seconds is None else spec.debug_hold.window_seconds
    metadata = manifest["metadata"]
    every = {HOLD_REPLICAS: "all"} if spec.debug_hold.replicas is HoldReplicas.ALL else {}
    metadata["annotations"] = {**metadata.get("annotations", {}), HOLD_SECONDS: str(seconds), **every}
    variables = {"COCKPIT_HOLD_SECONDS": str(seconds), "COCKPIT_LIMIT_SECONDS": str(spec.time_limit_seconds)}
    containers = [template["spec"]["containers"][0] for template in _templates(manifest["spec"])]
    # Beside a launcher the others run the image's own command, which waits for the launcher.
    wrapped = [each for each in containers if each.get("command")]
    for container in wrapped or containers:
        if not container.get("command"):
            message = "terminal: a container can be held only if the job has a command; the image's own is not known."
            raise RequestRefused(Refusal(RefusalKind.INVALID, message))
        container["args"] = [_SCRIPT, "cockpit", *container["command"], *container.get("args", ())]
        container["command"] = ["sh", "-c"]
        container["env"] = [
            *container.get("env", ()),
            *({"name": name, "value": value} for name, value in variables.items()),
        ]
    _let_live(manifest["spec"], spec.time_limit_seconds + seconds + SLACK_SECONDS)


def _let_live(spec: dict[str, Any], seconds: int) -> None:
    """Let a job and its pods live so long, whatever of it ends meanwhile."""
    if "etReplicaSpecs" in spec:
        # A TrainingJob has no time limit: its launcher's pod has.
        spec["etReplicaSpecs"]["launcher"]["template"]["spec"]["activeDeadlineSeconds"] = seconds
        spec["cleanPodPolicy"] = "None"
        return
    policy = spec.get("runPolicy", spec)
    policy["activeDeadlineSeconds"] = seconds
    if "runPolicy" in spec:
        # The operator would delete the pods when the first of them ends.
        policy["cleanPodPolicy"] = "None"


def _templates(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pod templates of a manifest, each once: roles may share one."""
    if "template" in spec:
        return [spec["template"]]
    replicas = [value for name, value in spec.items() if name.endswith("ReplicaSpecs")]
    templates = (role["template"] for roles in replicas for role in roles.values())
    return list({id(each): each for each in templates}.values())
