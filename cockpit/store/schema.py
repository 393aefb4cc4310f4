"""The journal's tables, as a list of migrations.

Never edit a released migration: append a new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cockpit.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    import aiosqlite

_FIRST = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    origin TEXT NOT NULL,
    request TEXT NOT NULL,
    type TEXT NOT NULL,
    version INTEGER NOT NULL,
    job INTEGER,
    body TEXT NOT NULL
);
CREATE INDEX events_by_job ON events (job) WHERE job IS NOT NULL;

CREATE TABLE archives (
    first_seq INTEGER PRIMARY KEY,
    last_seq INTEGER NOT NULL,
    file TEXT NOT NULL,
    created_at INTEGER NOT NULL
);

CREATE TRIGGER events_have_no_gaps BEFORE INSERT ON events
WHEN NEW.seq IS NOT 1 + coalesce((SELECT max(seq) FROM events), (SELECT max(last_seq) FROM archives), 0)
BEGIN SELECT raise(ABORT, 'events are numbered without gaps'); END;

CREATE TRIGGER events_are_never_edited BEFORE UPDATE ON events
BEGIN SELECT raise(ABORT, 'events are never edited'); END;

CREATE TRIGGER events_are_archived_before_they_go BEFORE DELETE ON events
WHEN OLD.seq > coalesce((SELECT max(last_seq) FROM archives), 0)
BEGIN SELECT raise(ABORT, 'events are never deleted before they are archived'); END;

CREATE TABLE answers (
    request TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    answer BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX answers_by_age ON answers (at);

CREATE TABLE snapshots (
    seq INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    state BLOB NOT NULL
);

CREATE TABLE ended_jobs (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    user TEXT NOT NULL,
    uid INTEGER NOT NULL,
    project TEXT NOT NULL,
    state TEXT NOT NULL,
    end_cause TEXT,
    submitted_at INTEGER NOT NULL,
    started_at INTEGER,
    ended_at INTEGER NOT NULL,
    exit_code INTEGER,
    nodes INTEGER NOT NULL,
    cpus INTEGER NOT NULL,
    memory_mib INTEGER NOT NULL,
    card_milli INTEGER NOT NULL,
    job TEXT NOT NULL
);
CREATE INDEX ended_jobs_by_end ON ended_jobs (ended_at);
CREATE INDEX ended_jobs_by_user ON ended_jobs (user, ended_at);

CREATE TABLE probe (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    filler BLOB NOT NULL
);
"""

_SPANS = """
CREATE TABLE spans (
    job INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    user TEXT NOT NULL,
    account TEXT NOT NULL,
    project TEXT NOT NULL,
    qos TEXT NOT NULL,
    from_at INTEGER NOT NULL,
    until_at INTEGER NOT NULL,
    cpus INTEGER NOT NULL,
    card_milli INTEGER NOT NULL,
    PRIMARY KEY (job, attempt)
) WITHOUT ROWID;
CREATE INDEX spans_by_end ON spans (until_at);

INSERT INTO spans
SELECT id, json_extract(job, '$.attempt.number'), user, coalesce(json_extract(job, '$.account'), ''), project,
    coalesce(json_extract(job, '$.qos'), ''), coalesce(started_at, json_extract(job, '$.attempt.placed_at')), ended_at,
    cpus, card_milli
FROM ended_jobs WHERE json_extract(job, '$.attempt.number') IS NOT NULL;

INSERT OR IGNORE INTO spans
SELECT old.id, json_extract(one.value, '$.number'), old.user, coalesce(json_extract(old.job, '$.account'), ''),
    old.project, coalesce(json_extract(old.job, '$.qos'), ''),
    coalesce((SELECT min(json_extract(part.value, '$.started_at')) FROM json_each(one.value, '$.replicas') AS part),
        json_extract(one.value, '$.placed_at')),
    coalesce(json_extract(one.value, '$.ended_at'), json_extract(one.value, '$.placed_at')),
    (SELECT coalesce(sum(json_extract(part.value, '$.cpus')), 0) FROM json_each(one.value, '$.placement') AS part),
    (SELECT coalesce(sum(json_extract(slice.value, '$.milli')), 0)
        FROM json_each(one.value, '$.placement') AS part, json_each(part.value, '$.slices') AS slice)
FROM ended_jobs AS old, json_each(old.job, '$.earlier') AS one;
"""
"""The resources that each attempt of an ended job occupied, for sums over time. Filled from the jobs stored so far."""

_CHECKED = """
ALTER TABLE events ADD COLUMN checksum BLOB;

ALTER TABLE answers ADD COLUMN op TEXT NOT NULL DEFAULT '';
ALTER TABLE answers ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
ALTER TABLE answers ADD COLUMN refused INTEGER NOT NULL DEFAULT 0;
CREATE INDEX answers_refused ON answers (at) WHERE refused;
CREATE INDEX submissions_by_request ON events (request) WHERE type = 'job_submitted' AND request != '';
"""
"""A checksum for each event (NULL in older ones); for each answer its operation, a digest of the request, and whether
it is a refusal."""

_PROMISES = """
CREATE TABLE promised_starts (
    job INTEGER PRIMARY KEY,
    promise TEXT NOT NULL
);
"""
"""The latest starts that users were shown for queued jobs. They are no events, since no decision depends on them."""

_CHECKED_RECORDS = """
ALTER TABLE answers ADD COLUMN checksum BLOB;
ALTER TABLE ended_jobs ADD COLUMN checksum BLOB;
"""
"""A checksum for each answer to a request and each record of an ended job (NULL in older ones)."""

_CHECKED_REST = """
ALTER TABLE spans ADD COLUMN checksum BLOB;
ALTER TABLE promised_starts ADD COLUMN checksum BLOB;
ALTER TABLE snapshots ADD COLUMN row_checksum BLOB;
ALTER TABLE archives ADD COLUMN checksum BLOB;
"""
"""A checksum for each span, promised start and archive file's name, and for the other columns of a snapshot, whose
`checksum` covers the state alone (NULL in older ones)."""

_ABOVE_MIN = """
ALTER TABLE spans ADD COLUMN above_min_card_milli INTEGER;
"""
"""What elastic jobs had above their least number of workers (NULL in older rows, whose checksums lack it)."""

MIGRATIONS: tuple[str, ...] = (_FIRST, _SPANS, _CHECKED, _PROMISES, _CHECKED_RECORDS, _CHECKED_REST, _ABOVE_MIN)
"""The migrations in order: `MIGRATIONS[n]` changes a store of version n to version n + 1."""

SCHEMA_VERSION = len(MIGRATIONS)


async def version_of(connection: aiosqlite.Connection, file: Path) -> int:
    """Return the schema version of the file, 0 for a new one.

    Raises `StoreError` if a newer cockpit wrote the file, or another program.
    """
    version = await _number(connection, "PRAGMA user_version")
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{file} was written by a newer cockpit (store version {version}; this one knows {SCHEMA_VERSION}). "
            "Nothing was changed. Start that newer version, or set another `state_folder` (COCKPIT_STATE_FOLDER)."
        )
    if version == 0 and await _number(connection, "SELECT count(*) FROM sqlite_schema"):
        raise StoreError(f"{file} is a database, but not a cockpit journal. Nothing was changed. Move it elsewhere.")
    return version


async def migrate(connection: aiosqlite.Connection, version: int) -> None:
    """Migrate a store from `version` to the current schema, with a transaction for each step."""
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        await connection.executescript(
            f"PRAGMA synchronous=FULL; BEGIN IMMEDIATE; {script}; PRAGMA user_version={number}; COMMIT;"
        )


async def _number(connection: aiosqlite.Connection, sql: str) -> int:
    rows = list(await connection.execute_fetchall(sql))
    return int(rows[0][0])
