"""The start of a program: its folders, its variables, its exit code when it cannot be executed, and its limits."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from cockpit.runtime.containers.shim import enter, limits, program, view
from cockpit.runtime.containers.shim.limits import ReplicaLimits
from tests.runtime.containers.conftest import IS_ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.req("JT-40")


class Run:
    """A program that is run as a plain process."""

    def __init__(self, folder: Path, arguments: list[str], env: dict[str, str], **plan: object) -> None:
        own = {
            "workdir": str(folder),
            "memory_mib": 0,
            "cpus": 1,
            "pids": 1 << 20,
            "filtered": False,
            "rootless": False,
        }
        entry = program.Entry(
            plan={**own, **plan},
            limits=ReplicaLimits("", [], None),
            view=program.PLAIN,
            env=env,
        )
        read, write = os.pipe()

        def choose() -> list[str]:
            for number in (1, 2):
                os.dup2(write, number)
            return arguments

        start = program.Start(entry, choose)
        os.close(write)
        with os.fdopen(read) as stream:
            pid = start.let_in()
            self.out = stream.read()
        self.code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    def ran(*arguments: str, plan: dict[str, object] | None = None, **env: str) -> Run:
        return Run(tmp_path, list(arguments), {"PATH": "/usr/bin:/bin", **env}, **(plan or {}))

    return ran


def test_a_program_runs_in_its_folder_in_a_session_of_its_own(run, tmp_path):
    done = run("sh", "-c", "pwd; ps -o sid= -p $$; echo $$; exit 7")
    folder, session, pid = done.out.split()
    assert (folder, session, done.code) == (str(tmp_path), pid, 7)


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [("none", 127, "No such file"), ("/none", 127, "No such file"), ("./data", 126, "Permission denied")],
)
def test_a_program_that_cannot_be_executed_ends_as_in_a_shell(run, tmp_path, name, code, words):
    (tmp_path / "data").write_text("echo ran")
    done = run(name)
    assert done.code == code
    assert done.out.startswith(f"{name}: {words}")


def test_a_file_without_permission_on_the_path_is_reported_though_others_are_missing(run, tmp_path):
    (tmp_path / "data").write_text("echo ran")
    done = run("data", PATH=f"/none:{tmp_path}:/bin")
    assert (done.code, done.out) == (126, "data: Permission denied\n")
    (tmp_path / "data").chmod(0o755)
    assert run("data", PATH=f"/none:{tmp_path}/data:{tmp_path}").out == "ran\n"


def test_a_script_without_interpreter_gets_its_arguments(run, tmp_path):
    (tmp_path / "script").write_text("echo $0 $1 $2")
    (tmp_path / "script").chmod(0o755)
    assert run("./script", "a", "b c").out == "./script a b c\n"


@pytest.mark.parametrize(("home", "seen"), [("{here}", "{here}"), ("/none", "/tmp"), ("/", "/tmp"), ("", "/tmp")])
def test_a_home_that_is_not_there_becomes_tmp(run, tmp_path, home, seen):
    assert run("sh", "-c", "echo $HOME", HOME=home.format(here=tmp_path)).out == f"{seen.format(here=tmp_path)}\n"


@pytest.mark.parametrize(
    ("folder", "seen"), [("{here}/new", "{here}/new"), ("{here}", "{here}"), ("{here}/no/where", "/tmp")]
)
def test_a_folder_for_temporary_files_is_made_or_replaced(run, tmp_path, folder, seen):
    folder, seen = folder.format(here=tmp_path), seen.format(here=tmp_path)
    assert run("sh", "-c", "echo $TMPDIR", TMPDIR=folder).out == f"{seen}\n"
    if folder.endswith("/new"):
        assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert run("sh", "-c", "echo ${TMPDIR-none}").out == "none\n"


def test_a_missing_working_folder_is_an_error(run):
    with pytest.raises(program.StartError, match=r"the command could not be started: .*/none"):
        run("true", plan={"workdir": "/none"})


def test_a_program_ignores_and_blocks_no_signal(run):
    """The holder blocks its signals, Python ignores two, and who started the engine may ignore others (nohup)."""
    ignoring = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    status = Path("/proc/self/status").read_text()
    (ignored,) = [int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn")]
    all_three = 1 << signal.SIGPIPE - 1 | 1 << signal.SIGXFSZ - 1 | 1 << signal.SIGHUP - 1
    assert ignored & all_three == all_three
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN + 1})
    try:
        done = run("grep", "-E", "Sig(Blk|Ign)", "/proc/self/status")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        signal.signal(signal.SIGHUP, ignoring)
    # The C library keeps two signals for itself, which no program can restore.
    ours = sum(1 << number - 1 for number in signal.valid_signals())
    assert [int(line.split()[1], 16) & ours for line in done.out.splitlines()] == [0, 0]


def test_a_program_has_no_capability_and_gains_none(run):
    done = run("grep", "-E", "Cap(Inh|Prm|Eff)|NoNewPrivs", "/proc/self/status")
    assert [line.split()[1] for line in done.out.splitlines()] == ["0" * 16] * 3 + ["1"]


@pytest.mark.parametrize(("cpus", "score"), [(1, "300"), (0, "1000")])
def test_jobs_are_killed_before_the_engine_when_memory_is_short(run, cpus, score):
    assert run("cat", "/proc/self/oom_score_adj", plan={"cpus": cpus}).out == f"{score}\n"


def test_without_groups_memory_is_limited_for_each_program(run):
    done = run("sh", "-c", "ulimit -d", plan={"memory_mib": 512})
    assert done.out == f"{512 << 10}\n"


def test_the_death_of_the_parent_lets_no_program_start(tmp_path):
    started = tmp_path / "started"
    go_read, go_write = os.pipe()
    os.close(go_write)
    pid = os.fork()
    if pid == 0:
        entry = program.Entry(
            plan={"workdir": "/", "memory_mib": 0, "cpus": 1},
            limits=ReplicaLimits("", [], None),
            view="",
            env={},
        )
        program._run(entry, lambda: ["/usr/bin/touch", str(started)], go_read, 2)
    os.close(go_read)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
    assert not started.exists()


@pytest.mark.parametrize(
    ("plan", "plain", "raised"), [({}, False, True), ({}, True, False), ({"filtered": False}, False, False)]
)
def test_only_plain_processes_run_without_the_filter_that_a_kernel_refuses(monkeypatch, plan, plain, raised):
    def refuse() -> None:
        raise OSError(errno.EINVAL, "no filter")

    monkeypatch.setattr(program.syscalls, "install", refuse)
    entry = program.Entry(plan=plan, limits=None, view=program.PLAIN if plain else "/view", env={})
    if raised:
        with pytest.raises(OSError, match="no filter"):
            program._filter_calls(entry)
    else:
        program._filter_calls(entry)


def test_the_shell_is_bash_where_there_is_one(monkeypatch):
    for there, shell in (({"/bin/bash", "/bin/sh"}, "/bin/bash"), ({"/bin/sh"}, "/bin/sh"), (set[str](), "/bin/sh")):
        monkeypatch.setattr(program.os, "access", lambda path, _, there=there: path in there)
        assert program.shell() == shell


@pytest.mark.parametrize(("number", "raised"), [(errno.EINVAL, False), (errno.ENOENT, False), (errno.EBUSY, True)])
def test_a_card_that_is_gone_already_is_no_error(monkeypatch, number, raised):
    def fail(_: str) -> None:
        raise OSError(number, "fails")

    monkeypatch.setattr(program.linux, "unmount", fail)
    if raised:
        with pytest.raises(OSError, match="fails"):
            program._take_out("/dev/card")
    else:
        program._take_out("/dev/card")


@pytest.mark.parametrize(
    ("hard", "given", "set_to"), [(-1, 100, 100), (50, 100, 50), (200, 100, 100)], ids=["infinite", "lower", "higher"]
)
def test_a_limit_never_exceeds_that_of_the_engine(monkeypatch, hard, given, set_to):
    done: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(limits.resource, "getrlimit", lambda _: (0, hard))
    monkeypatch.setattr(limits.resource, "setrlimit", lambda which, values: done.append((which, values)))
    limits._lower(7, given)
    assert done == [(7, (set_to, set_to))]


def test_processes_are_limited_only_without_groups_and_not_for_root(monkeypatch):
    lowered: list[int] = []
    monkeypatch.setattr(limits, "_lower", lambda _, value: lowered.append(value))
    for uid, groups in ((1000, []), (0, []), (1000, [7])):
        monkeypatch.setattr(limits.os, "getuid", lambda uid=uid: uid)
        ReplicaLimits("", groups, None).join_late({"pids": uid})
    assert lowered == [1000]


def test_a_group_that_is_busy_must_be_removed_later(monkeypatch):
    tries: list[str] = []
    numbers = {errno.ENOENT: True, errno.EBUSY: False, errno.EROFS: True}

    def rmdir(number: int, path: str) -> None:
        tries.append(path)
        raise OSError(number, "fails")

    for number, gone in numbers.items():
        monkeypatch.setattr(limits.os, "rmdir", partial(rmdir, number))
        assert limits.remove("g") == gone
    assert len(set(tries)) > 3


@pytest.mark.parametrize(
    ("status", "code"), [(0, 0), (7 << 8, 7), (signal.SIGTERM, 143), (signal.SIGKILL, 137), (signal.SIGSEGV | 128, 139)]
)
def test_an_entered_programs_code_is_a_shells(status, code):
    assert enter._shell_code(status) == code


def request(**more: object) -> Any:
    return {"command": [], "terminal": [], "term": "xterm", "label": "me-0", **more}


def test_only_an_interactive_shell_has_a_prompt():
    assert enter._extra(request()) == {}
    assert enter._extra(request(terminal=[24, 80], command=["vi"])) == {"TERM": "xterm"}
    extra = enter._extra(request(terminal=[24, 80]))
    assert (extra["TERM"], extra["COCKPIT_PROMPT"]) == ("xterm", "me-0")
    assert "me-0" not in extra["PS1"] + extra["PROMPT_COMMAND"], "no shell expands the label"


class Control:
    """The other end of a control socket, which may be closed."""

    def __init__(self, error: type[OSError] | None = None) -> None:
        self.sent, self._error = b"", error

    def sendall(self, message: bytes) -> None:
        if self._error is not None:
            raise self._error
        self.sent += message


def test_a_refusal_is_one_line_and_needs_no_reader():
    control = Control()
    enter._refuse(control, "it is\nso")
    assert control.sent == b"-it is so\n"
    for error in (BrokenPipeError, ConnectionResetError):
        enter._refuse(Control(error), "so")


@pytest.mark.parametrize(("command", "arguments"), [([], ["/bin/bash"]), (["ls", "-l"], ["ls", "-l"])])
def test_an_entered_program_has_its_three_pipes(command, arguments):
    control, pipes = Control(), [os.pipe() for _ in range(3)]
    inner = [pipes[0][0], pipes[1][1], pipes[2][1]]
    chosen = os.pipe()
    if os.fork() == 0:
        words = enter._chooser(request(command=command), control, inner)()
        os.write(chosen[1], (os.read(0, 9).decode() + repr(words) + control.sent.decode()).encode())
        os.write(1, b"out")
        os.write(2, b"err")
        os._exit(0)
    os.write(pipes[0][1], b"in")
    assert os.read(chosen[0], 999).decode() == f"in{arguments!r}+"
    assert [os.read(pipes[number][0], 9) for number in (1, 2)] == [b"out", b"err"]
    os.wait()
    for fd in (*chosen, *(fd for pipe in pipes for fd in pipe)):
        os.close(fd)


def plan(**more: object) -> Any:
    return {"rootless": not IS_ROOT, "uid": 12 if IS_ROOT else os.getuid(), "gid": 34, "scratch_mib": 8, **more}


def test_the_containers_own_folders_belong_to_its_user(tmp_path):
    made = view._make_own(str(tmp_path), plan(), [("tmp", 0o1777), ("root", 0o700)])
    assert made == [(f"{tmp_path}/own/tmp", "/tmp", True), (f"{tmp_path}/own/root", "/root", True)]
    folders = [Path(place).stat() for place, _, _ in made]
    assert [each.st_mode & 0o7777 for each in folders] == [0o1777, 0o700]
    if IS_ROOT:
        assert {(each.st_uid, each.st_gid) for each in folders} == {(12, 34)}


@pytest.mark.parametrize(
    ("real", "exists", "mounts"),
    [
        ("/run/systemd/resolve/stub-resolv.conf", True, [("{}", "{}", False)]),
        ("/run/systemd/resolve/stub-resolv.conf", False, []),
        ("/etc/resolv.conf", True, []),
        ("/mnt/run/resolv.conf", True, []),
    ],
)
def test_the_resolvers_file_is_read_only_and_shown_only_if_it_is_in_run(monkeypatch, real, exists, mounts):
    monkeypatch.setattr(view.os.path, "realpath", lambda _: real)
    monkeypatch.setattr(view.os.path, "isfile", lambda _: exists)
    assert view._resolver() == [(source.format(real), target.format(real), each) for source, target, each in mounts]


def test_mount_points_in_the_containers_own_folders_are_found():
    first = [("/stage/own/tmp", "/tmp", True), ("/stage/1", "/data", True)]
    targets = ("/tmp/a", "/tmp", "/tmpx/a", "/data/a", "/workspace/a", "/run/a")
    assert [view._is_in_own_folder(first, target) for target in targets] == [True, *[False] * 5]


class AttemptFolder:
    def __init__(self, folder: Path) -> None:
        self.path = self.state = str(folder)

    def file(self, *names: str) -> str:
        return os.path.join(self.path, *names)


def test_only_heartbeats_are_writable_among_what_the_engine_shows(tmp_path):
    attempt: Any = AttemptFolder(tmp_path)
    assert (view._world(attempt), view._library(attempt), view._agent({"network": ""})) == ([], [], [])
    for name in ("world", "pulse", "python"):
        (tmp_path / name).mkdir()
    assert view._world(attempt) == [
        (f"{tmp_path}/world", "/run/cockpit", False),
        (f"{tmp_path}/pulse", "/run/cockpit-pulse", True),
    ]
    assert view._library(attempt) == [(f"{tmp_path}/python", "/run/cockpit-python", False)]
    assert view._agent({"network": "/n/7.1"}) == [("/n/7.1/shown", "/run/cockpit-launch", False)]


def test_files_of_the_plan_are_mounted_read_only_and_programs_can_be_executed(tmp_path):
    attempt: Any = AttemptFolder(tmp_path)
    files = {"/etc/a": "text", "/run/cockpit-slurm/script": "#!/bin/sh\n", "/etc/b": "#!/bin/sh\n"}
    mounts = view._write_files(attempt, {"files": files})
    assert [(target, writable) for _, target, writable in mounts] == [
        ("/run/cockpit-slurm", False),
        ("/etc/a", False),
        ("/etc/b", False),
    ]
    shown = {target: Path(source) for source, target, _ in mounts[1:]}
    assert {target: (file.read_text(), file.stat().st_mode & 0o777) for target, file in shown.items()} == {
        "/etc/a": ("text", 0o644),
        "/etc/b": ("#!/bin/sh\n", 0o755),
    }
    assert (Path(mounts[0][0]) / "script").stat().st_mode & 0o777 == 0o755
    assert view._write_files(attempt, {}) == []


def test_bubblewraps_byte_tells_whether_its_last_mount_was_made():
    read, write = os.pipe()
    assert view._is_empty(read)
    os.write(write, b".")
    assert not view._is_empty(read)
    os.close(write)
    assert view._is_empty(read)
    os.close(read)


def test_bubblewraps_complaint_is_reported():
    errors = os.memfd_create("errors")
    os.write(errors, b"bwrap: no\n")
    failure = view._failure(errors)
    assert str(failure) == "the container's file system could not be made: bwrap: no"
    assert not isinstance(failure, view.MakerDied)
    os.close(errors)


@pytest.mark.req("TR-01")
@pytest.mark.parametrize("what", ["kill -9 $$", """echo '{"child-pid": 4194304}' >&$info; kill -9 $$"""])
def test_a_killed_bubblewrap_is_not_a_fault_of_the_job(tmp_path, monkeypatch, what):
    """Before and after it has named its child, which is dead then."""
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/bash\ninfo=$1\n{what}\n")
    program.chmod(0o755)
    monkeypatch.setattr(view.bubblewrap, "arguments", lambda _view, *, block_fd, info_fd: ["bwrap", str(info_fd)])
    view_without_mounts: Any = None
    with pytest.raises(view.MakerDied, match=r"bubblewrap \(bwrap\) was killed"):
        view._run_bubblewrap(view_without_mounts, str(program))


def test_a_namespace_stays_open_under_its_own_number():
    assert view.opened_by(7) == "/proc/7/fd/100"
    pid = os.fork()
    if pid == 0:
        fd = os.open("/proc/self/ns/mnt", os.O_RDONLY)
        view.hold_open(fd)
        kept = os.readlink(f"/proc/self/fd/{view.VIEW_FD}") == os.readlink("/proc/self/ns/mnt")
        os._exit(
            0 if kept and not os.get_inheritable(view.VIEW_FD) and not os.path.exists(f"/proc/self/fd/{fd}") else 1
        )
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


ENDS_WITH_PARENT = """
import os, sys
from cockpit.runtime.containers.shim import linux
if not os.fork():
    linux.end_with_parent()
    os.execv("/bin/sh", ["sh", "-c", "echo ready; read never"])
os.wait()
"""


def test_a_helper_process_is_killed_when_the_process_that_started_it_is() -> None:
    own, other = os.pipe()
    words = [sys.executable, "-c", ENDS_WITH_PARENT]
    parent = subprocess.Popen(words, stdin=own, stdout=subprocess.PIPE)
    os.close(own)
    assert parent.stdout is not None
    try:
        assert parent.stdout.readline() == b"ready\n"
        parent.kill()
        parent.wait()
        readable, _, _ = select.select([parent.stdout], [], [], 30)
        assert readable, "the helper still holds the pipe"
        assert parent.stdout.read() == b""
    finally:
        os.close(other)  # ends the helper's `read` if it is left
        parent.stdout.close()


@pytest.mark.parametrize(("first_line", "prints"), [("", "one two"), ("#!/bin/echo", "{script} one two")])
def test_a_script_is_executed_with_its_arguments_also_without_an_interpreter_line(tmp_path, first_line, prints):
    script = tmp_path / "script"
    script.write_text(f'{first_line}\necho "$1 $2"\n')
    script.chmod(0o755)
    words = (
        "from cockpit.runtime.containers.shim import program\n"
        f"program._execute_file({str(script)!r}, ['name', 'one', 'two'], {{}})\n"
    )
    run = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, f"{prints.format(script=script)}\n")
