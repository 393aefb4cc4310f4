"""The commands that a session may run: `ssh HOST jobs -o json` is `cockpit jobs -o json`, and there are no others.

Each verb is in one of the tables, so that a new one is refused until it is in one. What a session may do with a
verb is decided again by the engine, from the session's access level (`model.access_level`).
"""

from __future__ import annotations

import shlex
from typing import Final

from cockpit.errors import CockpitError
from cockpit.headless.registry import VERBS
from cockpit.model.access_level import AccessLevel
from cockpit.present.nearest import nearest
from cockpit.present.safe import safe

LONGEST: Final = 32 << 10
"""Bytes of a command line."""
WITHOUT_VERB: Final = frozenset({"-h", "--help", "help", "-V", "--version"})

READING: Final = frozenset(
    {
        *("overview", "jobs", "clusters", "fleet", "fleet pods", "fleet object", "job", "trials", "usage", "explain"),
        *("starts", "priority", "nodes", "cards", "queues", "quota", "holds", "reservations", "events", "wait", "logs"),
        *("accounts", "accounts qos", "catalogue", "catalogue list", "catalogue show", "catalogue export"),
        *("accounting", "accounting hours", "cluster", "cluster show", "engine", "engine status"),
        *("new", "schema", "completion"),
    }
)
"""They change nothing, and read no file that their words name."""
ACTING: Final = frozenset(
    {
        *("submit", "predict", "convert", "launch", "edit", "clone", "cancel", "hold", "release", "suspend", "resume"),
        *("requeue", "scale", "unblock", "set-priority", "set-time-limit", "update", "top", "delete"),
        *("holds extend", "holds end", "shell", "session", "train"),
        *("catalogue add", "catalogue set", "catalogue remove", "catalogue apply", "cluster export", "doctor"),
        "lab",  # which reads logs that its words name; the engine decides about --apply
        *("accounts add", "accounts modify", "accounts remove", "accounts add-user", "accounts modify-user"),
        *("accounts remove-user", "accounts add-coordinator", "accounts remove-coordinator"),
    }
)
"""What an ordinary user does. They read files as that user: job files, and manifests of the catalogue."""
ADMINISTERING: Final = frozenset(
    {
        *("nodes drain", "nodes resume", "reclaim", "quota apply", "quota remove", "reservations create"),
        *("reservations end", "staged", "staged remove", "accounts add-qos", "accounts modify-qos"),
        *("accounts remove-qos", "snapshot"),
    }
)
NOT_SERVED: Final = frozenset(
    {
        # They start and stop programs of the machine, or write the account's settings.
        *("engine start", "engine stop", "engine restart", "engine unit", "serve", "tensorboard"),
        *("cluster init", "cluster use"),
        # They occupy the machine as long as they run, and concern no cluster.
        *("demo", "play", "replay"),
        # They offer the cluster to programs, on a port or by verbs that would have to be looked up here one by one.
        *("metrics", "mcp"),
    }
)
"""They are for the machine itself: a session may not run them, whatever its access level."""

_OF_LEVEL: Final = {
    AccessLevel.READ: READING,
    AccessLevel.OWN: READING | ACTING,
    AccessLevel.ADMIN: READING | ACTING | ADMINISTERING,
}


def words_of(command: str) -> list[str]:
    """Split a command line into words, as a shell would, but without expanding anything. Raises `CockpitError`."""
    if len(command.encode()) > LONGEST:
        raise CockpitError(
            f"The command is longer than {LONGEST >> 10} KiB. Send the job as a file: submit - < job.yaml"
        )
    if "\0" in command:
        raise CockpitError("The command contains a null byte, which no word of it may.")
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CockpitError(f"The command is no command line: {error}.") from None
    # Both `ssh HOST jobs` and, as in scripts that also run locally, `ssh HOST cockpit jobs`.
    return words[1:] if words[:1] == ["cockpit"] else words


def why_not_served(words: list[str], level: AccessLevel) -> str:
    """Return why a session of this level may not run the words, as a sentence; empty: it may."""
    own = _without_cluster(words)
    if not own or own[0] in WITHOUT_VERB:
        return ""
    name = next((each for each in (" ".join(own[:2]), own[0]) if each in VERBS), None)
    if name is None:
        hint = nearest(own[0], sorted(_OF_LEVEL[level]))
        return f"There is no command {safe(own[0])} here; this server runs cockpit's commands alone" + (
            f". Did you mean {hint}?" if hint else ". All of them: --help"
        )
    if name in _OF_LEVEL[level]:
        return ""
    for other, verbs in _OF_LEVEL.items():
        if name in verbs:
            return f"{name} needs the access level `{other}`; this session has `{level}`. Log in with another key."
    return f"{name} is not served: it is for the machine that runs cockpit. Run it there."


def _without_cluster(words: list[str]) -> list[str]:
    """Return the words after `-c CLUSTER`."""
    left = list(words)
    while left and left[0].partition("=")[0] in {"-c", "--cluster"}:
        left = left[1:] if "=" in left[0] else left[2:]
    return left
