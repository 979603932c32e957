"""Reads tables through a Hive Metastore with Spark, and prints what it found as
JSON. Run by metastore.py in a process of its own: a JVM has one metastore.

    spark.py URI JARS [write DIRECTORY | read TABLE...]

JARS is a class path of Hive 3.1.3's client, "" for the one in Spark (Hive 2.3.9),
which a metastore 4 does not understand."""

import datetime
import json
import sys

from pyspark.sql import SparkSession


def session(uri, jars):
    b = (SparkSession.builder.master("local[1]").appName("hivesink-readers")
         .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
         .config("spark.driver.memory", "700m").config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC"))
    if uri:
        b = b.config("spark.sql.catalogImplementation", "hive").config("spark.hadoop.hive.metastore.uris", uri)
    if jars:
        b = (b.config("spark.sql.hive.metastore.version", "3.1.3").config("spark.sql.hive.metastore.jars", "path")
             .config("spark.sql.hive.metastore.jars.path", ",".join("file://" + j for j in jars.split(":"))))
    s = b.getOrCreate()
    s.sparkContext.setLogLevel("ERROR")
    return s


def plain(v):
    """A value as JSON has it, the same for every reader (metastore.py)."""
    if isinstance(v, datetime.datetime):
        return v.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(v, (bytes, bytearray)):
        return v.hex()
    if isinstance(v, dict):
        return sorted(([plain(k), plain(x)] for k, x in v.items()), key=str)
    if hasattr(v, "asDict"):
        return [plain(x) for x in v]
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if v is None or isinstance(v, (bool, int, str)):
        return v
    return repr(v) if isinstance(v, float) else str(v)


def read(spark, table):
    df = spark.table(table)
    return {
        "types": [[n, t] for n, t in df.dtypes],
        "rows": [[plain(v) for v in r] for r in df.collect()],
        "partitions": sorted(r[0] for r in spark.sql(f"SHOW PARTITIONS {table}").collect()),
        "counts": [list(r) for r in spark.sql(f"SELECT count(*), count(DISTINCT id), count(x) FROM {table}").collect()][0],
        "pruned": spark.sql(f"SELECT count(*) FROM {table} WHERE k = 'a/b c'").collect()[0][0],
    }


def write(spark, directory):
    """A table in many small files, as Spark writes them, in three shapes."""
    for name, options in {"int96": {"spark.sql.parquet.outputTimestampType": "INT96"},
                          "micros": {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"},
                          "legacy": {"spark.sql.parquet.writeLegacyFormat": "true"}}.items():
        for k, v in options.items():
            spark.conf.set(k, v)
        df = spark.sql("""SELECT id, CASE WHEN id % 7 = 3 THEN NULL ELSE concat('value ', id % 5) END AS name, CAST(id AS DECIMAL(10,2)) AS money,
            CAST(id AS DECIMAL(38,3)) AS big, timestamp_micros(1767225600000000 + id * 1000003) AS ts, date_add(DATE'2026-01-01', CAST(id % 28 AS INT)) AS day,
            CASE WHEN id % 5 = 0 THEN NULL ELSE array(id, NULL, id + 1) END AS list, map('k', id) AS m, named_struct('a', id, 'b', 'x') AS s,
            CAST(id / 7 AS DOUBLE) AS d, CAST(id AS TINYINT) AS t, encode(concat('b', id), 'utf-8') AS bin, id % 3 AS p FROM range(0, 3000, 1, 12)""")
        df.write.partitionBy("p").parquet(f"{directory}/{name}")
        for k in options:
            spark.conf.unset(k)
    return sorted(["int96", "micros", "legacy"])


if __name__ == "__main__":
    spark = session(sys.argv[1], sys.argv[2])
    what, args = sys.argv[3], sys.argv[4:]
    print("RESULT " + json.dumps(write(spark, args[0]) if what == "write" else {t: read(spark, t) for t in args}))
    spark.stop()
