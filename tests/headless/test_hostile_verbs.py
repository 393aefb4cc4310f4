"""Every verb in every form over a cluster every text of which attacks: asserted on what reaches the terminal."""

from __future__ import annotations

from itertools import cycle, islice
from pathlib import Path

import pytest

from cockpit.headless.exitcodes import ExitCode
from cockpit.headless.registry import VERBS
from cockpit.model.cluster import Reservation
from cockpit.model.ids import NodeName
from cockpit.runtime.findings import Finding, FindingLevel
from cockpit.store.codec import from_line
from tests.doubles.hostile_cluster import TEXTS, HostileBackend, with_attacks
from tests.doubles.samples import NOW
from tests.headless.conftest import Desk
from tests.present.corpus import is_harmless

GOLDEN = Path(__file__).parents[1] / "store/data/events.jsonl"
"""An event of every type."""
JOB, FILE = "4", "JOB.yaml"
WORDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        (
            "overview",
            "jobs",
            "starts",
            "priority",
            "nodes",
            "cards",
            "holds",
            "reservations",
            "events",
            "staged",
            "metrics",
        ),
        (),
    ),
    **dict.fromkeys(("accounting", "accounting hours", "clusters", "fleet", "fleet pods"), ()),
    **dict.fromkeys(
        ("accounts", "accounts qos", "cluster", "cluster show", "cluster export", "doctor", "queues", "quota"), ()
    ),
    **dict.fromkeys(("engine", "engine status", "engine start", "engine restart", "engine unit", "schema", "new"), ()),
    **dict.fromkeys(
        (
            "job",
            "usage",
            "trials",
            "explain",
            "cancel",
            "hold",
            "release",
            "suspend",
            "resume",
            "requeue",
            "delete",
            "holds end",
            "logs",
            "fleet object",
        ),
        (JOB,),
    ),
    **dict.fromkeys(("submit", "predict", "quota apply", "convert"), (FILE,)),
    "launch": ("--dry-run", FILE),
    **dict.fromkeys(("edit", "clone"), (JOB, FILE)),
    **dict.fromkeys(("accounts add", "accounts modify", "accounts remove"), ("nlp", "Fairshare=3")),
    **dict.fromkeys(("accounts add-qos", "accounts modify-qos", "accounts remove-qos"), ("high", "Priority=3")),
    **dict.fromkeys(("accounts add-user", "accounts modify-user", "accounts remove-user"), ("ann", "Account=nlp")),
    **dict.fromkeys(("accounts add-coordinator", "accounts remove-coordinator"), ("nlp", "ann")),
    **dict.fromkeys(("catalogue", "catalogue list", "catalogue export"), ()),
    **dict.fromkeys(("catalogue show", "catalogue remove"), ("dataset", "\x1b[31m")),
    **dict.fromkeys(("catalogue add", "catalogue set"), ("dataset", "\x1b[31m", "source=\x1b[31m", "\u202e=1")),
    "catalogue apply": (FILE,),
    "holds extend": (JOB, "--by", "2h"),
    "set-priority": (JOB, "urgent"),
    "update": (JOB, "Comment=\x1b[31m"),
    "top": (JOB,),
    "set-time-limit": (JOB, "+1h"),
    "reservations create": ("up", "--nodes", "n1", "--start", "2026-10-05T09:00", "--duration", "4h"),
    "reservations end": ("up",),
    "staged remove": ("4f2a",),
    "scale": (JOB, "+1"),
    "unblock": (JOB, "\x1b[31m"),
    "nodes drain": ("n1", "--reason", "\x1b[31m"),
    "nodes resume": ("n1",),
    "reclaim": ("n1", "--reason", "\x1b[31m"),
    "quota remove": ("nlp",),
    "cluster init": (),
    "cluster use": ("\x1b[31m",),
    "engine stop": ("--yes",),
    "snapshot": ("-",),
    "lab": ("--since", "4000d"),
    "shell": (JOB, "--", "true"),
    "session": ("--from", JOB, "--detach"),
    "train": (JOB, "--", "\x1b[31m"),
    "tensorboard": (JOB,),
    "completion": ("fish", "cockpit cancel "),
}
"""Of every verb: what makes it show, or be refused, as much as it can."""
ELSEWHERE = {"demo", "mcp", "play", "replay", "serve", "wait"}
"""They show nothing of a cluster, or are another face."""


@pytest.fixture(scope="module")
def hostile_world() -> Desk:
    """Every text of the cluster attacks, and so does every refusal."""
    desk = Desk()
    desk.backend = desk.reached = backend = HostileBackend()
    golden = GOLDEN.read_bytes().splitlines()
    backend.event_records = [with_attacks(from_line(line), islice(cycle(TEXTS), 7, None)) for line in golden]
    kept = Reservation(name="r", nodes=(NodeName("n"),), start_at=NOW, end_at=NOW, users=("u",), accounts=("a",))
    backend.reserved = [with_attacks(kept, islice(cycle(TEXTS), start, None)) for start in range(len(TEXTS))]
    desk.findings = [Finding(FindingLevel.NOTE, text, text, text) for text in TEXTS]
    return desk


@pytest.mark.req("TR-05", "UI-40", "UI-41")
@pytest.mark.parametrize("verb", sorted(VERBS.keys() - ELSEWHERE))
def test_every_verb_escapes_hostile_text(hostile_world: Desk, tmp_path: Path, verb: str) -> None:
    assert verb in WORDS, "say there how it is called"
    file = tmp_path / FILE
    file.write_text("name")
    words = [str(file) if word is FILE else word for word in WORDS[verb]]
    forms: list[tuple[str, ...]] = [()]
    if "-o" in hostile_world(*verb.split(), "--help").out.decode():
        forms = [("-o", form) for form in ("table", "wide", "json", "jsonl", "csv")]
    for form in forms:
        done = hostile_world(*verb.split(), *form, *words, terminal=verb not in {"shell", "lab"}, columns=250)
        assert done.code in set(ExitCode) - {ExitCode.INTERNAL}, done.err
        assert done.out or done.err
        assert is_harmless((done.out.decode() + done.err).replace("\n", "").replace("\t", "")), form
