"""Spark Structured Streaming, one input file a micro-batch, local mode.

    spark_job.py run DATA OUT STATE CODEC THREADS
    spark_job.py files OUT        the files that its own log says are in the table
"""

import sys

from pyspark.sql import SparkSession, functions as F

SCHEMA = "id BIGINT, ts TIMESTAMP, user_name STRING, country STRING, amount DOUBLE, url STRING, ok BOOLEAN"


def session(threads):
    return (SparkSession.builder.master(f"local[{threads}]").appName("bench")
            .config("spark.driver.memory", "4g")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
            .config("spark.log.level", "WARN")
            .getOrCreate())


def run(data, out, state, codec, threads):
    spark = session(threads)
    rows = (spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(data)
            .withColumn("dt", F.date_format("ts", "yyyy-MM-dd")))
    (rows.writeStream.format("parquet").partitionBy("dt").option("compression", codec)
     .option("checkpointLocation", state).trigger(availableNow=True).start(out).awaitTermination())
    spark.stop()


def files(out):
    spark = session(2)
    for name in spark.read.parquet(out).inputFiles():
        print("FILE", name)
    spark.stop()


if __name__ == "__main__":
    {"run": run, "files": files}[sys.argv[1]](*sys.argv[2:])
