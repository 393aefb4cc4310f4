"""What a job's command is and leaves behind, in real containers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cockpit.engine.effects import SignalKind, SignalReplica
from cockpit.model.asking import LogRequest, LogStream
from cockpit.model.mounts import Algorithm, Dataset, DatasetSource, Model, ModelSource, ResolvedEntry, Volume
from cockpit.model.spec import Mode
from cockpit.runtime.containers import spawning
from cockpit.runtime.merged_logs import read_merged
from tests.runtime.containers.conftest import IS_ROOT
from tests.runtime.containers.house import until

pytestmark = pytest.mark.real
TRACED = """
import ctypes, os, signal
ctypes.CDLL(None).ptrace(0, 0, None, None)
os.kill(os.getpid(), signal.{number})
os._exit(7)
"""
"""A program that makes its parent its tracer (PTRACE_TRACEME)."""


@pytest.mark.parametrize(("script", "code"), [("true", 0), ("exit 3", 3), ("exit 137", 137), ("no-such-program", 127)])
async def test_an_exit_code_is_reported_unchanged(house, script, code):
    status = await house.run(house.job(script))
    assert (status.code, status.signal, status.lost) == (code, None, "")


async def test_a_fatal_signal_is_distinguished_from_an_exit_code(house):
    status = await house.run(house.job("kill -KILL $$"))
    assert (status.code, status.signal, status.shell_code) == (None, 9, 137)


async def test_the_space_of_the_exit_record_is_reserved_before_the_command_can_fill_the_disk(house):
    job = house.job("sleep 100")
    await house.executor.start(job)
    await house.started(job.replica)
    reserved = (house.folder_of(job.replica) / ".exit.json.new").stat()
    await house.executor.signal(SignalReplica(job.replica, SignalKind.KILL))
    assert (await house.ended(job.replica)).signal == 9
    written = (house.folder_of(job.replica) / "exit.json").stat()
    assert (written.st_ino, written.st_size) == (reserved.st_ino, reserved.st_size)


@pytest.mark.req("LA-10")
@pytest.mark.parametrize(("number", "ended"), [("SIGUSR1", (None, 10)), ("SIGWINCH", (7, None))])
async def test_a_command_that_lets_its_parent_trace_it_ends_like_any_other(house, number, ended):
    """Its parent is the holder: without a decision of the holder each signal stops it for ever."""
    job = house.job(f'exec python3 -c "{TRACED.format(number=number)}"')
    status = await house.run(job)
    assert (status.code, status.signal, status.lost) == (*ended, "")


@pytest.mark.req("PF-30")
async def test_an_interpreter_is_preloaded_before_a_container_is_requested(house, monkeypatch):
    """Its start is what takes longest: the next container is made by the one that was started after the last."""
    await house.run(house.job("true"))
    ready, asked = house.executor._shims._ready, []
    monkeypatch.setattr(spawning.Shims, "_start", lambda _: asked.append("another"))
    assert ready is not None
    await house.run(house.job("true"))
    assert ready.poll() is not None, "it made the second one"
    assert len(asked) == 1, "and only then another was started, for the third"


async def test_output_streams_are_written_to_their_logs(house):
    job = house.job("echo out; echo err >&2; echo direct >/dev/stderr")
    await house.run(job)
    assert house.out(job) == "out\n"
    assert "direct\n" in house.err(job)


@pytest.mark.req("UI-14")
async def test_the_order_of_both_logs_is_recorded_and_read_merged(house):
    looks = [f"echo out {number}; sleep 0.4; echo err {number} >&2; sleep 0.4" for number in range(3)]
    job = house.job("; ".join([*looks, "printf rest"]))
    assert (await house.run(job)).code == 0
    request = LogRequest(job=job.replica.job, stream=LogStream.MERGED)
    chunk = await read_merged(house.state / "logs", job.replica, request, lambda: True)
    pairs = [(f"out {number}", f"err {number}") for number in range(3)]
    assert chunk.data.decode().splitlines() == [*(line for pair in pairs for line in pair), "rest"]
    assert chunk.ended
    assert [chunk.data[begin:end] for begin, end in chunk.errors] == [b"err 0\n", b"err 1\n", b"err 2\n"]
    times = [at for _, at in chunk.moments]
    assert times == sorted(times)
    assert times[-1] - times[0] >= 1000


@pytest.mark.req("JT-30")
async def test_the_workspace_has_exactly_what_the_spec_names(house):
    for name in ("algo", "scratch"):
        (house.folder / name).mkdir()
    (house.folder / "algo" / "t.sh").write_text("here")
    (house.folder / "scratch").chmod(0o777)
    job = house.job(
        "cd /workspace; find . | sort; pwd; cat algorithm/t.sh",
        algorithm=Algorithm(path=str(house.folder / "algo"), read_only=True),
        volumes=(Volume(name="v1", path=str(house.folder / "scratch")),),
    )
    await house.run(job)
    assert house.out(job).split() == [
        *(".", "./algorithm", "./algorithm/t.sh", "./outputs", "./volume", "./volume/v1"),
        *("/workspace", "here"),
    ]


PLACES = (
    *("algorithm", "anno_dataset/coco/annotation", "dataset/favorite/web/v2", "dataset/private/corpus"),
    *("model/favorite/bert/v1", "model/pretrained/vgg", "model/private/own", "outputs", "volume/scratch"),
)
"""Everything that a job may see below /workspace."""
WRITABLE = ("algorithm", "dataset/favorite/web/v2", "outputs", "volume/scratch")


@pytest.mark.req("JT-30", "JT-05", "JT-22")
async def test_every_kind_of_mount_is_in_its_path_and_read_only_or_writable(house):
    folders = {place: house.folder / "data" / str(number) for number, place in enumerate(PLACES)}
    for place, folder in folders.items():
        folder.mkdir(parents=True, mode=0o777)
        (folder / "here").write_text(place)

    def found(place: str) -> ResolvedEntry:
        return ResolvedEntry("", str(folders[place]))

    job = house.job(
        "cd /workspace; find . | sort; for d in " + " ".join(PLACES) + "; do cat $d/here; echo kept >$d/written; done",
        algorithm=Algorithm(name="vit", found=found("algorithm")),
        datasets=(
            Dataset(name="corpus", found=found("dataset/private/corpus"), read_only=True),
            Dataset(name="web", source=DatasetSource.FAVORITE, version="v2", found=found("dataset/favorite/web/v2")),
            Dataset(
                name="coco",
                source=DatasetSource.ANNOTATION,
                version="v9",
                found=found("anno_dataset/coco/annotation"),
                read_only=True,
            ),
        ),
        models=(
            Model(name="own", path=str(folders["model/private/own"])),
            Model(name="vgg", source=ModelSource.PRETRAINED, found=found("model/pretrained/vgg")),
            Model(name="bert", source=ModelSource.FAVORITE, version="v1", found=found("model/favorite/bert/v1")),
        ),
        volumes=(Volume(name="scratch", found=found("volume/scratch")),),
        output=str(folders["outputs"]),
    )
    await house.run(job)
    above = {"/".join(place.split("/")[:depth]) for place in PLACES for depth in range(len(place.split("/")) + 1)}
    inside = {f"./{path}".rstrip("/") for path in above} | {f"./{place}/here" for place in PLACES}
    listed, said = house.out(job).splitlines()[: len(inside)], house.out(job).splitlines()[len(inside) :]
    assert set(listed) == inside
    assert "".join(said) == "".join(PLACES)
    assert house.err(job).count("Read-only file system") == len(PLACES) - len(WRITABLE)
    assert {place for place, folder in folders.items() if (folder / "written").exists()} == set(WRITABLE)


@pytest.mark.req("JT-30")
async def test_read_only_refuses_a_write_and_writable_keeps_it(house):
    (house.folder / "algo").mkdir(mode=0o777)
    job = house.job(
        "touch a; echo kept >/workspace/outputs/result; pwd",
        algorithm=Algorithm(path=str(house.folder / "algo"), read_only=True),
    )
    await house.run(job)
    assert "Read-only file system" in house.err(job)
    assert not list((house.folder / "algo").iterdir())
    assert (Path(job.spec.output) / "result").read_text() == "kept\n"
    assert house.out(job) == "/workspace/algorithm\n"


@pytest.mark.skipif(not IS_ROOT, reason="an ordinary user's engine runs only that user's jobs")
async def test_a_command_runs_as_its_submitter(house, ann):
    job = house.job("id; touch /workspace/outputs/mine; cat /proc/self/status; echo $HOME; ls -d ~", user=ann)
    await house.run(job)
    out = house.out(job)
    assert f"uid={job.submitter.uid}({ann}) gid={job.submitter.gid}({ann})" in out
    assert (Path(job.spec.output) / "mine").stat().st_uid == job.submitter.uid
    assert out.splitlines()[-2:] == [job.submitter.home] * 2


async def test_a_command_has_no_privileges_and_can_gain_none(house):
    job = house.job("grep -E 'Cap|NoNewPrivs' /proc/self/status; id -u; unshare --mount true")
    status = await house.run(job)
    *lines, uid = house.out(job).splitlines()
    assert dict(line.split(":\t") for line in lines) == {
        **dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0" * 16),
        "NoNewPrivs": "1",
    }
    assert int(uid) == os.geteuid()
    assert status.code != 0


async def test_changes_that_a_job_makes_in_the_system_are_private_to_it(house):
    etc, usr = (Path(top) / house.folder.name for top in ("/etc", "/usr"))
    job = house.job(f"echo x >{etc} && echo y >{usr} && cat {etc} {usr}")
    assert (await house.run(job)).code == 0
    assert house.out(job) == "x\ny\n"
    assert (etc.exists(), usr.exists()) == (False, False)


@pytest.mark.skipif(not IS_ROOT, reason="only root may change the system's own files, inside or outside")
async def test_root_may_break_its_own_copy_of_the_system(house):
    job = house.job(
        "echo evil:x:0:0:::>>/etc/passwd; rm -rf /usr/share/doc /opt; mv /usr/bin/id /usr/bin/idd; tail -1 /etc/passwd"
    )
    await house.run(job)
    assert house.out(job) == "evil:x:0:0:::\n"
    assert "evil:x" not in Path("/etc/passwd").read_text()
    assert Path("/usr/bin/id").exists()
    assert Path("/usr/share/doc").exists()


@pytest.mark.req("JT-40")
async def test_every_process_has_ended_when_the_end_is_reported(house):
    job = house.job(
        "for i in 1 2 3; do setsid -f sh -c 'trap \"\" TERM HUP; while :; do touch /workspace/outputs/beat; done'; done"
        "; until test -e /workspace/outputs/beat; do :; done; exit 3"
    )
    assert (await house.run(job)).code == 3
    beat = Path(job.spec.output) / "beat"
    beat.unlink()
    code, processes = await house.shell(job.replica, "set -- /proc/[0-9]*; echo $#")
    assert (code, processes) == (0, "3\n"), "the holder, the watcher, and the shell"
    assert not beat.exists()


async def test_term_is_delivered_to_the_command_which_has_its_grace(house):
    job = house.job("trap 'echo asked; exit 7' TERM; echo ready; while :; do sleep 0.01; done")
    await house.executor.start(job)
    await until(lambda: house.out(job) == "ready\n")
    await house.executor.signal(SignalReplica(job.replica, SignalKind.TERM))
    assert (await house.ended(job.replica)).code == 7
    assert house.out(job) == "ready\nasked\n"


async def test_kill_ends_what_ignores_term(house):
    job = house.job("trap '' TERM; echo ready; while :; do sleep 60; done")
    await house.executor.start(job)
    await until(lambda: house.out(job) == "ready\n")
    for force in (SignalKind.TERM, SignalKind.KILL):
        await house.executor.signal(SignalReplica(job.replica, force))
    assert (await house.ended(job.replica)).signal == 9


async def test_a_job_cannot_signal_its_holder(house):
    job = house.job("for s in $(seq 1 64); do kill -$s 1; done; sleep 0.05; echo alive")
    assert (await house.run(job)).code == 0
    assert house.out(job) == "alive\n"
    assert (await house.shell(job.replica, "echo still")) == (0, "still\n")


async def test_a_script_without_interpreter_line_is_run_by_the_shell(house):
    script = house.folder / "algo" / "t.sh"
    script.parent.mkdir()
    script.write_text("echo ran $1\n")
    script.chmod(0o755)
    job = house.job("exec ./t.sh arg", algorithm=Algorithm(path=str(script.parent)))
    await house.run(job)
    assert house.out(job) == "ran arg\n"


async def test_a_folder_that_cannot_be_opened_is_reported_in_one_sentence(house):
    job = house.job("true", algorithm=Algorithm(path=str(house.folder / "absent")))
    status = await house.run(job)
    assert status.lost == f"algorithm: {house.folder}/absent: no such file or directory for user {job.submitter.name}"


@pytest.mark.skipif(not IS_ROOT, reason="needs a second user")
async def test_folders_are_opened_with_the_submitters_rights(house, ann):
    private = house.folder / "private"
    private.mkdir(mode=0o700)
    for spec in ({"output": str(private / "out")}, {"algorithm": Algorithm(path=str(private))}):
        status = await house.run(house.job("true", user=ann, **spec))
        assert status.lost.endswith(f"permission denied for user {ann}")
    assert not list(private.iterdir())


async def test_a_folder_of_the_engine_is_refused(house):
    job = house.job("true", output=str(house.state / "containers"))
    assert "is in the engine's own folder" in (await house.run(job)).lost


@pytest.mark.req("LA-71")
async def test_a_batch_script_finds_srun_and_scontrol(house):
    job = house.job("scontrol show hostnames 'a[1-2]'; srun echo done", mode=Mode.SLURM)
    assert (await house.run(job)).ok, house.err(job)
    assert house.out(job).split() == ["a1", "a2", "done"]
