-- Flink: the filesystem connector with its compaction, exactly once.
-- DATA, OUT, STATE, CODEC, INTERVAL and COMPACTION are the bench's; one statement ends with a semicolon at the end of a line.
SET 'execution.runtime-mode' = 'streaming';
SET 'execution.checkpointing.interval' = '${INTERVAL}';
SET 'execution.checkpointing.dir' = 'file://${STATE}';
SET 'execution.checkpointing.externalized-checkpoint-retention' = 'RETAIN_ON_CANCELLATION';
SET 'restart-strategy.type' = 'disable';
SET 'pipeline.object-reuse' = 'true';
SET 'table.local-time-zone' = 'UTC';

CREATE TEMPORARY TABLE clicks_in (
  id BIGINT, ts TIMESTAMP_LTZ(3), user_name STRING, country STRING, amount DOUBLE, url STRING, ok BOOLEAN
) WITH (
  'connector' = 'filesystem', 'path' = 'file://${DATA}', 'format' = 'json',
  'json.timestamp-format.standard' = 'ISO-8601'
);

CREATE TEMPORARY TABLE clicks (
  id BIGINT, ts TIMESTAMP_LTZ(3), user_name STRING, country STRING, amount DOUBLE, url STRING, ok BOOLEAN, dt STRING
) PARTITIONED BY (dt) WITH (
  'connector' = 'filesystem', 'path' = 'file://${OUT}', 'format' = 'parquet',
  'parquet.compression' = '${CODEC}',
  'parquet.utc-timezone' = 'true',
  'parquet.write.int64.timestamp' = 'true',
  'auto-compaction' = '${COMPACTION}',
  'compaction.file-size' = '128MB',
  'sink.partition-commit.trigger' = 'process-time',
  'sink.partition-commit.delay' = '0s',
  'sink.partition-commit.policy.kind' = 'success-file'
);

INSERT INTO clicks
SELECT id, ts, user_name, country, amount, url, ok, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM clicks_in;
