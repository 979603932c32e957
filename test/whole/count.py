"""Counts a table through a Hive Metastore with Spark: one line of JSON.

    count.py thrift://HOST:PORT DATABASE.TABLE
"""

import json
import sys

from pyspark.sql import SparkSession

uri, table = sys.argv[1:]
spark = (SparkSession.builder.master("local[2]").appName("count").enableHiveSupport()
         .config("spark.hadoop.hive.metastore.uris", uri)
         .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
         .config("spark.driver.memory", "900m").config("spark.sql.shuffle.partitions", "4")
         .config("spark.sql.session.timeZone", "UTC").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
rows, distinct, low, high, total = spark.sql(f"select count(*), count(distinct id), min(id), max(id), sum(id) from {table}").first()
days = {r[0]: r[1] for r in spark.sql(f"select dt, count(*) from {table} group by dt order by dt").collect()}
print(json.dumps({"rows": rows, "distinct": distinct, "min": low, "max": high, "sum": int(total or 0), "days": days}))
