"""Which commands a session may run, by its access level."""

from __future__ import annotations

from collections import Counter

import pytest

from cockpit.errors import CockpitError
from cockpit.headless import registry
from cockpit.headless.registry import VERBS
from cockpit.model.access_level import AccessLevel
from cockpit.serve.verbs import ACTING, ADMINISTERING, LONGEST, NOT_SERVED, READING, why_not_served, words_of

pytestmark = pytest.mark.req("TR-08", "UI-41")


def test_every_verb_is_in_one_table() -> None:
    tables = Counter(verb for table in (READING, ACTING, ADMINISTERING, NOT_SERVED) for verb in table)
    assert set(tables) == set(VERBS)
    assert set(tables.values()) == {1}


def test_a_verb_that_changes_a_cluster_is_for_no_reader() -> None:
    assert {"priority"} >= registry.ACTING & READING, "which without weights only reads"


@pytest.mark.parametrize("level", AccessLevel)
@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_session_runs_the_verbs_of_its_level(verb: str, level: AccessLevel) -> None:
    allowed = verb in READING
    allowed |= verb in ACTING and level is not AccessLevel.READ
    allowed |= verb in ADMINISTERING and level is AccessLevel.ADMIN
    for words in ([*verb.split(), "x"], ["-c", "lab", *verb.split()], ["--cluster=lab", *verb.split()]):
        assert (why_not_served(words, level) == "") is allowed, words


@pytest.mark.parametrize(
    "command",
    [
        *(
            "sh",
            "/bin/sh -c id",
            "jobs; id",
            "$(id)",
            "`id`",
            "-c",
            "--",
            "\x1b[31m",
            "rsync --server",
            "scp -t /",
            "jobs\nid",
        ),
        *("cockpit sh", "cockpit cockpit jobs", "internal-sftp", "python3 -m cockpit.cli", "''", "JOBS", "--read-only"),
    ],
)
def test_what_is_no_verb_is_refused_and_named(command: str) -> None:
    words = words_of(command)
    refused = why_not_served(words, AccessLevel.ADMIN)
    # `jobs\nid` is the verb with a word that it refuses itself; `-c` without a name opens nothing but the figures.
    assert refused or words in (["jobs", "id"], ["-c"])
    assert "\x1b" not in refused


@pytest.mark.parametrize("command", ["jobs '", 'jobs "', "jobs \\", "jobs \0", "x" * (LONGEST + 1)])
def test_what_is_no_command_line_is_refused(command: str) -> None:
    with pytest.raises(CockpitError):
        words_of(command)
