"""Counts what is in files, by DuckDB: one line of JSON, partition -> [rows, distinct ids, sum of ids, hash].

    verify.py input DIR       the NDJSON records, by the date of ts
    verify.py files           Parquet files, their names on standard input

The hash is over every column of every row, whatever the order; of rows that
came twice it says nothing, but their count does.
"""

import json
import os
import sys

import duckdb

COUNTS = """
SELECT dt, count(*), count(DISTINCT id), sum(id)::VARCHAR,
       bit_xor(hash(id, epoch_ms(ts), user_name, country, amount, url, ok))::VARCHAR
FROM ({source}) GROUP BY dt ORDER BY dt"""

INPUT = """
SELECT *, strftime(ts, '%Y-%m-%d') AS dt FROM read_ndjson('{data}/*.ndjson', columns={{
  id: 'BIGINT', ts: 'TIMESTAMP', user_name: 'VARCHAR', country: 'VARCHAR', amount: 'DOUBLE', url: 'VARCHAR', ok: 'BOOLEAN'}})"""

FILES = """
SELECT * REPLACE (regexp_extract(filename, '/dt=([^/]*)/', 1) AS dt)
FROM read_parquet({names}, hive_partitioning=true, filename=true, union_by_name=true)"""


def main():
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    if sys.argv[1] == "input":
        source = INPUT.format(data=sys.argv[2])
    else:
        names = sys.stdin.read().split("\n")
        for name in names:
            if os.path.getsize(name) == 0:
                sys.exit(f"{name}: empty")
        source = FILES.format(names=json.dumps(names).replace('"', "'"))
    rows = db.execute(COUNTS.format(source=source)).fetchall()
    print(json.dumps({dt: [n, distinct, total, digest] for dt, n, distinct, total, digest in rows}))


if __name__ == "__main__":
    main()
