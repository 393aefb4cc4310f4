"""Every verb: the module and attribute that hold it, and what it does in a few words."""

from __future__ import annotations

from typing import Final

VERBS: Final[dict[str, tuple[str, str, str]]] = {
    "overview": ("overview", "OVERVIEW", "This cluster at a glance; what cockpit says without a verb"),
    "jobs": ("jobs", "JOBS", "List every live and held job"),
    "job": ("job", "JOB", "Everything about one job"),
    "priority": ("priority", "PRIORITY", "List the queue in its order, and what each priority is made of"),
    "nodes": ("nodes", "NODES", "List the nodes and what is used of them"),
    "cards": ("cards", "CARDS", "List the cards and their slices, and who holds them"),
    "holds": ("holds", "HOLDS", "List the failed containers that are kept"),
    "holds extend": ("holds", "EXTEND", "Keep a failed container for longer"),
    "holds end": ("holds", "END", "Remove a kept container now"),
    "events": ("events", "EVENTS", "List what happened"),
    "submit": ("submit", "SUBMIT", "Submit the jobs of one or more files, all or none"),
    "edit": ("edit", "EDIT", "Change a queued job; it keeps its id and its place"),
    "clone": ("edit", "CLONE", "Submit a copy of a job under another name"),
    "cancel": ("change", "CANCEL", "Stop jobs: ask them to end, then kill them"),
    "hold": ("change", "HOLD", "Hold queued jobs back from starting"),
    "release": ("change", "RELEASE", "Let held jobs start"),
    "delete": ("change", "DELETE", "Take ended jobs off the lists"),
    "wait": ("wait", "WAIT", "Wait until jobs have ended; exits with the job's exit code"),
    "logs": ("logs", "LOGS", "Print what a job wrote"),
    "shell": ("shell", "SHELL", "Enter a job's container, running or kept"),
    "engine": ("engine", "STATUS", "The same as engine status"),
    "engine status": ("engine", "STATUS", "Say whether the embedded engine runs, and where"),
    "engine start": ("engine", "START", "Start the embedded engine"),
    "engine stop": ("engine", "STOP", "Stop the embedded engine; jobs go on"),
    "engine restart": ("engine", "RESTART", "Restart the embedded engine; jobs go on"),
    "schema": ("schema", "SCHEMA", "Print the JSON Schema of job files, and of each list's JSON"),
    "demo": ("demo", "DEMO", "Open a living cluster of which nothing is real"),
    "play": ("play", "PLAY", "Run the cockpit by a script of keys and expectations; take pictures of it"),
    "replay": ("replay", "REPLAY", "Run a log of the past through the scheduler"),
    "doctor": ("doctor", "DOCTOR", "Say what this machine has, lacks, and what to do about it"),
}
"""Two words where a noun has verbs of its own."""
