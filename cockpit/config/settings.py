"""Defines every setting: its name in config.toml, type, default and meaning. A new setting is added only here."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from cockpit.config.members import ASKED_SECONDS, PATIENCE_SECONDS, Member, Members
from cockpit.formats.kinds import Choice, Flag, ListOf, Path, Reading, Schema, Text, described
from cockpit.formats.measures import Checked, address_error, duration, memory, whole
from cockpit.formats.tables import Field, Table
from cockpit.model.access_level import AccessLevel
from cockpit.model.alerts import AlertKind
from cockpit.model.outside import Provider, SmtpTls
from cockpit.model.rules.bounds import GRACE_SECONDS, TIME_LIMIT_SECONDS, WINDOW_SECONDS, Bounds
from cockpit.model.rules.spec import label_error
from cockpit.model.spec import DAY_SECONDS, DEFAULT_GRACE_SECONDS
from cockpit.model.text import visible
from cockpit.sched.policy import FractionFit

MOST_MEMBERS = 100


class Keys:
    """`cancel = "D"`, `help = ["?", "F1"]`; an empty list takes an action its key."""

    stand_in: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def read(self, value: object, at: str, reading: Reading) -> Mapping[str, tuple[str, ...]]:
        if not isinstance(value, dict):
            reading.wrong(at, f'is {described(value)}; write a table [keys] with lines such as cancel = "D"')
            return self.stand_in
        return {name: self._keys(item, f"{at}.{visible(name)}", reading) for name, item in value.items()}

    def write(self, value: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
        return {name: list(keys) for name, keys in value.items()}

    def schema(self) -> Schema:
        key = {"type": "string", "minLength": 1}
        return {"type": "object", "additionalProperties": {"anyOf": [key, {"type": "array", "items": key}]}}

    def _keys(self, value: object, at: str, reading: Reading) -> tuple[str, ...]:
        # A single key needs no list around it.
        given = value if isinstance(value, list) else [value]
        if all(isinstance(key, str) and key for key in given):
            return tuple(given)
        reading.wrong(at, f'is {described(value)}; write a key such as "x" or "Ctrl-x", or a list of them')
        return ()


HOUR_SECONDS = 3600
HISTORY_SECONDS = Bounds(0, 36_600 * DAY_SECONDS, " s")
# Not shorter than a day, since the engine tidies once a day.
LOGS_SECONDS = Bounds(DAY_SECONDS, 36_600 * DAY_SECONDS, " s")
# The upper bound is the kernel's own (proc(5), pid_max).
PIDS = Bounds(16, 1 << 22)
PORTS = Bounds(1, 65_535)
PATROL_SECONDS = Bounds(1, DAY_SECONDS, " s")
ASK_SECONDS = Bounds(1, 60, " s")
SESSIONS = Bounds(1, 10_000)
IDLE_SECONDS = Bounds(1, 30 * DAY_SECONDS, " s")
DRAIN_SECONDS = Bounds(0, DAY_SECONDS, " s")


def split_address(text: str) -> tuple[str, int]:
    """Return host and port of an address such as `127.0.0.1:8022`, `[::1]:8022` or `:8022`. Raises `ValueError`."""
    host, colon, port = text.rpartition(":")
    if not colon or not (port.isascii() and port.isdecimal()) or int(port) > PORTS.high:
        raise ValueError(text)
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if ":" in bare and bare == host:  # an IPv6 address without its brackets, of which the last part may be no port
        raise ValueError(text)
    return bare, int(port)


def listen_error(text: str) -> str | None:
    """Return what is wrong with an address to listen at; None: nothing."""
    try:
        split_address(text)
    except ValueError:
        return "is no address with a port, such as 127.0.0.1:8022 or [::1]:8022"
    return None


def _command_line_error(text: str) -> str | None:
    try:
        shlex.split(text)
    except ValueError as error:
        return f"is no command line: {error}"
    return None


def web_error(text: str) -> str | None:
    """Return what is wrong with an address to listen at that may be empty; None: nothing."""
    return listen_error(text) if text else None


def source_error(text: str) -> str | None:
    """Return what is wrong with an absolute path or the address of a service; None: nothing, or it is empty."""
    if not text or text.startswith("/"):
        return None
    return address_error(text) and "is neither an absolute path nor an address such as http://127.0.0.1:8080/prices"


EVERY_KIND = "all"
MAIL_KINDS = "performance fault suspended waiting exhausted"
"""What an owner has to know or to act upon; nodes that come and go under an elastic job are its usual life."""


def alert_kinds(text: str) -> frozenset[AlertKind]:
    """Return the kinds of alerts that a setting names. Raises `ValueError` for a word that is no kind."""
    words = text.split()
    return frozenset(AlertKind) if EVERY_KIND in words else frozenset(map(AlertKind, words))


def _alert_kinds_error(text: str) -> str | None:
    known = {EVERY_KIND, *AlertKind}
    wrong = [each for each in text.split() if each not in known]
    return (
        f"{visible(wrong[0])} is no kind of alert; write {EVERY_KIND}, or some of {' '.join(AlertKind)}"
        if wrong
        else None
    )


def _alert_url_error(text: str) -> str | None:
    if text and "{job}" not in text:
        return "has no {job}, in place of which the job's id is put"
    return address_error(text)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an engine and its user interfaces, merged from all layers. An empty text means: not set."""

    cluster: str = ""
    state_folder: str = ""
    admin_group: str = ""
    hold_window_seconds: int = 4 * HOUR_SECONDS
    time_limit_seconds: int = DAY_SECONDS
    grace_seconds: int = DEFAULT_GRACE_SECONDS
    keep_history_seconds: int = 90 * DAY_SECONDS
    keep_logs_seconds: int = 365 * DAY_SECONDS
    log_limit_mib: int = 1024
    pids_limit: int = 4096
    scratch_mib: int = 1024
    plain_processes: bool = True
    podman_containers: bool = True
    unfiltered_images: str = ""
    patrol_seconds: int = 30
    # -t: the receiver is in the mail's header.
    alert_mail: str = "/usr/sbin/sendmail -t"
    alert_command: str = ""
    alert_webhook: str = ""
    alert_webhook_secret: str = ""
    alert_smtp_host: str = ""
    alert_smtp_port: int = 587
    alert_smtp_tls: SmtpTls = SmtpTls.STARTTLS
    alert_smtp_login: str = ""
    alert_from: str = ""
    alert_mail_kinds: str = MAIL_KINDS
    alert_webhook_kinds: str = EVERY_KIND
    alert_command_kinds: str = EVERY_KIND
    alert_url: str = ""
    alert_per_job_seconds: int = 600
    alert_per_hour: int = 60
    spot_provider: Provider = Provider.NONE
    spot_address: str = ""
    spot_resource: str = ""
    spot_file: str = ""
    spot_seconds: int = 5
    spot_patience_seconds: int = 2
    price_source: str = ""
    price_seconds: int = 60
    price_patience_seconds: int = 5
    fraction_fit: FractionFit = FractionFit.BEST
    invariants: bool = False
    theme: str = ""
    ascii: bool = False
    read_only: bool = False
    ask_every_seconds: int = 10
    patience_seconds: int = 30
    act_patience_seconds: int = 60
    serve_listen: str = "127.0.0.1:8022"
    serve_authorized_keys: str = ""
    serve_host_key: str = ""
    serve_access: AccessLevel = AccessLevel.OWN
    serve_sessions: int = 100
    serve_sessions_per_user: int = 20
    serve_idle_seconds: int = HOUR_SECONDS
    serve_drain_seconds: int = 0
    serve_web: str = ""
    serve_tls_certificate: str = ""
    serve_tls_key: str = ""
    keys: Mapping[str, tuple[str, ...]] = {}
    fleet: tuple[str, ...] = ()
    clusters: Mapping[str, Member] = {}


SETTINGS = Table(
    Settings,
    [
        Field(
            "cluster",
            Checked(Text(), label_error),
            "The cluster that commands and the cockpit open, unless `-c` names one.",
        ),
        Field(
            "state_folder",
            Path(),
            "Where the engine keeps its journal and its containers, on a local disk; by default "
            "`$XDG_STATE_HOME/cockpit-cluster`, for the system engine `/var/lib/cockpit-cluster`.",
        ),
        Field(
            "admin_group",
            Checked(Text(), label_error),
            "A group of the system whose members administer the machine-wide engine, as root does.",
        ),
        Field(
            "hold_window",
            duration(WINDOW_SECONDS),
            "How long a failed container is held, unless the job says.",
            attribute="hold_window_seconds",
        ),
        Field(
            "time_limit",
            duration(TIME_LIMIT_SECONDS),
            "The time limit of a job that names none.",
            attribute="time_limit_seconds",
        ),
        Field(
            "grace_period",
            duration(GRACE_SECONDS),
            "Time between the request to end and the kill, for a job that names none.",
            attribute="grace_seconds",
        ),
        Field(
            "keep_history",
            duration(HISTORY_SECONDS),
            "How long events stay in the journal before they are archived to files.",
            attribute="keep_history_seconds",
        ),
        Field(
            "keep_logs",
            duration(LOGS_SECONDS),
            "How long the logs of an ended job stay after they were last written to; `cockpit delete` removes "
            "them at once.",
            attribute="keep_logs_seconds",
        ),
        Field(
            "log_limit",
            memory(),
            "What each log of a replica may take of the disk, its output and its errors apart: of a longer one "
            "the [head and the tail](life.md#logs) are kept.",
            attribute="log_limit_mib",
        ),
        Field("pids_limit", whole(PIDS), "Processes and threads in one container."),
        Field(
            "scratch_size",
            memory(),
            "The size of a container's own `/tmp`, which is held in memory.",
            attribute="scratch_mib",
        ),
        Field(
            "plain_processes",
            Flag(),
            "Run jobs as plain processes where this machine refuses your engine containers; `false`: such jobs "
            "fail, with the reason. The system engine never does so.",
        ),
        Field(
            "podman_containers",
            Flag(),
            "Let podman make the containers of images that it has, where your engine is root's; `false`: such "
            "images are copied once, and cockpit makes their containers too.",
        ),
        Field(
            "unfiltered_images",
            Checked(Text(), _command_line_error),
            "Images, separated by spaces, whose jobs may make [every system call](machine.md#system-calls): the "
            "names or `dir:` and `tar:` paths that jobs have, `host` for jobs without an image, `*` for all jobs.",
        ),
        Field(
            "patrol_period",
            duration(PATROL_SECONDS),
            "How often nodes on which jobs with `resume` run are checked: network interfaces, cards, and "
            "whether they answer.",
            attribute="patrol_seconds",
        ),
        Field(
            "alert_mail",
            Checked(Text(), _command_line_error),
            "The program that sends the mail of [alerts](life.md#alerts); an empty text: no mail is sent.",
        ),
        Field(
            "alert_command",
            Checked(Text(), _command_line_error),
            "A program that gets a line of JSON for each [alert](life.md#alerts) on its standard input.",
        ),
        Field(
            "alert_webhook",
            Checked(Text(), address_error),
            "An address that gets a JSON object for each [alert](life.md#alerts) by POST.",
        ),
        Field(
            "alert_webhook_secret",
            Path(),
            "The file with the secret that signs these requests; only its owner may read it.",
        ),
        Field(
            "alert_smtp_host",
            Checked(Text(), label_error),
            "The mail server that takes the mail of alerts, in place of `alert_mail`.",
        ),
        Field("alert_smtp_port", whole(PORTS), "Its port."),
        Field(
            "alert_smtp_tls",
            Choice(SmtpTls),
            "How it is reached: `starttls`, `tls` from the first byte on (port 465), or `none`.",
        ),
        Field(
            "alert_smtp_login",
            Path(),
            "The file with its user and, on the second line, the password; only its owner may read it.",
        ),
        Field(
            "alert_from",
            Checked(Text(), label_error),
            "The sender of this mail; by default `cockpit@` and the name of this machine.",
        ),
        Field(
            "alert_mail_kinds",
            Checked(Text(), _alert_kinds_error),
            "The [kinds of alerts](life.md#alerts) that owners get by mail, separated by spaces: `all`, or an empty "
            "text for none.",
        ),
        Field("alert_webhook_kinds", Checked(Text(), _alert_kinds_error), "The kinds that the webhook gets."),
        Field("alert_command_kinds", Checked(Text(), _alert_kinds_error), "The kinds that the command gets."),
        Field(
            "alert_url",
            Checked(Text(), _alert_url_error),
            "A web address of a job for alerts, such as `https://lab.example.org/jobs/{job}`.",
        ),
        Field(
            "alert_per_job",
            duration(HISTORY_SECONDS),
            "The shortest time between two alerts of one kind about one job, in cockpits too.",
            attribute="alert_per_job_seconds",
        ),
        Field(
            "alert_per_hour",
            whole(Bounds(1, 100_000)),
            "The largest number of alerts that are sent in an hour, about all jobs.",
        ),
        Field(
            "spot_provider",
            Choice(Provider),
            "Whose [notices](scheduling.md#spot-nodes) reclaim spot nodes: `aws`, `gcp`, `azure` or "
            "`alibaba`; an empty text: no metadata address is asked.",
        ),
        Field(
            "spot_address",
            Checked(Text(), address_error),
            "The base address of this machine's notices, such as `http://127.0.0.1:8080`; by default the "
            "provider's own.",
        ),
        Field(
            "spot_resource",
            Text(),
            "This machine's id or name at its provider, where [nodes](scheduling.md#spot-nodes) are of several "
            "machines; Azure's notices name it.",
        ),
        Field("spot_file", Path(), "A file that is watched for notices: a line `n07 300` for each node."),
        Field(
            "spot_period",
            duration(PATROL_SECONDS),
            "How often the address is asked and the file is read.",
            attribute="spot_seconds",
        ),
        Field(
            "spot_patience",
            duration(ASK_SECONDS),
            "The longest wait for an answer of the address.",
            attribute="spot_patience_seconds",
        ),
        Field(
            "price_source",
            Checked(Text(), source_error),
            "A file, or an `http://` or `https://` address, with the nodes' "
            "[present prices](scheduling.md#spot-nodes); by default their labels count.",
        ),
        Field("price_period", duration(PATROL_SECONDS), "How often prices are asked for.", attribute="price_seconds"),
        Field(
            "price_patience",
            duration(ASK_SECONDS),
            "The longest wait for an answer with prices.",
            attribute="price_patience_seconds",
        ),
        Field(
            "fraction_fit",
            Choice(FractionFit),
            "Where a share of a card goes: `best` (the fullest card that fits) or `fgd` (least fragmentation).",
        ),
        Field(
            "invariants", Flag(), "Check the whole state after every event: slow, for finding faults in cockpit itself."
        ),
        Field(
            "theme",
            Checked(Text(), label_error),
            "The cockpit's colours: `dark`, `light`, `high-contrast`, `deuteranopia`, `tritanopia`, "
            "`ansi` (the terminal's own), or one of your own.",
        ),
        Field("ascii", Flag(), "Draw the cockpit with ASCII signs alone, as it does where the locale is not UTF-8."),
        Field("read_only", Flag(), "Let the cockpit show everything and change nothing."),
        Field(
            "ask_every",
            duration(ASKED_SECONDS),
            "How often a Slurm cluster is asked for its jobs at most; for everything else as much less often as "
            "by default, and for all of it less often where it is slow to answer.",
            attribute="ask_every_seconds",
        ),
        Field(
            "patience",
            duration(PATIENCE_SECONDS),
            "The longest wait for an answer of a Slurm cluster.",
            attribute="patience_seconds",
        ),
        Field(
            "act_patience",
            duration(PATIENCE_SECONDS),
            "How long the engine's answer to a change (`submit`, `cancel` …) is waited for; the request is sent "
            "again meanwhile, and happens once.",
            attribute="act_patience_seconds",
        ),
        Field(
            "serve_listen",
            Checked(Text(), listen_error),
            "Where [`cockpit serve`](serve.md) listens: an address of this machine and a port.",
        ),
        Field(
            "serve_authorized_keys",
            Path(),
            "The [file with the keys](serve.md#keys) that may log in there; by default each user's own "
            "`~/.ssh/authorized_keys`.",
        ),
        Field(
            "serve_host_key",
            Path(),
            "The file with the server's own key, which is made at the first start; by default "
            "`serve/ssh_host_ed25519_key` in the state folder.",
        ),
        Field(
            "serve_access",
            Choice(AccessLevel),
            "The [access level](serve.md#access-levels) of keys that name none: `read`, `own` or `admin`.",
        ),
        Field("serve_sessions", whole(SESSIONS), "The largest number of sessions that are open there at once."),
        Field("serve_sessions_per_user", whole(SESSIONS), "How many of them one user may have."),
        Field(
            "serve_idle",
            duration(IDLE_SECONDS),
            "How long a terminal there may be without a key before its session is closed.",
            attribute="serve_idle_seconds",
        ),
        Field(
            "serve_drain",
            duration(DRAIN_SECONDS),
            "How long a stop of the server waits for open sessions to end by themselves.",
            attribute="serve_drain_seconds",
        ),
        Field(
            "serve_web",
            Checked(Text(), web_error),
            "Where it serves [browsers](serve.md#in-a-browser), such as `127.0.0.1:8023`; an empty text: nowhere.",
        ),
        Field("serve_tls_certificate", Path(), "The certificate of the web server."),
        Field("serve_tls_key", Path(), "The certificate's private key, where that is another file."),
        Field("keys", Keys(), "A table of the cockpit's actions with your own keys."),
        Field(
            "fleet",
            ListOf(Checked(Text(), label_error), MOST_MEMBERS),
            "The clusters of `[clusters]` that the engine has under one queue, as the members of a fleet. Its own "
            "machine then runs no jobs.",
        ),
        Field("clusters", Members(), "A table of the clusters that you use: your name of each, and its address."),
    ],
)


def variable(setting: Field) -> str:
    """Return the name of a setting's environment variable."""
    return f"COCKPIT_{setting.name.upper()}"


def default_text(setting: Field) -> str:
    """Return a setting's default as it would be written in config.toml; empty where there is none."""
    # TOML writes true where Python writes True.
    default = setting.kind.write(getattr(SETTINGS.stand_in, setting.attribute))
    if isinstance(default, bool):
        return str(default).lower()
    return str(default) if default else ""
