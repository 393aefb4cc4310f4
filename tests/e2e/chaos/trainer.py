"""What the jobs of the chaos run execute: a training without a model, whose ledger tells what it has done.

The first worker of a ring leads: it divides each step's samples among the workers of the ring, which it meets at its
port, and enters the step into the ledger once all have answered. The ledger is saved as a whole, as a checkpoint. What
scripts are like differs; the variable HABITS says it:

    listens        notices come by the helper's socket
    sigterm        SIGTERM means the same as the notice
    saves-slowly   a checkpoint takes a second
    stays          does not end at the notice, and is killed after its grace period
    hangs          the youngest worker of the first ring stops for ever after a few steps
    fails:CODE     the youngest worker of the first ring exits with this code after a few steps

Files in the output folder:

    step-N.json    a checkpoint: the ledger, complete or absent
    result.json    the ledger of all steps
    history        a line for each step that was entered, also where a later checkpoint lacks it
    broken         a line for each promise that this process saw broken
"""

import fcntl
import json
import os
import selectors
import signal
import socket
import sys
import time
from contextlib import suppress

from cockpit import elastic

STEPS, SAMPLES, GLOBAL_BATCH = int(os.environ["STEPS"]), 24, 6
HABITS = os.environ["HABITS"].split(",")
PAUSE = float(os.environ["PAUSE"])  # of a step, in seconds
OUTPUTS = os.environ["COCKPIT_CHECKPOINTS"]
REPLICA, ATTEMPT = int(os.environ["COCKPIT_REPLICA"]), int(os.environ["COCKPIT_ATTEMPT"])
PORT = 21000 + int(os.environ["COCKPIT_JOB_ID"]) % 10000
RESULT = os.path.join(OUTPUTS, "result.json")
MISCHIEF_STEP = 4
EACH_SAVE = 6
PATIENCE = 3.0  # seconds, in which another worker answers
asked = []  # by SIGTERM
changes = []  # by the socket


class Over(Exception):
    """The ring has changed, or one of its workers does not answer."""


def habit(name):
    return next((each.partition(":")[2] or "yes" for each in HABITS if each.partition(":")[0] == name), "")


def note(name, **words):
    line = json.dumps({"attempt": ATTEMPT, "replica": REPLICA, **words}) + "\n"
    descriptor = os.open(os.path.join(OUTPUTS, name), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(descriptor, line.encode())  # in one piece, behind what others have written
    os.close(descriptor)


def lock(name, how):
    """Return a descriptor with that lock; None: another process has it."""
    descriptor = os.open(os.path.join(OUTPUTS, f".lock-{name}"), os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def check_that_nobody_else_runs():
    """Each process holds the lock of its replica as long as it lives."""
    if lock("replica-%d-%d" % (ATTEMPT, REPLICA), fcntl.LOCK_EX) is None:
        note("broken", what="another process of this replica runs")
    for name in os.listdir(OUTPUTS):
        other = name.partition(".lock-")[2]
        if other.startswith("replica-") and int(other.split("-")[1]) != ATTEMPT:
            found = lock(other, fcntl.LOCK_SH)
            if found is None:
                note("broken", what="%s of another attempt still runs" % other)
            else:
                os.close(found)


def ends():
    """Return whether this worker has to end: it asks that between two steps, and while it waits."""
    return (not elastic.check_alive() or bool(asked)) and not habit("stays")


def leave():
    note("exits", why="notice")
    os._exit(255)


class Ledger:
    def __init__(self):
        path = elastic.latest_checkpoint("step-*.json", OUTPUTS)
        self.steps = []
        if path is not None:
            with open(path) as stream:
                self.steps = json.load(stream)
        self.saved = len(self.steps)

    def samples(self):
        """Return the samples of the next step. Every sample comes once in an epoch."""
        epoch, step = divmod(len(self.steps), SAMPLES // GLOBAL_BATCH)
        order = sorted(range(SAMPLES), key=lambda sample: (sample * 7 + epoch * 5) % SAMPLES)
        return order[step * GLOBAL_BATCH : (step + 1) * GLOBAL_BATCH]

    def enter(self, samples, version, size):
        entry = {"samples": samples, "version": version, "size": size, "attempt": ATTEMPT, "leader": REPLICA}
        self.steps.append(entry)
        note("history", step=len(self.steps), version=version, size=size)

    def save(self, path=None):
        if len(self.steps) == self.saved and path is None:
            return
        self.saved = len(self.steps)
        with elastic.save(path or os.path.join(OUTPUTS, "step-%d.json" % self.saved)) as draft:
            with open(draft, "w") as stream:
                json.dump(self.steps, stream)
            if habit("saves-slowly"):
                time.sleep(1)


def changed(world):
    return elastic.world()["hosts"] != world["hosts"]


def check_ring(world):
    """Raise Over if another ring is to be formed; end if this worker has to."""
    if os.path.exists(RESULT):
        os._exit(0)
    if ends():
        leave()
    if changed(world):
        raise Over("the world has changed")


def send(connection, message):
    connection.sendall(json.dumps(message).encode() + b"\n")


class Lines:
    """The messages of a connection, of which none is waited for."""

    def __init__(self, connection):
        self.connection, self.rest = connection, b""

    def receive(self):
        """Return the next message, None while there is none. Raises Over at the end."""
        if b"\n" not in self.rest:
            try:
                more = self.connection.recv(65536)
            except (BlockingIOError, socket.timeout):
                return None
            if not more:
                raise Over("the other end has closed")
            self.rest += more
        line, found, rest = self.rest.partition(b"\n")
        if not found:
            return None
        self.rest = rest
        return json.loads(line)


def mischief(world, step):
    """Hang or fail, once in the life of the job."""
    if step < MISCHIEF_STEP or not (habit("hangs") or habit("fails")):
        return
    if world["size"] > 1 and world["rank"] != world["size"] - 1:
        return
    once = os.path.join(OUTPUTS, ".mischief")
    with suppress(FileExistsError):
        os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        note("exits", why="mischief")
        if habit("fails"):
            os._exit(int(habit("fails")))
        while True:
            time.sleep(1000)


def step_time():
    until = time.monotonic() + PAUSE
    while time.monotonic() < until:
        time.sleep(min(0.05, PAUSE))


def follow(world):
    lines = Lines(join(world))
    silent_since = time.monotonic()
    while True:
        message = lines.receive()
        if message is None:
            if time.monotonic() - silent_since > 2 * PATIENCE:
                raise Over("the leader is silent")
            check_ring(world)
            continue
        silent_since = time.monotonic()
        mischief(world, message["step"])
        step_time()
        send(lines.connection, {"step": message["step"], "samples": message["samples"]})
        check_ring(world)


def join(world):
    """Return a connection to the leader, once it takes this worker."""
    while True:
        check_ring(world)
        try:
            connection = socket.create_connection((world["hosts"][0], PORT), timeout=0.5)
            connection.settimeout(0.1)
            send(connection, {"rank": world["rank"], "hosts": world["hosts"]})
        except OSError:
            time.sleep(0.1)
        else:
            return connection


def lead(world):
    while (held := lock("ledger", fcntl.LOCK_EX)) is None:  # the last leader may still be saving
        check_ring(world)
        time.sleep(0.05)
    ledger = Ledger()
    try:
        with socket.create_server(("", PORT), reuse_port=False) as server:
            members = meet(server, world)
            try:
                train(ledger, world, members)
            finally:
                for each in members.values():
                    each.connection.close()
    finally:
        os.close(held)


def meet(server, world):
    """Return the connections of the other workers by rank, once all are there."""
    members = {}
    server.settimeout(0.1)
    while len(members) < world["size"] - 1:
        try:
            connection, _ = server.accept()
        except (socket.timeout, OSError):
            check_ring(world)
            continue
        connection.settimeout(PATIENCE)
        with suppress(OSError, Over, ValueError):
            hello = Lines(connection).receive()
            if hello and hello["hosts"] == world["hosts"]:
                members[hello["rank"]] = Lines(connection)
                continue
        connection.close()
    for each in members.values():
        each.connection.setblocking(False)
    return members


def train(ledger, world, members):
    while len(ledger.steps) < STEPS:
        samples = ledger.samples()
        for rank, each in members.items():
            send(each.connection, {"step": len(ledger.steps), "samples": samples[rank :: world["size"]]})
        mischief(world, len(ledger.steps))
        step_time()
        done = samples[:: world["size"]] + collect(members, len(ledger.steps), world)
        ledger.enter(sorted(done), world["version"], world["size"])
        over = ends()
        if over or elastic.checkpoint_requested() or changed(world) or len(ledger.steps) % EACH_SAVE == 0:
            ledger.save()
        if over:
            leave()
        if changed(world):
            raise Over("the world has changed")
    ledger.save()
    ledger.save(RESULT)


def collect(members, step, world):
    """Return the samples that the others have used."""
    waiting, used = dict(members), []
    until = time.monotonic() + PATIENCE
    with selectors.DefaultSelector() as selector:
        for rank, each in members.items():
            selector.register(each.connection, selectors.EVENT_READ, rank)
        while waiting:
            for key, _ in selector.select(0.1):
                answer = members[key.data].receive()
                if answer is not None and answer["step"] == step:
                    used += answer["samples"]
                    waiting.pop(key.data, None)
            if waiting and (time.monotonic() > until or (changed(world) and habit("listens"))):
                raise Over("ranks %s do not answer" % sorted(waiting))
            elastic.check_alive()  # the heartbeat
    return used


def check_names(world):
    """Every worker of the world is reachable by its name: whoever leads next needs that."""
    for host in world["hosts"] if world["size"] > 1 else ():
        try:
            socket.gethostbyname(host)
        except OSError as error:
            note("broken", what="%s has no address: %s" % (host, error))


def main():
    elastic.init()
    if habit("sigterm"):
        signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    if habit("listens"):
        elastic.on_change(changes.append)
    check_that_nobody_else_runs()
    note("starts", resume=os.environ.get("COCKPIT_RESUME"))
    while not os.path.exists(RESULT):
        if ends():
            leave()
        world = elastic.world()
        if world["rank"] is None:  # it stays although it has to end
            time.sleep(0.1)
            continue
        check_names(world)
        try:
            lead(world) if world["rank"] == 0 else follow(world)
        except (Over, OSError) as error:
            print("ring of version", world["version"], "is over:", error, file=sys.stderr, flush=True)
            time.sleep(0.05)
    note("exits", why="done")


main()
