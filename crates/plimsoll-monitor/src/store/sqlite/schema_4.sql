-- What operators define beside the configuration file: monitors, maintenance, pages and channels, in TOML.
CREATE TABLE definitions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org_id INTEGER NOT NULL DEFAULT 1 REFERENCES orgs (id),
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    text TEXT NOT NULL,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    actor TEXT,
    UNIQUE (org_id, kind, key)
) STRICT;

-- Responses to requests that a client may repeat by their key, with the hash of the request.
CREATE TABLE replays (
    org_id INTEGER NOT NULL DEFAULT 1 REFERENCES orgs (id),
    key TEXT NOT NULL,
    request BLOB NOT NULL,
    answer TEXT NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (org_id, key)
) STRICT, WITHOUT ROWID;

CREATE TABLE users (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org_id INTEGER NOT NULL DEFAULT 1 REFERENCES orgs (id),
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    -- Argon2id in the PHC string format.
    password TEXT NOT NULL,
    must_change INTEGER NOT NULL DEFAULT 0,
    -- The secret of RFC 6238, and the last time step that was used, so that a code is valid once.
    totp BLOB,
    totp_step INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    seen INTEGER,
    UNIQUE (org_id, name)
) STRICT;

CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org_id INTEGER NOT NULL DEFAULT 1 REFERENCES orgs (id),
    user INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    -- The SHA-256 of the cookie.
    hash BLOB NOT NULL UNIQUE,
    created INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    until INTEGER NOT NULL,
    address TEXT NOT NULL,
    agent TEXT NOT NULL
) STRICT;

CREATE INDEX sessions_by_user ON sessions (user);

CREATE TABLE api_tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org_id INTEGER NOT NULL DEFAULT 1 REFERENCES orgs (id),
    name TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    created INTEGER NOT NULL,
    creator TEXT,
    until INTEGER,
    revoked INTEGER
) STRICT;

CREATE TABLE audit (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org_id INTEGER NOT NULL DEFAULT 1 REFERENCES orgs (id),
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    address TEXT NOT NULL,
    action TEXT NOT NULL,
    object TEXT NOT NULL,
    detail TEXT
) STRICT;

CREATE INDEX audit_by_org ON audit (org_id, id);
