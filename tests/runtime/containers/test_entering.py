"""Shells in running and kept containers."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios

import pytest

from cockpit.engine.effects import SignalKind, SignalReplica
from cockpit.errors import RequestRefused
from cockpit.model.ids import JobId, ReplicaId
from cockpit.model.spec import Algorithm
from cockpit.runtime.containers.entering import Terminal
from tests.programs import needs_pgrep
from tests.runtime.containers.conftest import IS_ROOT
from tests.runtime.containers.house import exit_code, finish
from tests.runtime.containers.test_running import TRACED

pytestmark = pytest.mark.real


class Screen:
    """A person at a terminal: types, and reads until something appears."""

    def __init__(self, entered) -> None:
        self.fd = entered.terminal_fd
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self.fd, text.encode())

    async def until(self, text: str) -> str:
        """What appeared up to and with `text`."""
        async with asyncio.timeout(60):
            while text not in self.seen:
                self.seen += (await asyncio.to_thread(os.read, self.fd, 4096)).decode()
        before, self.seen = self.seen.split(text, 1)
        return before


@pytest.fixture
async def kept(house):
    algo = house.folder / "algo"
    algo.mkdir()
    job = house.job(
        "echo made >/tmp/here; echo e >/etc/cockpit-t; exit 3", algorithm=Algorithm(path=str(algo)), env={"A": "b c"}
    )
    await house.kept(job)
    return job


@pytest.mark.req("JT-40")
async def test_a_held_container_is_as_the_job_left_it(house, kept):
    code, seen = await house.shell(kept.replica, "cat /tmp/here /etc/cockpit-t; pwd; echo $A; hostname; exit 9")
    assert (code, seen.split("\n")) == (9, ["made", "e", "/workspace/algorithm", "b c", "job-0", ""])


@pytest.mark.parametrize(("number", "code"), [("SIGUSR1", 138), ("SIGWINCH", 7)])
async def test_a_shell_that_lets_its_parent_trace_it_ends_like_any_other(house, kept, number, code):
    assert (await house.shell(kept.replica, f'exec python3 -c "{TRACED.format(number=number)}"'))[0] == code


async def test_opening_a_shell_prints_what_it_opens_in(house, kept):
    facts = (await house.enter(kept.replica, "true")).facts
    assert (facts.kept, facts.remounted, facts.cards_freed) == (True, False, False)


async def test_a_shell_has_the_environment_of_the_command(house):
    job = house.job("env | sort", env={"WITH": "new\nline and spaces"})
    await house.kept(job)
    entered = await house.enter(job.replica, "env")
    code, seen = await asyncio.to_thread(finish, entered)
    assert code == 0
    own = {"PWD", "SHLVL", "_", "OLDPWD"}
    assert names(seen) - own == names(house.out(job)) - own


def names(env: str) -> set[str]:
    return {line.partition("=")[0] for line in env.splitlines() if "=" in line}


@pytest.mark.req("JT-40")
async def test_without_a_terminal_a_shell_runs_its_input_and_prints_nothing_else(house, kept):
    entered = await house.enter(kept.replica)
    stdin, stdout, stderr = entered.pipe_fds
    os.write(stdin, b"cat /tmp/here\nexit 7\n")
    os.close(stdin)
    assert await asyncio.to_thread(read_to_end, stdout) == b"made\n"
    assert await asyncio.to_thread(read_to_end, stderr) == b""
    assert exit_code(entered) == 7


def read_to_end(fd: int) -> bytes:
    with open(fd, "rb") as stream:
        return stream.read()


@pytest.mark.req("JT-40")
async def test_two_shells_at_once_share_files_and_processes(house, kept):
    first = await house.enter(kept.replica, "bash", "-c", "echo hello >/tmp/note; read x </dev/stdin; cat /tmp/answer")
    await asyncio.sleep(0)
    code, seen = await house.shell(
        kept.replica, "until test -s /tmp/note; do :; done; cat /tmp/note; echo hi >/tmp/answer"
    )
    assert (code, seen) == (0, "hello\n")
    os.write(first.pipe_fds[0], b"\n")
    assert await asyncio.to_thread(finish, first) == (0, "hi\n")


async def test_bytes_pass_unchanged(house, kept):
    everything = bytes(range(256)) * 300
    entered = await house.enter(kept.replica, "cat")
    stdin, stdout, stderr = entered.pipe_fds

    def feed() -> None:
        with open(stdin, "wb") as stream:
            stream.write(everything)

    def drain() -> bytes:
        with open(stdout, "rb") as stream:
            return stream.read()

    _, back = await asyncio.gather(asyncio.to_thread(feed), asyncio.to_thread(drain))
    os.close(stderr)
    assert back == everything
    assert await asyncio.to_thread(exit_code, entered) == 0


@pytest.mark.parametrize(("command", "code"), [(("false",), 1), (("no-such",), 127), (("/etc/passwd",), 126)])
async def test_exit_codes_are_a_shells(house, kept, command, code):
    entered = await house.enter(kept.replica, *command)
    assert (await asyncio.to_thread(finish, entered))[0] == code


@pytest.mark.req("JT-40")
async def test_an_interactive_shell_has_a_terminal_of_its_own(house, kept):
    entered = await house.enter(kept.replica, terminal=Terminal(30, 100, "xterm-256color"))
    screen = Screen(entered)
    mark = "#" if IS_ROOT else "$"
    await screen.until(f"job-0:/workspace/algorithm{mark} ")
    screen.type("stty size; tty; echo $TERM\r")
    shown = await screen.until("xterm-256color\r\n")
    assert "30 100\r\n/dev/pts/0\r\n" in shown
    await screen.until(f"{mark} ")  # typed before the shell reads a line, it may get lost
    fcntl.ioctl(screen.fd, termios.TIOCSWINSZ, struct.pack("4H", 50, 160, 0, 0))
    screen.type("stty size\r")
    await screen.until("50 160\r\n")
    screen.type("exit 4\r")
    assert await asyncio.to_thread(exit_code, entered) == 4
    os.close(screen.fd)


async def test_a_full_screen_program_runs_resizes_and_ends(house, kept):
    """Raw mode, alternate screen, SIGWINCH, single keys: what vim, htop and less need."""
    program = (
        "import os, signal, sys, tty\n"
        "tty.setraw(0)\n"
        "size = lambda *_: os.write(1, b'%dx%d;' % tuple(os.get_terminal_size()))\n"
        "signal.signal(signal.SIGWINCH, size)\n"
        "os.write(1, b'\\x1b[?1049h'); size()\n"
        "while (key := os.read(0, 1)) != b'q': os.write(1, b'<' + key + b'>')\n"
        "os.write(1, b'\\x1b[?1049l'); sys.exit(6)\n"
    )
    entered = await house.enter(kept.replica, "/usr/bin/python3", "-c", program, terminal=Terminal(24, 80, "xterm"))
    screen = Screen(entered)
    await screen.until("\x1b[?1049h80x24;")
    fcntl.ioctl(screen.fd, termios.TIOCSWINSZ, struct.pack("4H", 40, 120, 0, 0))
    await screen.until("120x40;")
    screen.type("\x03j")
    await screen.until("<\x03><j>")
    screen.type("q")
    await screen.until("\x1b[?1049l")
    assert await asyncio.to_thread(exit_code, entered) == 6
    os.close(screen.fd)


async def test_ctrl_c_interrupts_what_runs_in_front(house, kept):
    entered = await house.enter(kept.replica, "bash", "-c", "echo up; sleep 60", terminal=Terminal(24, 80, "xterm"))
    screen = Screen(entered)
    await screen.until("up")
    screen.type("\x03")
    assert await asyncio.to_thread(exit_code, entered) == 130
    os.close(screen.fd)


@needs_pgrep
async def test_a_hangup_ends_all_processes_started_in_the_shell(house, kept):
    script = "setsid -f sleep 1001; trap '' HUP; sleep 1002 & echo up; wait"
    entered = await house.enter(kept.replica, "bash", "-c", script)
    assert await asyncio.to_thread(os.read, entered.pipe_fds[1], 3) == b"up\n"
    for fd in (*entered.pipe_fds, entered.control_fd):
        os.close(fd)
    gone = "until ! pgrep -x sleep >/dev/null; do :; done; echo gone"
    assert await house.shell(kept.replica, gone) == (0, "gone\n")


async def test_background_processes_of_a_shell_continue(house, kept):
    code, pid = await house.shell(kept.replica, "sleep 1003 >/dev/null 2>&1 & echo $!; disown")
    assert code == 0
    assert await house.shell(kept.replica, f"kill {pid.strip()} && echo alive") == (0, "alive\n")


@pytest.mark.req("JT-40")
async def test_a_shell_opens_in_a_running_container_too(house):
    job = house.job("echo mine >/tmp/x; trap 'exit 0' TERM; touch /tmp/ready; while :; do sleep 0.01; done")
    await house.executor.start(job)
    await house.started(job.replica)
    code, seen = await house.shell(job.replica, "until test -e /tmp/ready; do :; done; cat /tmp/x")
    assert (code, seen) == (0, "mine\n")
    await house.executor.signal(SignalReplica(job.replica, SignalKind.TERM))
    assert (await house.ended(job.replica)).code == 0


async def test_the_end_of_the_command_ends_the_shells_in_it(house):
    job = house.job("read x </workspace/outputs/go; exit 3")
    (house.folder / "out-own").mkdir(mode=0o777)
    os.mkfifo(house.folder / "out-own" / "go")
    await house.executor.start(job)
    await house.started(job.replica)
    entered = await house.enter(job.replica, "sh", "-c", "trap '' TERM HUP; echo up; sleep 60")
    assert await asyncio.to_thread(os.read, entered.pipe_fds[1], 3) == b"up\n"
    (house.folder / "out-own" / "go").write_text("\n")
    assert (await house.ended(job.replica)).code == 3
    assert (await asyncio.to_thread(finish, entered))[0] == 137


@pytest.mark.skipif(not IS_ROOT, reason="needs a second user")
async def test_a_replaced_loader_gains_no_rights_when_a_shell_opens(house, ann):
    """The job owns its /etc and /usr folders: what is executed from there must never have more rights than the job."""
    job = house.job("echo /tmp/evil.so >/etc/ld.so.preload; rm -f /etc/hosts; exit 3", user=ann)
    await house.kept(job)
    code, seen = await house.shell(job.replica, "id -u; grep CapEff /proc/self/status")
    assert code == 0
    assert str(job.submitter.uid) in seen.split()
    assert "CapEff:\t0000000000000000" in seen


async def test_without_a_held_container_no_shell_opens(house):
    with pytest.raises(RequestRefused, match="no container to enter"):
        await house.enter(ReplicaId(JobId(99), 1, 0), "true")


async def test_the_prompt_interprets_nothing_of_the_jobs_name(house, kept):
    label = "$(touch /tmp/pwned)`id`\\u[bold]-0"
    entered = await house.executor.enter(kept.replica, (), terminal=Terminal(24, 200, "xterm"), label=label)
    screen = Screen(entered)
    await screen.until(f"{label}:/workspace/algorithm")
    screen.type("ls /tmp\r")
    assert "pwned" not in await screen.until("here\r\n")
    for fd in (screen.fd, entered.control_fd):
        os.close(fd)
