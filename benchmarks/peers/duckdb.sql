-- DuckDB: one COPY. Threads and codec are the bench's.
COPY (
  SELECT *, strftime(ts::TIMESTAMP, '%Y-%m-%d') AS dt
  FROM read_ndjson('${DATA}/*.ndjson', columns={
    id: 'BIGINT', ts: 'TIMESTAMP', user_name: 'VARCHAR', country: 'VARCHAR',
    amount: 'DOUBLE', url: 'VARCHAR', ok: 'BOOLEAN'})
) TO '${OUT}' (FORMAT parquet, PARTITION_BY (dt), COMPRESSION ${CODEC});
