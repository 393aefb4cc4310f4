"""The filter of system calls: what it decides for each processor, and what it does to real programs in a container."""

from __future__ import annotations

import errno
import platform
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from cockpit.model.spec import Algorithm, Hooks
from cockpit.runtime.containers.plan import Bounds
from cockpit.runtime.containers.shim import program, syscalls
from cockpit.runtime.containers.shim.limits import ReplicaLimits
from tests.runtime.containers import roots
from tests.runtime.containers.conftest import IS_ROOT

ALLOWED = "allowed"
X86_64, I386, AARCH64, RISCV64, ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0xC00000F3, 0x40000028
VSOCK = 40
_NEWUSER, _NEWNS, _SIGCHLD, _THREAD = 0x10000000, 0x20000, 17, 0x3D0F00


def decided(machine: str, architecture: int, number: int, *arguments: int) -> str:
    """What the kernel would do: a reader of classic BPF of its own, with every jump forward and within the program."""
    words = [value & (2**64 - 1) for value in (*arguments, 0, 0, 0, 0, 0, 0)][:6]
    data = struct.pack("=IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *words)
    code = list(struct.iter_unpack("=HBBI", syscalls.program(machine)))
    assert len(code) < 4096  # BPF_MAXINSNS
    place = accumulator = 0
    while True:
        operation, if_true, if_false, operand = code[place]
        place += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, operand)
        elif operation == 0x05:
            place += operand
        elif operation == 0x06:
            return ALLOWED if operand == 0x7FFF0000 else errno.errorcode[operand & 0xFFFF]
        else:
            tests = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: bool(accumulator & operand)}
            place += if_true if tests[operation] else if_false


@pytest.mark.req("TR-02")
@pytest.mark.parametrize(
    ("machine", "architecture", "unshare", "clone", "ioctl", "socket", "read"),
    [
        ("x86_64", X86_64, 272, 56, 16, 41, 0),
        ("x86_64", I386, 310, 120, 54, 359, 3),
        ("aarch64", AARCH64, 97, 220, 29, 198, 63),
        ("riscv64", RISCV64, 97, 220, 29, 198, 63),
    ],
)
def test_no_processor_lets_a_job_out_of_its_container(machine, architecture, unshare, clone, ioctl, socket, read):
    def of(*call: int) -> str:
        return decided(machine, architecture, *call)

    for flag in (_NEWNS, _NEWUSER, 0x02000000, 0x04000000, 0x08000000, 0x20000000, 0x40000000):
        assert of(unshare, flag) == of(unshare, flag | 0x400) == "EPERM"
        assert of(clone, flag | _SIGCHLD) == of(clone, flag | _THREAD) == "EPERM"
        assert of(clone, flag | 0xFFFFFFFF_00000000) == "EPERM"
    assert of(unshare, 0x80) == "EPERM"
    assert of(unshare, 0x400) == of(clone, _SIGCHLD) == of(clone, _THREAD) == ALLOWED
    assert of(435) == "ENOSYS"
    assert of(ioctl, 0, 0x5412) == of(ioctl, 0, 0x5412 | 1 << 32) == of(ioctl, 0, 0x541C) == "EPERM"
    assert of(socket, VSOCK) == "EAFNOSUPPORT"
    assert of(ioctl, 0, 0x5413) == of(read, 0) == of(socket, VSOCK - 1) == of(socket, VSOCK + 1) == ALLOWED


def test_other_architectures_are_refused():
    assert decided("x86_64", ARM, 1) == decided("aarch64", ARM, 1) == decided("aarch64", X86_64, 0) == "ENOSYS"
    assert decided("x86_64", X86_64, 0x40000000 | 272, _NEWUSER) == "ENOSYS"
    assert decided("x86_64", X86_64, -1) == "ENOSYS"


def headers() -> list[tuple[str, int, dict[str, int]]]:
    """Name and number of every call as the C headers of this machine have them, where they are installed."""
    found = []
    for machine, architecture, pattern in (
        ("x86_64", X86_64, "/usr/include/*/asm/unistd_64.h"),
        ("x86_64", I386, "/usr/include/*/asm/unistd_32.h"),
        ("aarch64", AARCH64, "/usr/include/asm-generic/unistd.h"),
    ):
        for path in Path("/").glob(pattern.lstrip("/")):
            numbers = re.findall(r"^#define __NR_(\w+)\s+(\d+)$", path.read_text(), re.MULTILINE)
            found.append((machine, architecture, {name: int(number) for name, number in numbers}))
    return found


def test_the_numbers_are_those_of_the_c_headers():
    """Each refused call by its name, and no other one: a wrong number would refuse a call that programs need. Where
    the C library's headers are not installed, there is nothing to compare with."""
    special = {"clone3": "ENOSYS"}
    for machine, architecture, numbers in headers():
        refused = {name for name in numbers if decided(machine, architecture, numbers[name], 0, 0) != ALLOWED}
        listed = {name for name in (*syscalls._REFUSED, *special) if name in numbers}
        # The generic table has umount2 under the name of its predecessor, and some calls of 32-bit machines alone.
        other = {"umount"} if machine == "x86_64" else {"umount", "clock_settime64"}
        assert refused - other == listed - other, (machine, architecture)
        if architecture != I386:
            assert syscalls._SECCOMP[machine] == numbers["seccomp"]
    assert syscalls._SECCOMP["riscv64"] == syscalls._SECCOMP["aarch64"]  # both have the generic table


def test_calls_since_linux_5_1_have_one_number_on_every_processor():
    """Also those that this machine's headers do not have yet."""
    recent = {
        name: set(numbers) for name, numbers in syscalls._REFUSED.items() if max(map(int, filter(None, numbers))) > 423
    }
    assert {name: numbers for name, numbers in recent.items() if len(numbers) > 1} == {}
    assert {"io_uring_setup", "open_tree_attr"} < recent.keys()


def calling(machine: str, name: str) -> int | None:
    column = {"x86_64": 0, "aarch64": 2, "riscv64": 2}[machine]
    return syscalls._REFUSED[name][column]


real = [
    pytest.mark.real,
    pytest.mark.skipif(not syscalls.is_known(), reason="there is no filter for this processor"),
]
REFUSED = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for number in map(int, sys.argv[1:]):
    ctypes.set_errno(0)
    print(libc.syscall(number, 0, 0, 0, 0, 0), ctypes.get_errno())
"""
NAMESPACES = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for flag in (0x20000, 0x10000000, 0x20000000, 0x40000000, 0x10020000):
    ctypes.set_errno(0)
    print(libc.unshare(flag), ctypes.get_errno())
print(os.waitstatus_to_exitcode(os.system("unshare -U true 2>/dev/null")) != 0)
"""
TRACING = """
import ctypes, os, signal, time
libc = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if child == 0:
    signal.pause()
print(libc.ptrace(0x4206, child, None, None), libc.ptrace(0x4207, child, None, None))
print(os.WIFSTOPPED(os.waitpid(child, 0x40000000)[1]))
os.kill(child, signal.SIGKILL)
"""
USUAL = """
import multiprocessing, os, socket, subprocess, threading
from multiprocessing import shared_memory
def square(number): return number * number
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(square, [2, 3]))
    heard = []
    threads = [threading.Thread(target=heard.append, args=(1,)) for _ in range(8)]
    [each.start() for each in threads]; [each.join() for each in threads]
    memory = shared_memory.SharedMemory(create=True, size=4096); memory.close(); memory.unlink()
    ours, theirs = socket.socketpair(); ours.send(b"x")
    print(len(heard), theirs.recv(1), subprocess.run(["echo", "run"], capture_output=True).stdout, os.cpu_count() > 0)
"""


def written(house, name: str, text: str) -> str:
    place = house.folder / "algorithm"
    place.mkdir(exist_ok=True)
    place.chmod(0o755)
    (place / name).write_text(text)
    (place / name).chmod(0o644)
    return f"/workspace/algorithm/{name}"


def own(house) -> Algorithm:
    return Algorithm(path=str(house.folder / "algorithm"))


class TestInContainers:
    pytestmark = real

    @pytest.mark.req("JT-40", "TR-02")
    async def test_neither_the_job_nor_a_shell_in_it_makes_a_namespace(self, house):
        script = f"/usr/bin/python3 {written(house, 'try.py', NAMESPACES)}"
        job = house.job(f"{script}; exit 3", algorithm=own(house))
        await house.kept(job)
        assert house.out(job).split() == [*["-1", "1"] * 5, "True"]
        assert "filtered" not in await house.started(job.replica)
        code, seen = await house.shell(job.replica, script)
        assert (code, seen.split()) == (0, [*["-1", "1"] * 5, "True"])

    async def test_every_call_of_the_list_is_refused(self, house):
        names = [name for name in syscalls._REFUSED if calling(platform.machine(), name) is not None]
        numbers = " ".join(str(calling(platform.machine(), name)) for name in names)
        job = house.job(f"/usr/bin/python3 {written(house, 'try.py', REFUSED)} {numbers}", algorithm=own(house))
        await house.run(job)
        assert house.err(job) == ""
        assert dict(zip(names, house.out(job).splitlines(), strict=True)) == dict.fromkeys(names, "-1 1")

    async def test_hooks_are_filtered_like_the_command(self, house):
        job = house.job("true", hooks=Hooks(before_start="unshare -U true && echo leaked; true"))
        await house.run(job)
        assert house.out(job) == ""
        assert "unshare" in house.err(job)

    async def test_processes_threads_and_shared_memory_work(self, house):
        job = house.job(f"/usr/bin/python3 {written(house, 'usual.py', USUAL)}", memory_mib=1024, algorithm=own(house))
        await house.run(job)
        assert house.out(job).splitlines() == [
            *("fork [4, 9]", "spawn [4, 9]", "forkserver [4, 9]"),
            "8 b'x' b'run\\n' True",
        ], house.err(job)

    async def test_a_job_may_trace_its_own_processes(self, house):
        """As gdb, strace and py-spy do: PTRACE_SEIZE and PTRACE_INTERRUPT of a child."""
        job = house.job(f"/usr/bin/python3 {written(house, 'trace.py', TRACING)}", algorithm=own(house))
        await house.run(job)
        assert house.out(job).split() == ["0", "0", "True"], house.err(job)

    @pytest.mark.skipif(not IS_ROOT, reason="an ordinary user's namespaces hold no further ones everywhere")
    @pytest.mark.parametrize(("listed", "works"), [("host", True), ("*", True), ("dir:/elsewhere", False)])
    async def test_an_administrator_exempts_images(self, house, listed, works):
        house.bounds = Bounds(pids=200, scratch_mib=64, unfiltered_images=(listed,))
        job = house.job("unshare -U true; echo $?; grep Seccomp: /proc/self/status")
        await house.run(job)
        assert house.out(job).split() == (["0", "Seccomp:", "0"] if works else ["1", "Seccomp:", "2"])
        assert (syscalls.UNFILTERED in await house.started(job.replica)) is works

    async def test_another_root_file_system_is_filtered_too(self, house):
        job = house.job("true", image=f"dir:{roots.make_root(house.folder / 'root')}")
        job = replace(job, spec=replace(job.spec, command="grep Seccomp: /proc/self/status"))
        await house.run(job)
        assert house.out(job).split() == ["Seccomp:", "2"]


@pytest.mark.skipif(not syscalls.is_known(), reason="there is no filter for this processor")
def test_the_filter_leaves_no_descriptor_open_in_the_program():
    script = (
        "import os\n"
        "from cockpit.runtime.containers.shim import linux, syscalls\n"
        "linux.drop_capabilities()\n"
        "before = os.listdir('/proc/self/fd')\n"
        "syscalls.install()\n"
        "print(os.listdir('/proc/self/fd') == before)\n"
        "print([line for line in open('/proc/self/status') if line.startswith('Seccomp:')])\n"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert answer.stdout.split("\n")[:2] == ["True", "['Seccomp:\\t2\\n']"], answer.stderr


@pytest.mark.skipif(platform.machine() not in {"x86_64", "aarch64"}, reason="the number of syncfs is not known")
def test_a_file_system_that_cannot_be_written_to_its_disk_is_an_error(tmp_path: Path):
    """A copy is published after this call: it must be complete also after a power cut. The kernel fails it here."""
    script = (
        "import errno, platform, struct, sys\n"
        "from cockpit.runtime.containers.shim import linux, syscalls\n"
        "number = {'x86_64': 306, 'aarch64': 267}[platform.machine()]\n"
        "code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | errno.EIO), (0x06, 0, 0, 0x7FFF0000)]\n"
        "linux.sync_file_system(sys.argv[1])\n"
        "linux.drop_capabilities()\n"
        "syscalls.program = lambda machine: b''.join(struct.pack('=HBBI', *each) for each in code)\n"
        "syscalls.install()\n"
        "try:\n"
        "    linux.sync_file_system(sys.argv[1])\n"
        "except OSError as error:\n"
        "    print(error.errno == errno.EIO, error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=False)
    assert answer.stdout.startswith(f"True [Errno {errno.EIO}] syncfs {tmp_path}"), answer


def test_only_plain_processes_run_without_a_filter_that_the_kernel_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise OSError(errno.EINVAL, "this kernel takes no system call filter")

    monkeypatch.setattr(syscalls, "install", refuse)
    limits = ReplicaLimits("", [], None)
    program._filter_calls(program.Entry(plan={}, limits=limits, view=program.PLAIN, env={}))
    program._filter_calls(program.Entry(plan={"filtered": False}, limits=limits, view="/view", env={}))
    with pytest.raises(OSError, match="no system call filter"):
        program._filter_calls(program.Entry(plan={}, limits=limits, view="/view", env={}))
