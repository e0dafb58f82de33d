-- Times are milliseconds since 1970. Codes of status and health are those of the program.

CREATE TABLE orgs (
    id INTEGER PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE monitors (
    id INTEGER PRIMARY KEY,
    org INTEGER NOT NULL REFERENCES orgs (id),
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    grp TEXT NOT NULL,
    kind TEXT NOT NULL,
    source TEXT NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    retired INTEGER,
    UNIQUE (org, key)
) STRICT;

-- One row per check. The key is the order in which results are read, and there is no index besides it.
CREATE TABLE results (
    monitor INTEGER NOT NULL,
    at INTEGER NOT NULL,
    region INTEGER NOT NULL,
    status INTEGER NOT NULL,
    took INTEGER NOT NULL,
    dns INTEGER,
    connect INTEGER,
    tls INTEGER,
    wait INTEGER,
    receive INTEGER,
    code INTEGER,
    certificate INTEGER,
    PRIMARY KEY (monitor, at, region)
) STRICT, WITHOUT ROWID;

-- Only of results that are not up.
CREATE TABLE details (
    monitor INTEGER NOT NULL,
    at INTEGER NOT NULL,
    region INTEGER NOT NULL,
    reason TEXT,
    conditions TEXT,
    PRIMARY KEY (monitor, at, region)
) STRICT, WITHOUT ROWID;

-- resolution: 0 minute, 1 hour, 2 day.
CREATE TABLE rollups (
    resolution INTEGER NOT NULL,
    monitor INTEGER NOT NULL,
    start INTEGER NOT NULL,
    up INTEGER NOT NULL,
    degraded INTEGER NOT NULL,
    down INTEGER NOT NULL,
    error INTEGER NOT NULL,
    took BLOB NOT NULL,
    phases BLOB NOT NULL,
    PRIMARY KEY (resolution, monitor, start)
) STRICT, WITHOUT ROWID;

-- Until when the rollups of a monitor are complete.
CREATE TABLE rolled (
    resolution INTEGER NOT NULL,
    monitor INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (resolution, monitor)
) STRICT, WITHOUT ROWID;

CREATE TABLE health (
    monitor INTEGER NOT NULL REFERENCES monitors (id),
    at INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    health INTEGER NOT NULL,
    reason TEXT,
    PRIMARY KEY (monitor, at, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE incidents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org INTEGER NOT NULL REFERENCES orgs (id),
    monitor INTEGER NOT NULL REFERENCES monitors (id),
    opened INTEGER NOT NULL,
    acknowledged INTEGER,
    resolved INTEGER,
    announced INTEGER NOT NULL DEFAULT 0,
    reason TEXT
) STRICT;

CREATE UNIQUE INDEX one_open_incident ON incidents (monitor) WHERE resolved IS NULL;

CREATE INDEX incidents_by_org ON incidents (org, id);

CREATE TABLE incident_events (
    id INTEGER PRIMARY KEY,
    incident INTEGER NOT NULL REFERENCES incidents (id),
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT,
    text TEXT
) STRICT;

CREATE INDEX events_by_incident ON incident_events (incident);
