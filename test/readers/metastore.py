"""The same table, announced to real Hive Metastores, read by Spark SQL through
them, by DuckDB, by PyArrow and by Hive's own reader, and compared with the input;
and tables that Spark wrote, compacted. Run by `make integration` with the services up.

    metastore.py [agree|sparkwritten]...      default: all"""

import base64
import collections
import decimal
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

decimal.getcontext().prec = 60
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BINARY = os.path.join(ROOT, "bin", "hivesink")
sys.path.insert(0, HERE)
import check  # noqa: E402
import hive  # noqa: E402
from spark import plain  # noqa: E402

METASTORES = {
    "hms-4": os.environ.get("HIVESINK_HMS4", "127.0.0.1:19083"),
    "hms-3": os.environ.get("HIVESINK_HMS3", "127.0.0.1:19084"),
}

COLUMNS = ["id bigint", "b boolean", "t tinyint", "s smallint", "i int", "f float", "d double", "c decimal(9,2)", "w decimal(18,4)",
           "big decimal(38,3)", "x string", "v varchar(5)", "h char(5)", "bin binary", "day date", "ts timestamp", "tags array<string>",
           "m map<string,bigint>", "o struct<a:int,deep:array<struct<z:string>>>", "k string"]

CONFIG = """
pipeline: {name}
state_dir: {work}/{name}-state
source:
  files: {{paths: ["{work}/rows.ndjson"]}}
table:
  database: {database}
  name: {name}
  location: {work}/{name}
  columns: {columns}
  partitioned_by: [k]
{parquet}metastore: {{type: hive, uri: "thrift://{address}", create_table: true}}
"""


def spark(uri, jars, *args):
    out = subprocess.run([sys.executable, os.path.join(HERE, "spark.py"), uri, jars, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = [l for l in out.stdout.decode().splitlines() if l.startswith("RESULT ")]
    assert out.returncode == 0 and lines, out.stderr.decode()[-3000:]
    return json.loads(lines[0][len("RESULT "):])


def client_jars():
    """Hive 3.1.3's client, for metastore 4."""
    out = subprocess.run(["go", "run", "./test/services/cmd", "classpath", "spark-hive3"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return out.stdout.decode().strip()


def rows():
    """Every type, limits, nulls, nested nulls, odd text."""
    full = dict(id=2**53 + 1, b=True, t=-128, s=32767, i=-(2**31), f=1.5, d=0.1, c="-1234567.89", w="-200000.0000",
                big="12345678901234567890123456789012345.678", x="grün \U0001f600", v="abcde", h="ab", bin="AAEC", day="1969-12-31",
                ts="1969-12-31T23:59:59.5Z", tags=["a", None, ""], m={"k": 1, "l": None}, o={"a": 1, "deep": [{"z": "q"}, {"z": None}]}, k="a/b c")
    return [full, {"id": -(2**63), "k": None}, dict(full, id=2**63 - 1, tags=[], m={}, o={"a": None, "deep": []}, k=""),
            dict(full, id=4, ts="2026-01-31T12:34:56.789012Z", k="ü%"), dict(full, id=5, ts="2026-01-31T00:00:00Z", c="0", x="")] + \
           [dict(id=100 + n, x=f"n{n}" if n % 3 else None, ts=f"2026-02-01T00:00:{n % 60:02d}.123456Z", c=f"{n}.25", k=f"part {n % 4}") for n in range(200)]


def wanted():
    """The input in the words of spark.plain."""
    def row(r):
        out = []
        for c in COLUMNS:
            name, kind = c.split(" ", 1)
            v = r.get(name)
            if name == "k":
                v = v or "__HIVE_DEFAULT_PARTITION__"
            elif v is None:
                pass
            elif kind.startswith("decimal"):
                v = str(decimal.Decimal(v).quantize(decimal.Decimal(1).scaleb(-int(kind[:-1].split(",")[1]))))
            elif kind == "timestamp":
                head, _, fraction = v[:-1].partition(".")
                v = f"{head}.{fraction:0<6}Z"
                if not fraction:
                    v = f"{head}.000000Z"
            elif kind == "binary":
                v = base64.b64decode(v).hex()
            elif kind.startswith("map"):
                v = sorted(([k, x] for k, x in v.items()), key=str)
            elif kind.startswith("struct"):
                v = [v["a"], [[e["z"]] for e in v["deep"]]]
            elif kind in ("float", "double"):
                v = repr(v)
            elif kind.startswith("char"):
                v = v.rstrip()
            out.append(v)
        return json.dumps(out)
    return collections.Counter(row(r) for r in rows())


def multiset(table_rows):
    """Rows as a reader gave them. Null partitions read as null or by their
    directory's name; Spark pads char."""
    def fix(r):
        r = list(r)
        r[-1] = "__HIVE_DEFAULT_PARTITION__" if r[-1] is None else r[-1]
        h = [c.split()[0] for c in COLUMNS].index("h")
        r[h] = r[h] and r[h].rstrip()
        return json.dumps(r)
    return collections.Counter(fix(r) for r in table_rows)


def pyarrow_rows(table):
    names = [c.split()[0] for c in COLUMNS]
    out = []
    for name in check.visible(table):
        t = pq.ParquetFile(name).read()
        part = os.path.basename(os.path.dirname(name)).split("=", 1)[1]
        import urllib.parse
        for r in t.to_pylist():
            r["k"] = urllib.parse.unquote(part)
            r["m"] = r["m"] if r["m"] is None else dict(r["m"])
            r["o"] = r["o"] if r["o"] is None else [r["o"]["a"], [[e["z"]] for e in r["o"]["deep"]]]
            out.append([plain(r[n]) for n in names])
    return out


def duckdb_rows(table):
    names = [c.split()[0] for c in COLUMNS]
    db = duckdb.connect()
    db.execute("SET TimeZone='UTC'")
    cursor = db.execute(f"SELECT {', '.join(names)} FROM read_parquet('{table}/**/*.parquet', hive_partitioning=true, hive_types_autocast=false)")
    out = []
    for r in cursor.fetchall():
        r = dict(zip(names, r))
        if r["ts"] is not None and r["ts"].tzinfo is not None:
            import datetime
            r["ts"] = r["ts"].astimezone(datetime.timezone.utc)
        r["o"] = r["o"] if r["o"] is None else [r["o"]["a"], [[e["z"]] for e in r["o"]["deep"]]]
        out.append([plain(r[n]) for n in names])
    return out


OPTIONS = {
    "plain": "",
    "oldhive": "  compression: snappy\n  parquet: {timestamps: int96, decimals: fixed}\n",
}

# Hive's reader does not ask a metastore: one server's tables are enough.
HIVE_READS = {"plain_hms4": ["4.0.1"], "oldhive_hms4": ["4.0.1", "3.1.3"]}


def read_by_hive(work, want):
    columns = [c.split(" ", 1) for c in COLUMNS]
    for version in sorted({v for versions in HIVE_READS.values() for v in versions}):
        with hive.Hive(version) as reader:
            for name, versions in HIVE_READS.items():
                if version in versions:
                    check.differ(f"{name}: Hive {version}", multiset(reader.rows(f"{work}/{name}", columns, "k")), want)
                    print(f"agree: {name}: {len(rows())} rows of every type equal in Hive {version}'s reader")


def physical(table):
    """The physical types of the columns that the options change."""
    schema = pq.ParquetFile(check.visible(table)[0]).schema
    return {schema.column(i).name: schema.column(i).physical_type for i in range(len(schema)) if schema.column(i).name in ("ts", "c", "w", "big")}


def agree(work):
    with open(f"{work}/rows.ndjson", "w") as out:
        for r in rows():
            out.write(json.dumps(r) + "\n")
    want, jars = wanted(), client_jars()
    for server, address in METASTORES.items():
        database = "readers_" + os.path.basename(work).replace("-", "_").lower()
        tables = []
        for name, parquet in OPTIONS.items():
            name = f"{name}_{server.replace('-', '')}"
            config = f"{work}/{name}.yaml"
            with open(config, "w") as out:
                out.write(CONFIG.format(name=name, work=work, database=database, columns=json.dumps(COLUMNS), address=address, parquet=parquet))
            summary = check.run(config)
            assert summary["rows_bad"] == 0 and summary["rows_visible"] == len(rows()), summary
            check.differ(f"{name}: pyarrow", multiset(pyarrow_rows(f"{work}/{name}")), want)
            check.differ(f"{name}: duckdb", multiset(duckdb_rows(f"{work}/{name}")), want)
            tables.append(f"{database}.{name}")
            types = physical(f"{work}/{name}")
            wanted_types = {"ts": "INT64", "c": "INT32", "w": "INT64", "big": "FIXED_LEN_BYTE_ARRAY"}
            if parquet:
                wanted_types = {"ts": "INT96", "c": "FIXED_LEN_BYTE_ARRAY", "w": "FIXED_LEN_BYTE_ARRAY", "big": "FIXED_LEN_BYTE_ARRAY"}
            assert types == wanted_types, types
        got = spark("thrift://" + address, jars if server == "hms-4" else "", "read", *tables)
        for table, r in got.items():
            check.differ(f"{table}: spark", multiset(r["rows"]), want)
            declared = [c.split(" ", 1) for c in COLUMNS]
            spoken = [[n, t] for n, t in r["types"]]
            assert spoken == [[n, {"varchar(5)": "string", "char(5)": "string"}.get(t, t)] for n, t in declared], spoken
            assert len(r["partitions"]) == 7 and "k=a%2Fb c" in r["partitions"], r["partitions"]
            assert r["counts"] == [205, 205, 4 + 133], r["counts"]
            assert r["pruned"] == 2, r["pruned"]
        print(f"agree: {server}: {len(rows())} rows of every type equal in Spark SQL through the metastore, DuckDB and PyArrow, {', '.join(OPTIONS)}")
    read_by_hive(work, want)


def sparkwritten(work):
    """Spark's own files as inputs to compact."""
    for name in spark("", "", "write", f"{work}/s"):
        table = f"{work}/s/{name}"
        for crc in glob.glob(f"{table}/**/.*.crc", recursive=True, include_hidden=True):
            os.remove(crc)
        before = check.contents(table)
        report = check.compact_cli(work, table)
        assert report["files_before"] > report["files_after"] == 3 and report["rows"] == 3000, report
        after = check.contents(table)
        for part in before:
            check.differ(f"spark {name} {part}", after[part][0], before[part][0])
            assert after[part][1:] == before[part][1:], (name, part, before[part][1:], after[part][1:])
        print(f"sparkwritten: {name}: {report['files_before']} files → 3, 3000 rows equal in PyArrow and DuckDB, {report['targets_by_mode']}")


if __name__ == "__main__":
    for name in sys.argv[1:] or ["agree", "sparkwritten"]:
        work = tempfile.mkdtemp(prefix="hivesink_")
        try:
            globals()[name](work)
        finally:
            shutil.rmtree(work, ignore_errors=True)
