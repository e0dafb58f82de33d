-- Results where there is no ClickHouse. Each day is a partition, which is dropped as a whole once it is old.
CREATE TABLE results (
    org_id BIGINT NOT NULL,
    monitor BIGINT NOT NULL,
    at BIGINT NOT NULL,
    region INTEGER NOT NULL,
    status SMALLINT NOT NULL,
    took BIGINT NOT NULL,
    dns BIGINT,
    connect BIGINT,
    tls BIGINT,
    wait BIGINT,
    receive BIGINT,
    code INTEGER,
    certificate INTEGER,
    has_detail BOOLEAN NOT NULL,
    reason TEXT,
    conditions TEXT NOT NULL,
    PRIMARY KEY (monitor, at, region)
) PARTITION BY RANGE (at);

-- resolution: 0 minute, 1 hour, 2 day.
CREATE TABLE rollups (
    org_id BIGINT NOT NULL,
    resolution SMALLINT NOT NULL,
    monitor BIGINT NOT NULL,
    start BIGINT NOT NULL,
    up BIGINT NOT NULL,
    degraded BIGINT NOT NULL,
    down BIGINT NOT NULL,
    error BIGINT NOT NULL,
    took BYTEA NOT NULL,
    dns BIGINT NOT NULL,
    connect BIGINT NOT NULL,
    tls BIGINT NOT NULL,
    wait BIGINT NOT NULL,
    receive BIGINT NOT NULL,
    PRIMARY KEY (resolution, monitor, start)
);

-- Until when the rollups of a monitor are complete.
CREATE TABLE rolled (
    org_id BIGINT NOT NULL,
    resolution SMALLINT NOT NULL,
    monitor BIGINT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (resolution, monitor)
);

DO $$
DECLARE
    scoped TEXT;
BEGIN
    FOREACH scoped IN ARRAY ARRAY['results', 'rollups', 'rolled'] LOOP
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
