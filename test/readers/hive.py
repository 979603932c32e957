"""Tables as Hive's own row reader sees them: its MapredParquetInputFormat and
ParquetHiveSerDe, in a JVM that Python drives. The metastore, SQL and the
vectorised reader are not part of it."""

import datetime
import glob
import os
import subprocess
import urllib.parse

import py4j.java_gateway
import py4j.protocol
import pyspark

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# Hadoop and what Hive's jar leaves to it: PySpark has them.
HADOOP = ["hadoop-client-api-*", "hadoop-client-runtime-*", "commons-logging-*", "commons-lang-2*", "commons-lang3-*", "guava-*",
          "slf4j-api-*", "zstd-jni-*", "snappy-java-*"]
POMS = {"3.1.3": "spark-hive3", "4.0.1": "hive4"}
EPOCH = datetime.date(1970, 1, 1)


def jars(version):
    out = subprocess.run(["go", "run", "./test/services/cmd", "classpath", POMS[version]], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    hive = [j for j in out.stdout.decode().strip().split(":") if os.path.basename(j).startswith("hive-exec-")]
    assert len(hive) == 1, out.stdout
    spark = os.path.join(os.path.dirname(pyspark.__file__), "jars")
    return hive + [j for name in HADOOP for j in glob.glob(os.path.join(spark, name + ".jar"))]


class Hive:
    """A JVM with the classes of one version of Hive."""

    def __init__(self, version):
        opens = [f"--add-opens=java.base/{p}=ALL-UNNAMED" for p in ("java.lang", "java.net", "java.nio", "java.util", "sun.nio.ch")]
        port, proc = py4j.java_gateway.launch_gateway(
            classpath=":".join(jars(version)), javaopts=["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC", *opens],
            die_on_exit=True, return_proc=True)
        self.proc = proc
        self.gateway = py4j.java_gateway.JavaGateway(gateway_parameters=py4j.java_gateway.GatewayParameters(port=port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.gateway.shutdown()
        self.proc.stdin.close()  # it ends with its standard input
        self.proc.wait()

    def rows(self, table, columns, partition):
        """The rows of a table that is partitioned by one column, the last."""
        out = []
        for name in sorted(glob.glob(f"{table}/*/*.parquet")):
            value = urllib.parse.unquote(os.path.basename(os.path.dirname(name)).split("=", 1)[1])
            try:
                out += [[*row, value] for row in self.file(name, [c for c in columns if c[0] != partition])]
            except py4j.protocol.Py4JJavaError as e:  # it cannot be shown any more when the JVM has ended
                raise AssertionError(f"Hive cannot read {name}: {e.java_exception.toString()}") from None
        return out

    def file(self, name, columns):
        j = self.gateway.jvm
        conf, tbl = j.org.apache.hadoop.mapred.JobConf(), j.java.util.Properties()
        for key, value in (("columns", ",".join(n for n, _ in columns)), ("columns.types", ":".join(t for _, t in columns))):
            conf.set(key, value)
            tbl.setProperty(key, value)
        conf.setBoolean("hive.io.file.read.all.columns", True)
        hive = j.org.apache.hadoop.hive
        serde = hive.ql.io.parquet.serde.ParquetHiveSerDe()
        serde.initialize(conf, tbl, None)
        inspector = serde.getObjectInspector()
        split = j.org.apache.hadoop.mapred.FileSplit(j.org.apache.hadoop.fs.Path("file://" + name), 0, os.path.getsize(name), conf)
        reader = hive.ql.io.parquet.MapredParquetInputFormat().getRecordReader(split, conf, j.org.apache.hadoop.mapred.Reporter.NULL)
        key, value = reader.createKey(), reader.createValue()
        while reader.next(key, value):
            row = hive.serde2.objectinspector.ObjectInspectorUtils.copyToStandardJavaObject(serde.deserialize(value), inspector)
            yield [plain(v, t) for v, (_, t) in zip(row, columns)]
        reader.close()


def plain(v, kind=""):
    """A value in the words of spark.plain. Hive's decimals forget their zeros at the end."""
    if v is not None and kind.startswith("decimal"):
        return v.toFormatString(int(kind[:-1].split(",")[1]))
    if v is None or isinstance(v, (bool, int, str)):
        return v
    if isinstance(v, float):
        return repr(v)
    if isinstance(v, (bytes, bytearray)):
        return bytes(v).hex()
    if isinstance(v, py4j.java_collections.JavaMap):
        return sorted(([plain(k), plain(x)] for k, x in v.items()), key=str)
    if isinstance(v, (py4j.java_collections.JavaList, py4j.java_collections.JavaArray)):
        return [plain(x) for x in v]
    kind = v.getClass().getSimpleName()
    if kind == "Date":
        return (EPOCH + datetime.timedelta(days=v.toEpochDay())).isoformat()
    if kind == "Timestamp":
        at = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=v.toEpochSecond())
        return f"{at:%Y-%m-%dT%H:%M:%S}.{v.getNanos() // 1000:06d}Z"
    return v.toString()  # HiveVarchar, HiveChar
