"""Polars, streaming engine: polars_job.py DATA OUT CODEC; POLARS_MAX_THREADS is the bench's."""

import sys

import polars as pl

data, out, codec = sys.argv[1:]
rows = pl.scan_ndjson(f"{data}/*.ndjson", schema={
    "id": pl.Int64, "ts": pl.String, "user_name": pl.String, "country": pl.String,
    "amount": pl.Float64, "url": pl.String, "ok": pl.Boolean})
rows.with_columns(
    pl.col("ts").str.strptime(pl.Datetime("ms"), "%Y-%m-%dT%H:%M:%S%.3fZ"),
    dt=pl.col("ts").str.head(10),
).sink_parquet(pl.PartitionBy(f"{out}/", key="dt", include_key=False), compression=codec, mkdir=True, engine="streaming")
