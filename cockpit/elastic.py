"""For training scripts: is this worker being taken away, should a checkpoint be saved, who are the others now?

    import cockpit.elastic as elastic        # or, as a drop-in: import kubeai.elastic as kubeai

    elastic.init()
    for batch in batches:
        if not elastic.check_alive():
            with elastic.save("/workspace/outputs/step-40.pt") as path:
                torch.save(state, path)
            sys.exit(-1)

Every container has it, by both names. Standard library only; imports nothing of cockpit. Outside of an
elastic job nothing is ever taken away, and the world is this process alone.
"""

from __future__ import annotations

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
def save(path: Union[str, os.PathLike[str]]) -> Iterator[str]:
    """Write a checkpoint that is either complete or does not exist: `with save(path) as draft: torch.save(…, draft)`.

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
