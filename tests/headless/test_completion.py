from __future__ import annotations

import subprocess

import pytest

from cockpit.headless.completing import BEFORE_A_VERB, place_behind
from cockpit.headless.registry import VERBS
from cockpit.headless.verbs.completion import words_on
from cockpit.model.cluster import Reservation
from cockpit.model.ids import NodeName
from cockpit.model.spec import PriorityWord
from cockpit.tui.start_options import SWITCHES, VALUED
from tests.doubles.samples import NOW, job_row
from tests.headless.conftest import Desk
from tests.headless.test_staged import CATS


def offered(desk: Desk, line: str, shell: str = "fish") -> list[str]:
    done = desk("completion", shell, line)
    assert (done.code, done.err) == (0, "")
    return [each.partition("\t")[0] for each in done.lines]


@pytest.mark.req("UI-43")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cockpit jo", ["jobs", "job"]),
        ("cockpit accounts add-q", ["add-qos"]),
        ("cockpit holds ", ["extend", "end"]),
        ("cockpit jobs --o", ["--output"]),
        ("cockpit jobs --all --o", ["--output"]),
        ("cockpit jobs -o js", ["json", "jsonl"]),
        ("cockpit jobs --output=js", ["--output=json", "--output=jsonl"]),
        ("cockpit jobs --sort -pri", ["-priority"]),
        ("cockpit jobs --columns id,na", ["id,name"]),
        ("cockpit -c la", ["lab"]),
        ("cockpit --theme=dark --cluster=x jobs --cluster de", ["demo"]),
        ("cockpit set-priority 4711 ur", ["urgent"]),
        ("cockpit holds extend ur", []),
        ("cockpit jobs --sort -id,-pri", ["-id,-priority"]),
        ("cockpit jobs --sort -id,pri", ["-id,priority"]),
        ("cockpit catalogue set mod", ["model"]),
        ("cockpit accounts qos --columns na", ["name"]),
        ("cockpit demo el", ["elastic", "<files>"]),
        ("cockpit demo --headless nodes --al", ["--all"]),
        ("cockpit demo elastic --headless nodes --al", ["--all"]),
        ("cockpit submit ", ["<files>"]),
        ("cockpit submit a.yaml ", ["<files>"]),
        ("cockpit demo elastic e", []),
        ("cockpit catalogue show model bert --o", ["--output"]),
        ("cockpit play --out ", ["<folders>"]),
        ("cockpit --theme hi", ["high-contrast"]),
        ("cockpit 'no such verb' ", []),
        ("cockpit clone 4711 --name ", []),
    ],
)
def test_completions_are_what_the_parser_accepts(desk: Desk, line: str, words: list[str]) -> None:
    desk.names = {"lab": "ssh://ann@login", "demo": "made up"}
    assert offered(desk, line) == words


@pytest.mark.req("UI-43")
def test_every_verb_and_every_option_of_the_cockpit_itself_is_offered(desk: Desk) -> None:
    assert offered(desk, "cockpit ") == list(dict.fromkeys(name for name in VERBS if " " not in name))
    assert {*SWITCHES, *VALUED} - {"-c"} <= set(BEFORE_A_VERB)
    assert offered(desk, "cockpit -") == list(BEFORE_A_VERB)


@pytest.mark.req("UI-43")
def test_jobs_nodes_and_accounts_come_from_the_cluster_if_it_answers(desk: Desk) -> None:
    first = str(desk.backend.job_rows[0].id)
    assert offered(desk, f"cockpit -c lab cancel {first}") == []
    desk.reached = desk.backend
    assert first in offered(desk, f"cockpit -c lab cancel {first}")
    assert desk.reaches == ["lab", "lab"]
    assert not desk.connected, "to connect may start an engine"
    assert set(PriorityWord) <= set(offered(desk, f"cockpit set-priority {first} "))
    nodes = [row.node.name for row in desk.backend.node_rows]
    assert offered(desk, "cockpit nodes drain ") == nodes
    assert offered(desk, f"cockpit unblock {nodes[0][0]}") == [], "the job comes before the node"
    assert offered(desk, f"cockpit unblock {first} {nodes[0][0]}") == nodes
    desk.backend.job_rows = [*desk.backend.job_rows, job_row(3999, ended_at=NOW)]
    assert ("3999" in offered(desk, "cockpit job 3999"), "3999" in offered(desk, "cockpit cancel 3999")) == (
        True,
        False,
    )
    assert offered(desk, f"cockpit reservations create up --nodes {nodes[0]},") == [
        f"{nodes[0]},{name}" for name in nodes[1:]
    ]
    desk.backend.reserved = [
        Reservation(name="course", nodes=(NodeName("n1"), NodeName("n2")), start_at=NOW, end_at=NOW)
    ]
    assert desk("completion", "fish", "cockpit reservations end ").lines[0] == "course\tn1, n2"
    desk.backend.copies = [CATS]
    assert desk("completion", "fish", "cockpit staged remove ").lines[0] == f"{CATS.key}\t{CATS.source}"
    assert "bob" in offered(desk, "cockpit accounting --user b")
    assert "MaxJobs=" in offered(desk, "cockpit accounts modify x Max")
    assert "volume" in offered(desk, "cockpit catalogue add v")
    assert offered(desk, "cockpit nodes resume x --zz") == [], "settings are those of accounts and the catalogue"


@pytest.mark.req("UI-43")
def test_each_shell_gets_its_own_completion_script(desk: Desk) -> None:
    desk.reached = desk.backend
    assert "jobs\tList every live and held job" in desk("completion", "fish", "cockpit jobs").lines
    assert "jobs:List every live and held job" in desk("completion", "zsh", "cockpit jobs").lines
    assert desk("completion", "bash", "cockpit jobs").lines == ["jobs"]
    assert desk("completion", "bash", "cockpit jobs --output=csv").lines == ["csv"], "bash puts it behind the ="
    assert desk("completion", "fish", "cockpit jobs -o js").lines == ["json", "jsonl"], "values have no description"
    assert desk("completion", "fish", "cockpit submit ").lines == ["<files>"], "a mark for the script of the shell"


@pytest.mark.req("UI-43", "TR-05")
def test_a_name_with_shell_syntax_is_not_offered(desk: Desk) -> None:
    desk.names = {"$(reboot)": "", "a b": "", "fine": "a \x1b[31mred\ntale"}
    assert desk("completion", "fish", "cockpit -c ").lines == ["fine\ta \\x1b[31mred\\ntale"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cockpit jobs ", (["cockpit", "jobs"], "")),
        ("cockpit jobs --filter 'user:me st", (["cockpit", "jobs", "--filter"], "user:me st")),
        ("cockpit job 4711#1", (["cockpit", "job"], "4711#1")),
        (r"a\ b c", (["a b"], "c")),
        ("", ([], "")),
    ],
)
def test_a_line_is_read_as_a_shell_reads_it(line: str, words: tuple[list[str], str]) -> None:
    assert words_on(line) == words


@pytest.mark.req("UI-43")
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_asks_cockpit_what_may_follow(desk: Desk, shell: str) -> None:
    assert f"cockpit completion {shell} " in desk("completion", shell).out.decode()


@pytest.mark.req("UI-43")
def test_bash_accepts_its_completion_script(desk: Desk) -> None:
    script = desk("completion", "bash").out
    assert b"complete -" in script
    assert subprocess.run(["bash", "-n"], input=script, check=False, capture_output=True).stderr == b""


@pytest.mark.req("UI-43")
@pytest.mark.parametrize(
    ("line", "cluster"),
    [
        ("jobs", None),
        ("jobs --filter lab", None),
        ("-c lab jobs", "lab"),
        ("jobs -c lab", "lab"),
        ("jobs --cluster=lab --filter away", "lab"),
        ("-c away jobs -c lab", "lab"),
        ("-c lab jobs --filter away", "lab"),
    ],
)
def test_names_come_from_the_cluster_that_the_line_names(line: str, cluster: str | None) -> None:
    assert place_behind(line.split()).cluster == cluster
