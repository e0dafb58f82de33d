-- Times are milliseconds since 1970, durations microseconds. `{database}` is replaced; statements end with a semicolon
-- at the end of a line. What is repeated within the last 1000 inserts is left out, here and in the rollups.
CREATE TABLE IF NOT EXISTS {database}.results (
    org_id Int64 CODEC(ZSTD(1)),
    monitor Int64 CODEC(ZSTD(1)),
    at Int64 CODEC(DoubleDelta, ZSTD(1)),
    region UInt16 CODEC(ZSTD(1)),
    status UInt8 CODEC(ZSTD(1)),
    took UInt64 CODEC(T64, ZSTD(1)),
    -- The bucket of `took` in the histogram of rollups.
    bucket UInt16 CODEC(ZSTD(1)),
    dns Nullable(UInt64) CODEC(ZSTD(1)),
    connect Nullable(UInt64) CODEC(ZSTD(1)),
    tls Nullable(UInt64) CODEC(ZSTD(1)),
    wait Nullable(UInt64) CODEC(ZSTD(1)),
    receive Nullable(UInt64) CODEC(ZSTD(1)),
    code Nullable(UInt16) CODEC(ZSTD(1)),
    certificate Nullable(Int32) CODEC(ZSTD(1)),
    has_detail UInt8 CODEC(ZSTD(1)),
    reason Nullable(String) CODEC(ZSTD(1)),
    conditions String CODEC(ZSTD(1)),
    written DateTime DEFAULT now() CODEC(DoubleDelta, ZSTD(1))
) ENGINE = MergeTree
PARTITION BY toYYYYMM(toDateTime(intDiv(at, 1000), 'UTC'))
ORDER BY (org_id, monitor, at, region)
TTL written + INTERVAL 7 DAY
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS {database}.rollups_minute (
    org_id Int64,
    monitor Int64,
    start Int64 CODEC(DoubleDelta, ZSTD(1)),
    up SimpleAggregateFunction(sum, UInt64),
    degraded SimpleAggregateFunction(sum, UInt64),
    down SimpleAggregateFunction(sum, UInt64),
    error SimpleAggregateFunction(sum, UInt64),
    took SimpleAggregateFunction(sum, UInt64),
    buckets SimpleAggregateFunction(sumMap, Tuple(Array(UInt16), Array(UInt64))),
    dns SimpleAggregateFunction(sum, UInt64),
    connect SimpleAggregateFunction(sum, UInt64),
    tls SimpleAggregateFunction(sum, UInt64),
    wait SimpleAggregateFunction(sum, UInt64),
    receive SimpleAggregateFunction(sum, UInt64),
    written SimpleAggregateFunction(max, DateTime)
) ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(toDateTime(intDiv(start, 1000), 'UTC'))
ORDER BY (org_id, monitor, start)
TTL written + INTERVAL 30 DAY
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS {database}.rollups_hour AS {database}.rollups_minute
ENGINE = AggregatingMergeTree
PARTITION BY toYear(toDateTime(intDiv(start, 1000), 'UTC'))
ORDER BY (org_id, monitor, start)
TTL written + INTERVAL 400 DAY
SETTINGS non_replicated_deduplication_window = 1000;

CREATE TABLE IF NOT EXISTS {database}.rollups_day AS {database}.rollups_minute
ENGINE = AggregatingMergeTree
PARTITION BY toYear(toDateTime(intDiv(start, 1000), 'UTC'))
ORDER BY (org_id, monitor, start)
TTL written + INTERVAL 3660 DAY
SETTINGS non_replicated_deduplication_window = 1000;

CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.to_rollups_minute TO {database}.rollups_minute AS
SELECT
    org_id, monitor, intDiv(at, 60000) * 60000 AS start,
    countIf(status = 0) AS up, countIf(status = 1) AS degraded, countIf(status = 2) AS down, countIf(status = 3) AS error,
    sumIf(results.took, status < 2) AS took,
    sumMap(if(status < 2, [bucket], emptyArrayUInt16()), if(status < 2, [toUInt64(1)], emptyArrayUInt64())) AS buckets,
    sumIf(ifNull(results.dns, 0), status < 2) AS dns,
    sumIf(ifNull(results.connect, 0), status < 2) AS connect,
    sumIf(ifNull(results.tls, 0), status < 2) AS tls,
    sumIf(ifNull(results.wait, 0), status < 2) AS wait,
    sumIf(ifNull(results.receive, 0), status < 2) AS receive,
    max(results.written) AS written
FROM {database}.results AS results GROUP BY org_id, monitor, start;

CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.to_rollups_hour TO {database}.rollups_hour AS
SELECT
    org_id, monitor, intDiv(at, 3600000) * 3600000 AS start,
    countIf(status = 0) AS up, countIf(status = 1) AS degraded, countIf(status = 2) AS down, countIf(status = 3) AS error,
    sumIf(results.took, status < 2) AS took,
    sumMap(if(status < 2, [bucket], emptyArrayUInt16()), if(status < 2, [toUInt64(1)], emptyArrayUInt64())) AS buckets,
    sumIf(ifNull(results.dns, 0), status < 2) AS dns,
    sumIf(ifNull(results.connect, 0), status < 2) AS connect,
    sumIf(ifNull(results.tls, 0), status < 2) AS tls,
    sumIf(ifNull(results.wait, 0), status < 2) AS wait,
    sumIf(ifNull(results.receive, 0), status < 2) AS receive,
    max(results.written) AS written
FROM {database}.results AS results GROUP BY org_id, monitor, start;

CREATE MATERIALIZED VIEW IF NOT EXISTS {database}.to_rollups_day TO {database}.rollups_day AS
SELECT
    org_id, monitor, intDiv(at, 86400000) * 86400000 AS start,
    countIf(status = 0) AS up, countIf(status = 1) AS degraded, countIf(status = 2) AS down, countIf(status = 3) AS error,
    sumIf(results.took, status < 2) AS took,
    sumMap(if(status < 2, [bucket], emptyArrayUInt16()), if(status < 2, [toUInt64(1)], emptyArrayUInt64())) AS buckets,
    sumIf(ifNull(results.dns, 0), status < 2) AS dns,
    sumIf(ifNull(results.connect, 0), status < 2) AS connect,
    sumIf(ifNull(results.tls, 0), status < 2) AS tls,
    sumIf(ifNull(results.wait, 0), status < 2) AS wait,
    sumIf(ifNull(results.receive, 0), status < 2) AS receive,
    max(results.written) AS written
FROM {database}.results AS results GROUP BY org_id, monitor, start;
