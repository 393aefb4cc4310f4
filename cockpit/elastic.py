"""For training scripts: is this worker being taken away, should a checkpoint be saved, who are the others now?

    import cockpit.elastic as elastic        # or, as a drop-in: import kubeai.elastic as kubeai

    elastic.init()
    elastic.step(done, total_steps=len(batches))
    for batch in batches[done:]:
        if not elastic.check_alive():
            with elastic.save("/workspace/outputs/step-40.pt") as path:
                torch.save(state, path)
            sys.exit(-1)
        ...
        done += 1
        elastic.step(done)

Every container has it, by both names. Standard library only; imports nothing of cockpit. Outside of an
elastic job nothing is ever taken away, and the world is this process alone.
"""

from __future__ import annotations

import binascii
import fnmatch
import json
import os
import re
import shutil
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Union

_PATH = "/run/cockpit/workers.json"
_SOCKET = "workers.sock"
_PULSE = "COCKPIT_PULSE_FILE"
_DRAFT = ".partial"
"""How the name of a checkpoint ends that is being written."""
_LOOK_SECONDS = 0.5
"""Time between two looks at the file while there is no socket to wait at."""
_STEPS = "steps"
"""Name of the file with this worker's steps, beside the heartbeat."""
_STEPS_BYTES = 4096
"""Longest content of that file, which is read and written as a whole."""
_MOST_SIZES = 64
"""Numbers of workers for which the speed is kept, the last ones."""
_LOCAL_RANKS = "LOCAL_RANK", "HOROVOD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK"
"""Variables by which launchers number the processes of one worker."""
_LONGEST_ADDRESS = 107
"""Bytes of a Unix socket's path, see unix(7)."""


class _Listed:
    """The workers as a file lists them. The file stays open, so that no later file can get its inode number."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.stamp = _stamp(os.fstat(fd))
        with open(fd, "rb", closefd=False) as stream:
            self.content: Dict[str, Any] = json.loads(stream.read())

    def __del__(self) -> None:
        os.close(self._fd)


class _State:
    path = ""
    listed: Optional[_Listed] = None
    callbacks: Tuple[Callable[[Dict[str, Any]], object], ...] = ()
    watching: Optional[threading.Thread] = None


_LOCK = threading.Lock()
"""Held while callbacks are registered, never during a step."""


def init(path: Optional[str] = None) -> None:
    """Set the file that lists the job's workers; by default the job's environment names it. Calling this is optional.

    Each call of a function here is a heartbeat. After the first one, the next must come within the job's
    `max_wait_time`.
    """
    _State.path = path or os.environ.get("COCKPIT_WORKERS_FILE", _PATH)
    _State.listed = None


def check_alive() -> bool:
    """Return False once this worker has to end: save what must be kept, and exit.

    Call it between two steps. It makes two system calls while nothing has changed, and never waits.
    """
    return _own() not in _leaving(_read_workers())


def checkpoint_requested() -> bool:
    """Return whether this worker should save a checkpoint now, because workers have to end.

    If others continue, each worker that ends saves, and so does the first of those that continue. If all have to end
    (the job is suspended), the first one alone saves for all.
    """
    listed = _read_workers()
    leaving = _leaving(listed)
    staying = [each["replica"] for each in listed["workers"]]
    if not leaving:
        return False
    # With no worker staying, the first of the leaving ones is the only one that matches.
    return _own() == (staying or leaving)[0] or (bool(staying) and _own() in leaving)


def world() -> Dict[str, Any]:
    """Return the `size` of the world, this worker's `rank` in it (None once it has to end), the `hosts` by rank, and
    the `version` of all that. Other hosts mean a new ring."""
    return _world(_read_workers())


def step(done: int, total_steps: Optional[int] = None) -> None:
    """Report how many steps of the training are done, so that its speed and its end are known.

    Call it after each step, and once before the first one with the steps of the checkpoint that was loaded (0 without
    one): only then it is known how many steps an interruption has cost. `total_steps`: the number of steps of the whole
    training. Of a worker's processes only the first one reports. It is a heartbeat, and never waits. Raises ValueError
    for a number below 0.
    """
    if done < 0 or (total_steps is not None and total_steps < 0):
        raise ValueError(f"step: {done} of {total_steps} is no number of steps; give the steps done so far, from 0")
    listed = _read_workers()
    if _PULSE in os.environ and all(os.environ.get(name, "0") == "0" for name in _LOCAL_RANKS):
        _PROGRESS.note(int(done), None if total_steps is None else int(total_steps), listed)


def on_change(callback: Callable[[Dict[str, Any]], object]) -> Callable[[], None]:
    """Call `callback(world)` whenever workers come, have to end, or have ended. Return a function that stops it.

    The callback runs in a thread of its own, so that it delays no step. Its `world` is that of `world()`; the rank is
    None once this worker has to end. An exception is printed, and the next change is reported nevertheless. The notice
    comes over the socket of the container; without one, the file is looked at twice a second.
    """
    if not _State.path:
        init()
    with _LOCK:
        _State.callbacks = (*_State.callbacks, callback)
        if _State.watching is None:
            # Read here: what changes after this call must reach the callback.
            known = _read_listed()
            _State.watching = threading.Thread(target=_watch, args=(known,), name="cockpit.elastic", daemon=True)
            _State.watching.start()

    def stop() -> None:
        with _LOCK:
            _State.callbacks = tuple([each for each in _State.callbacks if each is not callback])
            if not _State.callbacks:
                _State.watching = None

    return stop


@contextmanager
def save(path: Union[str, os.PathLike[str]], step: Optional[int] = None) -> Iterator[str]:
    """Write a checkpoint that is either complete or does not exist: `with save(path) as draft: torch.save(…, draft)`.

    `step`: the number of steps that are in it; by default those that this process has reported.

    Yields another name in the same folder, to which the block writes a file or a folder of that name. After the block
    it is written to the disk and renamed to `path` in one step. If the block raises, or the worker is killed in it,
    `path` stays as it was. An existing file is replaced; an existing folder is not (OSError).
    """
    target = os.path.abspath(os.fspath(path))
    folder, name = os.path.split(target)
    _remove_orphans(folder)
    draft = os.path.join(folder, f".{name}.{_writer()}{_DRAFT}")
    try:
        yield draft
        # Before the rename: after a power cut, the name must not lead to content that never reached the disk.
        for written in (*_below(draft), draft):
            _sync(written)
        os.replace(draft, target)
    except BaseException:
        _remove(draft)
        raise
    _sync(folder)
    _PROGRESS.saved(step)


def latest_checkpoint(pattern: str = "*", folder: Optional[str] = None) -> Optional[str]:
    """Return the path of the latest checkpoint in the folder whose name matches, or None; never one half-written.

    `pattern`: as in a shell, such as `step-*.pt`. `folder`: by default the job's, `$COCKPIT_CHECKPOINTS`. The latest
    one has the highest number in its name (`step-10.pt` comes after `step-9.pt`), else the latest time.
    """
    folder = folder or os.environ.get("COCKPIT_CHECKPOINTS", ".")
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return None
    # A draft's name begins with a dot.
    paths = [os.path.join(folder, name) for name in names if name[0] != "." and fnmatch.fnmatchcase(name, pattern)]
    return max(paths, key=_order, default=None)


def _order(path: str) -> Tuple[List[int], int]:
    """Return the numbers in a checkpoint's name and its time, by which the latest is the greatest."""
    numbers = [int(digits) for digits in re.findall(r"\d+", os.path.basename(path))]
    # One that was removed meanwhile is the first to be outdone.
    return (numbers, os.stat(path).st_mtime_ns) if os.path.exists(path) else ([], 0)


def _own() -> int:
    """Return this worker's replica, whose number stays the same while ranks change."""
    return int(os.environ.get("COCKPIT_REPLICA", "0"))


def _beat() -> None:
    """Show that this worker is alive; a worker that does not for the job's max_wait_time is removed."""
    if _PULSE in os.environ:
        # A full or missing file system must not end the training.
        with suppress(OSError):
            Path(os.environ[_PULSE]).touch()


class _Progress:
    """The steps of this worker, as a file beside its heartbeat has them: one line, a checksum and JSON.

    The file outlives this process, so that the next one of the worker knows where this one has ended. Each change is
    one write to the page cache: it neither waits for a disk, nor does it replace the file.
    """

    def __init__(self) -> None:
        self._fd = -1
        self._record: Dict[str, Any] = {}
        self._listed: Optional[Dict[str, Any]] = None
        self._at = 0.0

    def note(self, done: int, total: Optional[int], listed: Dict[str, Any]) -> None:
        """Record that so many steps are done. `listed`: the workers now."""
        now, record = time.monotonic(), self._record
        if not record or done < record["step"]:
            record = self._record = self._begun(done)
        # With other workers, the time has gone into the new ring.
        elif listed is self._listed:
            self._measure(len(listed["workers"]), done - record["step"], now - self._at)
        record["step"] = done
        record["total"] = record["total"] if total is None else total
        self._listed, self._at = listed, now
        self._write()

    def saved(self, done: Optional[int]) -> None:
        """Record that a checkpoint with so many steps is complete; None: those reported last."""
        if self._record:
            self._record["checkpoint"] = self._record["step"] if done is None else int(done)
            self._write()

    def _begun(self, done: int) -> Dict[str, Any]:
        """Return the record of a run that begins with so many steps, after the one before it, if any."""
        before = self._record or self._read()
        return {
            "began": done,
            "began_at": int(1000 * time.time()),  # noqa: TID251 - in the job's process, which has no other clock
            "run": before["run"] + 1 if before else 0,
            "before": before["step"] if before else None,
            "total": before.get("total"),
            "checkpoint": before.get("checkpoint"),
            "speeds": before.get("speeds", []),
        }

    def _measure(self, workers: int, steps: int, seconds: float) -> None:
        """Add to the steps and milliseconds with this number of workers."""
        others = [each for each in self._record["speeds"] if each[0] != workers]
        known = [each for each in self._record["speeds"] if each[0] == workers] or [[workers, 0, 0.0]]
        measured = [workers, known[0][1] + steps, round(known[0][2] + 1000 * seconds, 3)]
        self._record["speeds"] = [*others[1 - _MOST_SIZES :], measured]

    def _read(self) -> Dict[str, Any]:
        """Return the record that an earlier process of this worker has left; empty: none, or an unreadable one."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            checksum, _, content = os.pread(self._open(), _STEPS_BYTES, 0).partition(b"\n")[0].partition(b" ")
            record = json.loads(content) if int(checksum, 16) == binascii.crc32(content) else {}
            return {**record, "run": int(record["run"]), "step": int(record["step"])}
        return {}

    def _write(self) -> None:
        content = json.dumps(self._record).encode()
        line = b"%08x %s\n" % (binascii.crc32(content), content)
        # A full or missing file system must not end the training.
        with suppress(OSError):
            os.pwrite(self._open(), line[:_STEPS_BYTES], 0)

    def _open(self) -> int:
        if self._fd < 0:
            path = os.path.join(os.path.dirname(os.environ[_PULSE]), _STEPS)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        return self._fd


_PROGRESS = _Progress()


def _read_workers() -> Dict[str, Any]:
    if not _State.path:
        init()
    _beat()
    return _read_listed()


def _read_listed() -> Dict[str, Any]:
    """Return the workers as the file lists them. It is read again only once it is another file."""
    listed = _State.listed
    try:
        # The engine replaces the file as a whole, by a rename.
        if listed is None or listed.stamp != _stamp(os.stat(_State.path)):
            listed = _State.listed = _Listed(os.open(_State.path, os.O_RDONLY | os.O_CLOEXEC))
    # Not in an elastic job: the script runs as the only worker.
    except FileNotFoundError:
        alone = {"rank": 0, "replica": _own(), "host": os.uname().nodename, "node": "", "slots": 1}
        return {"version": 0, "min_workers": 1, "max_workers": 1, "workers": [alone], "leaving": []}
    return listed.content


def _stamp(found: os.stat_result) -> Tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _world(listed: Dict[str, Any]) -> Dict[str, Any]:
    workers = listed["workers"]
    ranks = [each["rank"] for each in workers if each["replica"] == _own()]
    return {
        "version": listed["version"],
        "size": len(workers),
        "rank": ranks[0] if ranks else None,
        "hosts": [each["host"] for each in workers],
    }


def _leaving(listed: Dict[str, Any]) -> List[int]:
    return [each["replica"] for each in listed["leaving"]]


def _watch(known: Dict[str, Any]) -> None:
    """Call the callbacks for every change, in a thread of its own, until none is left. `known`: the workers before."""
    this = threading.current_thread()
    while _State.watching is this:
        for listed in _notices():
            if listed != known and _State.watching is this:
                known = listed
                _call(_world(listed))
        # No heartbeat is sent from here: it would hide a training loop that hangs.
        time.sleep(_LOOK_SECONDS)


def _call(changed: Dict[str, Any]) -> None:
    for callback in _State.callbacks:
        try:
            callback(changed)
        except Exception:  # noqa: BLE001 - the script's own, which must not end the notices
            sys.excepthook(*sys.exc_info())


def _notices() -> Iterator[Dict[str, Any]]:
    """Yield the workers as the socket sends them until its connection ends, then once as the file lists them."""
    # An unreadable line, a missing file: the next look comes soon.
    with suppress(OSError, ValueError), _connect() as connection, connection.makefile("rb") as lines:
        for line in lines:
            yield json.loads(line)
    with suppress(OSError, ValueError):
        yield _read_listed()


def _connect() -> Any:  # noqa: ANN401 - a socket, whose module is not imported by scripts that need none
    """Return a connection to the socket that sends the workers. Raises OSError."""
    import socket

    beside = os.path.join(os.path.dirname(_State.path), _SOCKET)
    path = os.environ.get("COCKPIT_WORKERS_SOCKET", beside)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = -1
    try:
        if len(os.fsencode(path)) > _LONGEST_ADDRESS:
            folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_CLOEXEC)
            path = f"/proc/self/fd/{folder}/{os.path.basename(path)}"
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    finally:
        if folder >= 0:
            os.close(folder)
    return connection


def _writer() -> str:
    """Return the part of a draft's name that tells who writes it."""
    names = "COCKPIT_JOB_ID", "COCKPIT_ATTEMPT", "COCKPIT_REPLICA"
    return ".".join([*(os.environ.get(name, "0") for name in names), str(os.getpid())])


def _remove_orphans(folder: str) -> None:
    """Remove the drafts that earlier attempts of this job have left, whose processes are all dead."""
    job, attempt = (os.environ.get(name, "0") for name in ("COCKPIT_JOB_ID", "COCKPIT_ATTEMPT"))
    ends = re.compile(rf"\..+\.{re.escape(job)}\.(\d+)\.\d+\.\d+{re.escape(_DRAFT)}")
    # A missing folder is an error of the block, which writes to it.
    with suppress(OSError):
        for name in os.listdir(folder):
            orphan = ends.fullmatch(name)
            if orphan and attempt.isdigit() and int(orphan[1]) < int(attempt):
                _remove(os.path.join(folder, name))


def _remove(draft: str) -> None:
    with suppress(OSError):
        if os.path.isdir(draft):
            shutil.rmtree(draft)
        else:
            os.unlink(draft)


def _below(folder: str) -> List[str]:
    """Return the files and folders in a folder, without links; nothing for a file."""
    return [str(path) for path in Path(folder).rglob("*") if not path.is_symlink()]


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
