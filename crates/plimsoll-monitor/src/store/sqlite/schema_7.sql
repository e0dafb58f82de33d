-- The id of a definition where it is not its key: a client chose it, or the key changed since.
ALTER TABLE definitions ADD COLUMN external TEXT;

CREATE UNIQUE INDEX definitions_by_id ON definitions (org_id, kind, (COALESCE(external, key)));
