-- Incidents that an operator declares, beside those that monitors open.
CREATE TABLE declared (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org INTEGER NOT NULL REFERENCES orgs (id),
    version INTEGER NOT NULL,
    title TEXT NOT NULL,
    phase TEXT NOT NULL,
    impact TEXT NOT NULL,
    counts INTEGER NOT NULL,
    started INTEGER NOT NULL,
    resolved INTEGER,
    changed INTEGER NOT NULL,
    -- A key by which a client may repeat its request, and the hash of what it requested.
    idempotency TEXT,
    request BLOB
) STRICT;

CREATE INDEX declared_by_org ON declared (org, id);

CREATE UNIQUE INDEX declared_by_key ON declared (org, idempotency) WHERE idempotency IS NOT NULL;

CREATE TABLE declared_updates (
    id INTEGER PRIMARY KEY,
    declared INTEGER NOT NULL REFERENCES declared (id),
    at INTEGER NOT NULL,
    phase TEXT NOT NULL,
    body TEXT NOT NULL,
    actor TEXT
) STRICT;

CREATE INDEX updates_by_declared ON declared_updates (declared);

CREATE TABLE declared_monitors (
    declared INTEGER NOT NULL REFERENCES declared (id),
    monitor INTEGER NOT NULL REFERENCES monitors (id),
    PRIMARY KEY (declared, monitor)
) STRICT, WITHOUT ROWID;

CREATE INDEX incidents_by_resolution ON incidents (org, resolved);
