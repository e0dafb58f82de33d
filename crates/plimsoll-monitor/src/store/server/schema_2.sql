-- What lets a process go on where another one ended.

-- The name under which receivers know an incident, for ever: that of its first notice if it was opened by an older version.
ALTER TABLE incidents ADD COLUMN key TEXT NOT NULL DEFAULT '';

-- How long its outage lasted in milliseconds, by a clock that never steps.
ALTER TABLE incidents ADD COLUMN lasted BIGINT;

UPDATE incidents SET key = COALESCE(
    (SELECT o.message::JSONB ->> 'incident' FROM outbox o JOIN monitors m ON m.id = incidents.monitor
     WHERE o.org_id = incidents.org_id AND incidents.resolved IS NULL AND incidents.announced
       AND o.created >= incidents.opened AND o.channel <> 'subscribers'
       AND o.message::JSONB ->> 'kind' = 'opened' AND o.message::JSONB ->> 'monitor' = m.key
     ORDER BY o.id DESC LIMIT 1),
    (SELECT m.key FROM monitors m WHERE m.id = incidents.monitor) || '/' || opened || '/' || id
);

-- The incident that a notice is about.
ALTER TABLE outbox ADD COLUMN incident BIGINT;

UPDATE outbox SET incident = (
    SELECT i.id FROM incidents i
    WHERE i.org_id = outbox.org_id AND i.key = outbox.message::JSONB ->> 'incident' AND i.resolved IS NULL
) WHERE channel <> 'subscribers';

-- Health ends at a date of its own: the next one begins earlier where the clock was set back.
ALTER TABLE health ADD COLUMN until BIGINT;

UPDATE health SET until = pairs.next
FROM (SELECT monitor, at, sequence, LEAD(at) OVER (PARTITION BY monitor ORDER BY at, sequence) AS next
      FROM health) AS pairs
WHERE health.monitor = pairs.monitor AND health.at = pairs.at AND health.sequence = pairs.sequence;

CREATE INDEX health_by_end ON health (monitor, until);

-- What a process knows about a monitor besides its health, as JSON that the store does not read.
CREATE TABLE memory (
    org_id BIGINT NOT NULL REFERENCES orgs (id),
    monitor BIGINT NOT NULL REFERENCES monitors (id),
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (monitor, name)
);

-- Time in which no process checked anything.
CREATE TABLE gaps (
    org_id BIGINT NOT NULL REFERENCES orgs (id),
    start BIGINT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (org_id, until, start)
);

-- When a process last ran.
CREATE TABLE alive (
    org_id BIGINT PRIMARY KEY REFERENCES orgs (id),
    at BIGINT NOT NULL
);

-- The last batch of changes of a process, so that one that is written again changes nothing.
CREATE TABLE writers (
    org_id BIGINT NOT NULL REFERENCES orgs (id),
    writer BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (org_id, writer)
);

DO $$
DECLARE
    scoped TEXT;
BEGIN
    FOREACH scoped IN ARRAY ARRAY['memory', 'gaps', 'alive', 'writers'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', scoped);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', scoped);
        EXECUTE format(
            'CREATE POLICY own_organisation ON %I USING (
                 current_setting(''plimsoll.org'', TRUE) = ''all''
                 OR org_id::TEXT = current_setting(''plimsoll.org'', TRUE))',
            scoped
        );
    END LOOP;
END
$$;
