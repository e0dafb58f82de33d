-- The shards of monitors that each process checks, a bit for each, until a date of this server.
CREATE TABLE shares (
    org_id BIGINT NOT NULL REFERENCES orgs (id),
    process TEXT NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    shards BYTEA NOT NULL,
    PRIMARY KEY (org_id, process)
);

-- Results on their way to the process that has the lease. After a crash of this server they are missing, as checks are that
-- were not made; a log for them would double what is written.
CREATE UNLOGGED TABLE handed_over (
    org_id BIGINT NOT NULL,
    process TEXT NOT NULL,
    number BIGINT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    found TEXT NOT NULL,
    PRIMARY KEY (org_id, process, number)
);

DO $$
DECLARE
    scoped TEXT;
BEGIN
    FOREACH scoped IN ARRAY ARRAY['shares', 'handed_over'] LOOP
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
