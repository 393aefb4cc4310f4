"""What stands beside a form."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cockpit.errors import RequestRefused
from cockpit.formats.foreign.converting import JOB_FILE, ConvertedJob
from cockpit.formats.job.file import Defaults, read_jobs
from cockpit.model.node import NodeState
from cockpit.model.refusal import Refusal, RefusalKind
from cockpit.model.spec import JobSpec, Mode, NodeSpec, WorkerPool
from cockpit.model.view import NodeRow
from cockpit.present.columns import Context
from cockpit.present.form.aside import (
    HANDED,
    MOST_RANKS,
    Preview,
    imported_lines,
    preview_lines,
    run_lines,
    script_lines,
    start_line,
    why_lines,
)
from cockpit.present.form.nodes import node_lines, room_lines
from cockpit.present.outlook import prediction
from cockpit.present.spans import plain
from tests.builders import ANN, a_batch, a_node, a_spec
from tests.doubles.samples import NOW, node_row, outlook

CONTEXT = Context(now=NOW)


@pytest.mark.req("UI-08", "LA-60")
def test_the_first_and_the_last_of_many_replicas_are_shown() -> None:
    pools = (WorkerPool(replicas=1), WorkerPool(replicas=6, command="python w.py"))
    lines = run_lines(a_spec("p", mode=Mode.WORKER_POOLS, worker_pools=pools), ANN, [node_row()], 80)
    texts = [plain(each) for each in lines]
    assert texts[2:4] == ["rank 1  p-1 in /workspace", "python w.py"]
    assert texts[-1] == "and so on, up to rank 6"


@pytest.mark.req("UI-08", "JT-43")
@pytest.mark.parametrize(
    ("cpus", "gib", "figures"),
    [
        (64, 480, ["36/64", "24/480", "1.5/8", "A100"]),
        (100, 1000, ["36/100", "24/1000", "1.5/8", "A100"]),
        (10_000, 10_240, ["36/10000", "24/10240", "1.5/8", "A100"]),
    ],
)
def test_the_figures_of_a_node_are_complete_and_separated(cpus: int, gib: int, figures: list[str]) -> None:
    row = node_row(cpus=cpus, memory_mib=gib * 1024)
    assert plain([*node_lines(a_spec("p"), [row], 90)][1]).split()[3:] == figures
    full = replace(row, used_cpus=cpus, used_memory_mib=gib * 1024)
    *_, cpu, memory, cards, _ = plain([*node_lines(a_spec("p"), [full], 90)][1]).split()
    assert (cpu, memory, cards) == (f"{cpus}/{cpus}", f"{gib}/{gib}", "1.5/8")


@pytest.mark.req("LA-70", "UI-08")
def test_options_that_were_not_converted_are_listed_and_a_job_file_has_none() -> None:
    lines = imported_lines(ConvertedJob("a PyTorchJob", {}, ("spec.x: has no\x1b[31m counterpart",)), 60)
    assert [plain(each) for each in lines] == [
        "Taken over from a PyTorchJob",
        "1 thing of it could not be carried over:",
        "  spec.x: has no\\x1b[31m counterpart",
        "",
    ]
    assert list(imported_lines(ConvertedJob(JOB_FILE, {}), 60)) == []


@pytest.mark.req("UI-08", "SC-12")
def test_the_predicted_start_of_a_form_is_a_sentence_or_is_shown_as_pending() -> None:
    assert plain(start_line(None, CONTEXT)) == "asking when it would start …"
    said = plain(start_line(outlook(), CONTEXT))
    assert said == f"{said[0].upper()}{said[1:-1]}."
    assert said.lower() == f"{prediction(outlook(), CONTEXT).lower()}."
    assert [plain(each) for each in why_lines(outlook(), CONTEXT, 80)] != []
    assert list(why_lines(None, CONTEXT, 80)) == []


WIDE = 100


def read(source: str, text: str, folder: str) -> list[JobSpec]:
    return read_jobs(source, text, folder, defaults=Defaults())


def shown(preview: Preview, spec: JobSpec, nodes: list[NodeRow] | None = None) -> list[str]:
    given = [node_row()] if nodes is None else nodes
    return [plain(each) for each in preview_lines(preview, spec, spec, ANN, given, read, WIDE)]


def idle(name: str, **fields: object) -> NodeRow:
    return NodeRow(a_node(name, **fields), 0, 0, 0, 0, (), ())


@pytest.mark.req("UI-08")
def test_the_key_goes_through_all_previews_and_begins_again() -> None:
    seen = [Preview.RUNS]
    while (following := seen[-1].following) is not Preview.RUNS:
        seen.append(following)
    assert seen == list(Preview)


@pytest.mark.req("UI-08", "LA-60")
def test_every_preview_has_its_title_and_its_own_text() -> None:
    spec = a_spec("train")
    assert shown(Preview.RUNS, spec) == ["What each rank runs", "rank 0  train-0 in /workspace", "python train.py"]
    assert shown(Preview.ROOM, spec)[0] == "Nodes it may be on"
    assert shown(Preview.ROOM, spec)[2].startswith("n07   ○ idle")
    yaml = shown(Preview.YAML, spec)
    assert yaml[0] == "As a file"
    assert "name: train" in yaml
    sbatch = shown(Preview.SBATCH, spec)
    assert sbatch[0] == "As a script for sbatch"
    assert "#SBATCH --job-name=train" in sbatch
    manifest = shown(Preview.MANIFEST, spec)
    assert manifest[0] == "As a manifest"
    assert "kind: PyTorchJob" in manifest


@pytest.mark.req("UI-08", "LA-70")
def test_a_job_of_worker_pools_is_shown_as_a_custom_job() -> None:
    pools = (WorkerPool(replicas=2, command="python w.py"),)
    text = "\n".join(shown(Preview.MANIFEST, a_spec("p", mode=Mode.WORKER_POOLS, worker_pools=pools)))
    assert "workerPoolSpecs" in text


@pytest.mark.req("UI-08", "LA-70")
def test_fields_that_a_format_cannot_express_are_named_above_the_text() -> None:
    title, lost, *_ = shown(Preview.SBATCH, a_spec("train", terminal=True, project="nlp"))
    assert title == "As a script for sbatch"
    assert lost.startswith("does not say all of: ")


@pytest.mark.req("UI-08", "LA-70")
def test_the_script_that_a_cluster_receives_is_shown_below_its_command() -> None:
    class Command:
        argv = ("sbatch", "--job-name", "a b")
        stdin = "#!/bin/bash\nprintf '\x1b[2J'\n"

    lines = [plain(each) for each in script_lines(Command(), WIDE)]
    assert lines == [HANDED, "sbatch --job-name 'a b'", "#!/bin/bash", "printf '\\x1b[2J'"]
    assert [plain(each) for each in script_lines(None, WIDE)] == [HANDED]
    refused = RequestRefused(Refusal(RefusalKind.INVALID, "jobs[0].nodes: too many\nmail: is not known"))
    assert [plain(each) for each in script_lines(refused, WIDE)] == [HANDED, "nodes: too many", "mail: is not known"]


@pytest.mark.req("UI-08", "LA-60")
def test_only_nodes_in_service_that_run_jobs_are_taken_for_the_shown_commands() -> None:
    rows = [idle("off", state=NodeState.DRAINED), replace(idle("door"), login=True)]
    assert list(run_lines(a_spec("train"), ANN, rows, WIDE)) == []
    assert [plain(each) for each in run_lines(a_spec("train"), ANN, [*rows, idle("n1")], WIDE)] != []


@pytest.mark.req("UI-08", "LA-60")
def test_a_batch_shows_the_command_and_the_folder_of_its_first_tasks() -> None:
    few = [plain(each) for each in run_lines(a_batch("python a.py", "python b.py"), ANN, [idle("n1")], WIDE)]
    assert [each for each in few if each.startswith("task")] == [
        "task 0  writes into /data/out/tune-0",
        "task 1  writes into /data/out/tune-1",
    ]
    assert ("python a.py" in few, "python b.py" in few, few[-1].startswith("and so on")) == (True, True, False)
    many = [plain(each) for each in run_lines(a_batch(*["true"] * 9), ANN, [idle("n1")], WIDE)]
    assert sum(each.startswith("task") for each in many) == MOST_RANKS
    assert many[-1] == "and so on, up to task 8"


@pytest.mark.req("UI-08", "LA-60")
def test_as_many_ranks_as_are_shown_need_no_further_line() -> None:
    lines = [plain(each) for each in run_lines(a_spec("train", nodes=MOST_RANKS), ANN, [idle("n1")], WIDE)]
    assert sum(each.startswith("rank") for each in lines) == MOST_RANKS
    assert not any(each.startswith("and so on") for each in lines)


@pytest.mark.req("UI-08", "JT-44")
def test_the_nodes_with_room_are_counted_and_at_most_six_are_named() -> None:
    rows = [idle(f"n{number}") for number in range(1, 8)]
    rows.append(replace(idle("n8"), used_cpus=8))

    def lines(*given: NodeRow, demand: dict[str, float] | None = None) -> list[str]:
        return [plain(each) for each in room_lines(a_spec("p", cpus=2), given, demand or {}, WIDE)]

    assert lines(*rows) == ["room now on  7 nodes, 1 tight", "n1, n2, n3, n4, n5, n6 …"]
    assert lines(*rows[:6]) == ["room now on  6 nodes, 0 tight", "n1, n2, n3, n4, n5, n6"]
    assert lines(rows[7]) == ["room now on  0 nodes, 1 tight"]
    assert lines(idle("g", cards=1), demand={"H100": 2.5})[-1] == "cards waited for  A100 0   H100 2.5"


@pytest.mark.req("UI-08", "UI-31", "JT-46")
def test_the_free_cards_of_the_chosen_models_stand_beside_what_the_job_takes() -> None:
    rows = [node_row("n1"), node_row("n2", state=NodeState.DOWN)]

    def lines(*models: str, nodes: int = 2, cards: int = 4000) -> list[str]:
        specs = (NodeSpec(cpus=1, memory_mib=1, card_milli=cards, card_models=models),)
        spec = a_spec("p", specs=specs, nodes=nodes, mode=Mode.PYTORCH)
        return [plain(each) for each in room_lines(spec, rows, {}, WIDE)]

    assert lines("a100")[0] == "room now on  1 node, 0 tight; it needs 2"
    assert lines("a100")[2] == "cards free now  a100 6.5 of 8; it takes 8 cards"
    assert lines(nodes=1, cards=500)[2] == "cards free now  A100 6.5 of 8; it takes 0.5 card"
    assert "cards free now  H100 0 of 0; it takes 4 cards" in lines("H100", nodes=1)
    assert not any(each.startswith("cards free now") for each in lines(cards=0))


@pytest.mark.req("UI-08", "JT-44")
def test_only_nodes_that_the_job_may_use_and_that_are_big_enough_are_listed() -> None:
    rows = [idle("big", cpus=64), idle("small", cpus=1), idle("off", cpus=64, state=NodeState.DOWN)]

    def names(spec: JobSpec) -> list[str]:
        return [plain(each).split()[0] for each in node_lines(spec, rows, WIDE)][1:]

    assert names(a_spec("p", cpus=2)) == ["big"]
    assert names(a_spec("p", cpus=1)) == ["big", "small"]
    assert names(a_spec("p", cpus=1, node_names=("small",))) == ["small"]
    assert names(a_spec("p", specs=(NodeSpec(cpus=900), NodeSpec(cpus=1)))) == ["big", "small"]
    (nothing,) = node_lines(a_spec("p", cpus=900), rows, WIDE)
    assert plain(nothing) == "no node that the job asks for is in service"


@pytest.mark.req("UI-08", "SC-12")
def test_the_reason_of_a_wait_is_a_sentence_and_missing_where_the_job_starts_now() -> None:
    context = Context(now=NOW)
    first, *_, last = [plain(each) for each in why_lines(outlook(), context, WIDE)]
    assert first[0].isupper()
    assert last == ""
    now = replace(outlook(), forecast=replace(outlook().forecast, now=True))
    assert list(why_lines(now, context, WIDE)) == []
    assert plain(start_line(now, context)) == "Starts now."


@pytest.mark.req("UI-08", "JT-43")
def test_each_task_of_a_batch_shows_one_rank_only() -> None:
    batch = a_batch("python a.py", "python b.py", nodes=3)
    lines = [plain(each) for each in run_lines(batch, ANN, [idle("n1")], WIDE)]
    assert sum(line.startswith("task ") for line in lines) == 2
    assert [line.partition("  ")[0] for line in lines if line.startswith("rank")] == ["rank 0", "rank 0"]
