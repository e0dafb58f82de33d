-- Notices to be sent. They are written with the change that they report, and sent at least once.
-- state: 0 waiting, 1 sent, 2 given up, 3 overtaken by a later notice.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    org INTEGER NOT NULL REFERENCES orgs (id),
    channel TEXT NOT NULL,
    -- The same notice is written once, even if its change is recorded again.
    dedup TEXT NOT NULL,
    message TEXT NOT NULL,
    state INTEGER NOT NULL DEFAULT 0,
    created INTEGER NOT NULL,
    due INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    ended INTEGER,
    UNIQUE (org, channel, dedup)
) STRICT;

CREATE INDEX outbox_waiting ON outbox (org, due) WHERE state = 0;
