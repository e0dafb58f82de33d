-- What lets a process go on where another one ended.

-- The name under which receivers know an incident, for ever: that of its first notice if it was opened by an older version.
ALTER TABLE incidents ADD COLUMN key TEXT NOT NULL DEFAULT '';

-- How long its outage lasted in milliseconds, by a clock that never steps.
ALTER TABLE incidents ADD COLUMN lasted INTEGER;

UPDATE incidents SET key = COALESCE(
    (SELECT json_extract(o.message, '$.incident') FROM outbox o JOIN monitors m ON m.id = incidents.monitor
     WHERE o.org = incidents.org AND incidents.resolved IS NULL AND incidents.announced = 1
       AND o.created >= incidents.opened
       AND CASE WHEN json_valid(o.message) THEN
           json_extract(o.message, '$.kind') = 'opened' AND json_extract(o.message, '$.monitor') = m.key END
     ORDER BY o.id DESC LIMIT 1),
    (SELECT m.key FROM monitors m WHERE m.id = incidents.monitor) || '/' || opened || '/' || id
);

-- The incident that a notice is about.
ALTER TABLE outbox ADD COLUMN incident INTEGER;

UPDATE outbox SET incident = (
    SELECT i.id FROM incidents i
    WHERE i.org = outbox.org AND i.key = json_extract(outbox.message, '$.incident') AND i.resolved IS NULL
) WHERE json_valid(message);

-- Health ends at a date of its own: the next one begins earlier where the clock was set back.
ALTER TABLE health ADD COLUMN until INTEGER;

UPDATE health SET until = pairs.next
FROM (SELECT monitor, at, sequence, LEAD(at) OVER (PARTITION BY monitor ORDER BY at, sequence) AS next
      FROM health) AS pairs
WHERE health.monitor = pairs.monitor AND health.at = pairs.at AND health.sequence = pairs.sequence;

CREATE INDEX health_by_end ON health (monitor, until);

-- What a process knows about a monitor besides its health, as JSON that the store does not read.
CREATE TABLE memory (
    monitor INTEGER NOT NULL REFERENCES monitors (id),
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (monitor, name)
) STRICT, WITHOUT ROWID;

-- Time in which no process checked anything.
CREATE TABLE gaps (
    org INTEGER NOT NULL REFERENCES orgs (id),
    start INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (org, until, start)
) STRICT, WITHOUT ROWID;

-- When a process last ran.
CREATE TABLE alive (
    org INTEGER PRIMARY KEY REFERENCES orgs (id),
    at INTEGER NOT NULL
) STRICT;

-- The last batch of changes of a process, so that one that is written again changes nothing.
CREATE TABLE writers (
    org INTEGER NOT NULL REFERENCES orgs (id),
    writer INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (org, writer)
) STRICT, WITHOUT ROWID;
