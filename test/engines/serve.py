"""Reads tables with Spark SQL through a Hive Metastore, with DuckDB and with
PyArrow, as often as it is asked: a JVM is started once. The questions are lines
of JSON on standard input, the answers on standard output, the end of the input
is its end.

    serve.py thrift://HOST:PORT JARS

JARS is a class path for Spark's driver, "" for none. A question:

    {"location": "hdfs://localhost:18020/t", "table": "db.t", "webhdfs": "localhost:18070",
     "s3": {"endpoint": "http://…", "access_key": "…", "secret_key": "…"}, "hadoop": {"dfs.nameservices": "…"}, "rows": false}

Without "table" Spark is not asked. The answer is {"error": "…"}, or what each
engine found:

    {"spark": {"rows": 3, "columns": {"id": {"type": "bigint", "nulls": 0}}, "digest": "…",
               "partitions": {"dt=2026-01-01": 3}}, "duckdb": …, "pyarrow": …}

digest is that of the multiset of rows, each written as JSON. The types are
Hive's words. With "rows" the rows themselves, as lists, are in PyArrow's."""

import datetime
import hashlib
import json
import os
import sys
import time
import traceback
import urllib.parse

os.environ["TZ"] = "UTC"  # Spark's rows have the local time
time.tzset()

import duckdb  # noqa: E402
import fsspec  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.dataset as ds  # noqa: E402
import pyarrow.fs as pafs  # noqa: E402
import requests  # noqa: E402
from fsspec.implementations.arrow import ArrowFSWrapper  # noqa: E402

NULL = "__HIVE_DEFAULT_PARTITION__"


def plain(v):
    """A value as JSON has it, the same for every engine."""
    if isinstance(v, datetime.datetime):
        if v.tzinfo is not None:
            v = v.astimezone(datetime.timezone.utc)
        return v.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(v, (bytes, bytearray)):
        return v.hex()
    if isinstance(v, dict):
        return {str(plain(k)): plain(x) for k, x in v.items()}
    if hasattr(v, "asDict"):
        return {k: plain(x) for k, x in v.asDict().items()}
    if isinstance(v, (list, tuple)):
        return [plain(x) for x in v]
    if v is None or isinstance(v, (bool, int, str)):
        return v
    return repr(v) if isinstance(v, float) else str(v)


class Found:
    """What one engine found: rows are fed to it."""

    def __init__(self, types, partitioned_by, keep=False):
        self.types, self.by = types, [list(types).index(p) for p in partitioned_by]
        self.names = partitioned_by
        self.n, self.sum, self.nulls, self.parts = 0, 0, [0] * len(types), {}
        self.rows = [] if keep else None

    def add(self, row):
        row = [plain(v) for v in row]
        for i in self.by:
            row[i] = NULL if row[i] is None else str(row[i])
        for i, v in enumerate(row):
            if v is None:
                self.nulls[i] += 1
        text = json.dumps(row, sort_keys=True).encode()
        self.sum += int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "big")
        self.n += 1
        key = "/".join(f"{n}={row[i]}" for n, i in zip(self.names, self.by))
        self.parts[key] = self.parts.get(key, 0) + 1
        if self.rows is not None:
            self.rows.append(row)

    def answer(self):
        out = {"rows": self.n, "digest": f"{self.sum % (1 << 128):032x}", "partitions": self.parts,
               "columns": {c: {"type": t, "nulls": n} for (c, t), n in zip(self.types.items(), self.nulls)}}
        if self.rows is not None:
            out["values"], out["order"] = self.rows, list(self.types)
        return out


def store(q):
    """The file system of a location for PyArrow and DuckDB, and the path on it."""
    url = urllib.parse.urlparse(q["location"])
    if url.scheme == "s3":
        s = q["s3"]
        endpoint = urllib.parse.urlparse(s["endpoint"])
        fs = pafs.S3FileSystem(access_key=s["access_key"], secret_key=s["secret_key"], region="us-east-1",
                               endpoint_override=endpoint.netloc, scheme=endpoint.scheme)
        return fs, ArrowFSWrapper(fs), url.netloc + url.path
    if url.scheme == "hdfs":
        for address in q["webhdfs"].split(","):
            host, port = address.split(":")
            web = fsspec.filesystem("webhdfs", host=host, port=int(port), user="root", skip_instance_cache=True)
            try:
                web.ls(url.path)
                break
            except (OSError, requests.RequestException):  # dead, or a standby name node
                if address == q["webhdfs"].split(",")[-1]:
                    raise
        return pafs.PyFileSystem(pafs.FSSpecHandler(web)), web, url.path
    path = url.path if url.scheme else q["location"]
    return pafs.LocalFileSystem(), None, path


def visible(fs, path):
    """The files that a reader of a table sees: below no name with . or _."""
    files = []
    for info in fs.get_file_info(pafs.FileSelector(path, recursive=True)):
        inside = info.path.removeprefix(path).strip("/").split("/")
        if info.type == pafs.FileType.File and not any(p[0] in "._" for p in inside) and info.size > 0:
            files.append(info.path)
    return sorted(files)


def keys(files, path):
    """The partition columns of a table."""
    for f in files:
        return [p.split("=")[0] for p in f.removeprefix(path).strip("/").split("/")[:-1]]
    return []


def of_pyarrow(fs, path, files, by, keep):
    part = ds.HivePartitioning(pa.schema([(c, pa.string()) for c in by]), segment_encoding="uri") if by else None
    data = ds.dataset(files, filesystem=fs, format="parquet", partitioning=part, partition_base_dir=path)
    # A file may lack columns that were added later: the last has all.
    types = {f.name: f.type for f in data.schema}
    found = Found({n: hive_type(t) for n, t in types.items()}, by, keep)
    for batch in data.to_batches():
        columns = [batch.column(batch.schema.get_field_index(n)).to_pylist() if n in batch.schema.names else [None] * batch.num_rows for n in types]
        kinds = list(types.values())
        for i, t in enumerate(kinds):
            if pa.types.is_map(t):
                columns[i] = [v if v is None else dict(v) for v in columns[i]]
        for row in zip(*columns):
            found.add(row)
    return found.answer()


def hive_type(t):
    if pa.types.is_timestamp(t):
        return "timestamp"
    if pa.types.is_decimal(t):
        return f"decimal({t.precision},{t.scale})"
    if pa.types.is_date(t):
        return "date"
    if pa.types.is_map(t):
        return f"map<{hive_type(t.key_type)},{hive_type(t.item_type)}>"
    if pa.types.is_struct(t):
        return "struct<" + ",".join(f"{f.name}:{hive_type(f.type)}" for f in t) + ">"
    if pa.types.is_list(t):
        return f"array<{hive_type(t.value_type)}>"
    return {"int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float": "float", "double": "double",
            "bool": "boolean", "string": "string", "binary": "binary"}.get(str(t), str(t))


def of_duckdb(wrapped, path, files, by):
    db = duckdb.connect()
    db.execute("SET TimeZone='UTC'")
    prefix = ""
    if wrapped is not None:
        db.register_filesystem(wrapped)
        protocol = wrapped.protocol if isinstance(wrapped.protocol, str) else wrapped.protocol[0]
        prefix = protocol + "://"
    names = [prefix + f for f in files]
    hive = "true, hive_types_autocast=false" if by else "false"
    cursor = db.execute(f"SELECT * FROM read_parquet({names!r}, hive_partitioning={hive}, union_by_name=true)")
    found = Found({d[0]: duck_type(str(d[1])) for d in cursor.description}, by)
    while rows := cursor.fetchmany(10000):
        for row in rows:
            found.add(row)
    return found.answer()


def duck_type(t):
    """DuckDB's name of a type in Hive's words."""
    if t.endswith("[]"):
        return f"array<{duck_type(t[:-2])}>"
    head, _, inside = t.partition("(")
    parts = split(inside[:-1])
    if head == "MAP":
        return "map<" + ",".join(map(duck_type, parts)) + ">"
    if head == "STRUCT":
        fields = (p.strip().partition(" ") for p in parts)
        return "struct<" + ",".join(n.strip('"') + ":" + duck_type(k) for n, _, k in fields) + ">"
    t = t.lower()
    if t.startswith("timestamp"):
        return "timestamp"
    return {"integer": "int", "varchar": "string", "blob": "binary"}.get(t, t)


def split(text):
    """At the commas outside of brackets."""
    out, depth = [""], 0
    for c in text:
        depth += (c in "(<") - (c in ")>")
        if c == "," and depth == 0:
            out.append("")
        else:
            out[-1] += c
    return [p.strip() for p in out]


class Spark:
    """One session, made when it is first needed."""

    def __init__(self, uri, jars):
        self.uri, self.jars, self.session = uri, jars, None

    def get(self):
        if self.session is None:
            from pyspark.sql import SparkSession
            b = (SparkSession.builder.master("local[1]").appName("engines").enableHiveSupport().config("spark.hadoop.hive.metastore.uris", self.uri)
                 .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
                 .config("spark.driver.memory", "900m").config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
                 .config("spark.driver.extraClassPath", self.jars)
                 # For a few small tables a quick start counts more than quick code.
                 .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC").config("spark.sql.codegen.wholeStage", "false")
                 .config("spark.hadoop.fs.s3a.impl.disable.cache", "true").config("spark.hadoop.fs.s3a.path.style.access", "true")
                 .config("spark.hadoop.fs.s3a.endpoint.region", "us-east-1").config("spark.hadoop.fs.hdfs.impl.disable.cache", "true"))
            self.session = b.getOrCreate()
            self.session.sparkContext.setLogLevel("ERROR")
        return self.session

    def read(self, q, by):
        s = self.get()
        settings = dict(q.get("hadoop", {}))
        if "s3" in q:
            keys = {"endpoint": q["s3"]["endpoint"], "access.key": q["s3"]["access_key"], "secret.key": q["s3"]["secret_key"],
                    "connection.ssl.enabled": str(q["s3"]["endpoint"].startswith("https")).lower()}
            settings.update({"fs.s3a." + k: v for k, v in keys.items()})
        for k, v in settings.items():
            s.sparkContext._jsc.hadoopConfiguration().set(k, v)
        s.catalog.refreshTable(q["table"])  # it may have grown since an earlier question
        df = s.table(q["table"])
        found = Found(dict(df.dtypes), by)
        for row in df.collect():
            found.add(row)
        out = found.answer()
        # What the metastore knows, beside what the files say.
        said = {"/".join(urllib.parse.unquote(p) for p in r[0].split("/")) for r in s.sql(f"SHOW PARTITIONS {q['table']}").collect()} if by else {""}
        if said != set(out["partitions"]):
            raise ValueError(f"the metastore knows the partitions {sorted(said)}, rows are in {sorted(out['partitions'])}")
        return out


def answer(q, spark):
    fs, wrapped, path = store(q)
    path = path.rstrip("/")
    files = visible(fs, path)
    by = keys(files, path)
    out = {"files": len(files), "pyarrow": of_pyarrow(fs, path, files, by, q.get("rows", False)), "duckdb": of_duckdb(wrapped, path, files, by)}
    if q.get("table"):
        out["spark"] = spark.read(q, by)
    return out


def main():
    spark = Spark(*sys.argv[1:3])
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line), spark)
        except Exception as e:  # the question may be wrong, the next one right
            reply = {"error": f"{e.__class__.__name__}: {e}\n{traceback.format_exc()[-3000:]}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
