-- The incident that downtime belongs to: an outage is counted once, also where it was up in between.
ALTER TABLE health ADD COLUMN incident BIGINT;

-- 3 is down. Its dates say to which incident it belongs.
UPDATE health SET incident = (
    SELECT i.id FROM incidents i
    WHERE i.org_id = health.org_id AND i.monitor = health.monitor AND i.opened <= health.at
      AND (i.resolved IS NULL OR i.resolved > health.at OR i.opened = health.at)
    ORDER BY i.id DESC LIMIT 1
) WHERE health = 3;
