"""Reads finished tables with readers nobody here wrote (DuckDB, PyArrow) and
compares the multiset of rows with the input. Run by `make integration`.

    check.py [flights|types|skips|kills|compact]...      default: all
"""

import collections
import datetime
import decimal
import glob
import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import duckdb
import pyarrow.dataset
import pyarrow.parquet

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.join(ROOT, "bin", "hivesink")


def run(config, *args):
    """Runs a bounded pipeline to its end and returns its summary."""
    out = subprocess.run([BINARY, "run", "-c", config, "--json", *args], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout.decode().strip().splitlines()[-1])


def fsck(config):
    out = subprocess.run([BINARY, "fsck", "-c", config, "--json"], cwd=ROOT, stdout=subprocess.PIPE)
    report = json.loads(out.stdout)
    assert out.returncode == 0 and not report["faults"], report


def visible(table):
    """The files a reader sees that skips hidden names; none else may end in .parquet."""
    seen = []
    for name in glob.glob(table + "/**/*.parquet", recursive=True, include_hidden=True):
        parts = os.path.relpath(name, table).split(os.sep)
        assert not any(p[0] in "._" for p in parts), f"hidden and named .parquet: {name}"
        seen.append(name)
    return seen


def no_hidden_data(table):
    left = [n for n in glob.glob(table + "/.hivesink/**/*", recursive=True, include_hidden=True) if n.endswith((".part", ".target"))]
    assert not left, f"hidden data files left: {left[:5]}"


def multiset(rows):
    return collections.Counter(rows)


def differ(name, got, want):
    if got == want:
        return
    more, less = got - want, want - got
    sys.exit(f"{name}: {sum(more.values())} rows too many, {sum(less.values())} missing; e.g. {list(more)[:2]} for {list(less)[:2]}")


def flights(work):
    """The sample, compared row by row."""
    source = os.path.join(ROOT, "examples", "data", "flights-20k.ndjson.gz")
    table = os.path.join(work, "flights")
    config = os.path.join(ROOT, "examples", "flights.yaml")
    sets = ["--set", f"table.location={table}", "--set", f"state_dir={work}/state", "--set", "checkpoint.interval=50ms"]
    summary = run(config, *sets)
    assert summary["rows_read"] == summary["rows_visible"] == 20000 and summary["rows_bad"] == 0, summary
    with gzip.open(source, "rt") as lines:
        records = [json.loads(line) for line in lines]
    want = multiset(
        (r["flight_id"], r["departed_at"], r["delay_minutes"], r["distance_miles"], r["origin"], r["destination"], r["departed_at"][:10])
        for r in records
    )
    visible(table)
    no_hidden_data(table)
    fields = "flight_id, strftime(departed_at AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%SZ'), delay_minutes, distance_miles, origin, destination, flight_date::varchar"
    db = duckdb.connect()
    db.execute("SET TimeZone='UTC'")
    rows = db.execute(f"SELECT {fields} FROM read_parquet('{table}/**/*.parquet', hive_partitioning=true)").fetchall()
    differ("duckdb", multiset(rows), want)
    data = pyarrow.dataset.dataset(table, format="parquet", partitioning="hive").to_table().to_pylist()
    differ("pyarrow", multiset(
        (r["flight_id"], r["departed_at"].strftime("%Y-%m-%dT%H:%M:%SZ"), r["delay_minutes"], r["distance_miles"], r["origin"], r["destination"], str(r["flight_date"]))
        for r in data), want)
    days = {r["departed_at"][:10] for r in records}
    assert summary["partitions"] == len(days), summary
    for day in days:
        assert os.path.exists(f"{table}/flight_date={day}/_SUCCESS"), day
    print(f"flights: {len(rows)} rows equal in DuckDB and PyArrow, {len(days)} partitions")


TYPES = """
pipeline: types
state_dir: {work}/types-state
source:
  files: {{paths: ["{work}/types.ndjson"]}}
table:
  name: types
  location: {work}/types
  columns:
    - id bigint
    - b boolean
    - t tinyint
    - s smallint
    - i int
    - f float
    - d double
    - c decimal(18,4)
    - big decimal(38,3)
    - x string
    - v varchar(5)
    - h char(5)
    - bin binary
    - day date
    - ts timestamp
    - tags array<string>
    - m map<string,bigint>
    - o struct<a:int,deep:array<struct<z:string>>>
    - k string
  partitioned_by: [k]
"""


def types(work):
    """Every type, nested and null, values compared by PyArrow."""
    full = dict(id=2**53 + 1, b=True, t=-128, s=32767, i=-(2**31), f=1.5, d=0.1, c="-200000.0000", big="12345678901234567890123456789012345.678",
                x="grün \u0000 \U0001f600", v="abcde", h="ab", bin="AAEC", day="1969-12-31", ts="1969-12-31T23:59:59.5Z",
                tags=["a", None, ""], m={"k": 1, "": None}, o={"a": 1, "deep": [{"z": "q"}, {"z": None}]}, k="a/b c")
    rows = [full, {"id": -(2**63), "k": None}, dict(full, id=2**63 - 1, tags=[], m={}, o={"a": None, "deep": []}, k=""), dict(full, id=4, k="ü%")]
    with open(f"{work}/types.ndjson", "w") as out:
        for r in rows:
            out.write(json.dumps(r, ensure_ascii=r["id"] % 2 == 0) + "\n")
    config = f"{work}/types.yaml"
    with open(config, "w") as out:
        out.write(TYPES.format(work=work))
    summary = run(config)
    assert summary["rows_bad"] == 0 and summary["rows_visible"] == 4, summary
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

    def plain(r):
        if r.get("x") is None:
            return (r["id"],) + (None,) * 17
        o = r["o"]
        return (r["id"], r["b"], r["t"], r["s"], r["i"], r["f"], r["d"], str(r["c"]), str(r["big"]), r["x"], r["v"], r["h"], r["bin"],
                str(r["day"]), r["ts"], tuple(r["tags"]), tuple(sorted(r["m"])), (o["a"], tuple(e["z"] for e in o["deep"])))

    def of_input(r):
        r = dict(r)
        if r.get("x") is not None:
            import base64
            r["bin"] = base64.b64decode(r["bin"])
            r["c"], r["big"] = decimal.Decimal(r["c"]), decimal.Decimal(r["big"])
            r["ts"] = epoch - datetime.timedelta(microseconds=500000)
            r["m"] = list(r["m"].items())
        return plain(r)

    got = []
    for name in visible(f"{work}/types"):
        got += [plain(r) for r in pyarrow.dataset.dataset(name, format="parquet").to_table().to_pylist()]
    differ("types", multiset(got), multiset(of_input(r) for r in rows))
    dirs = sorted(d for d in os.listdir(f"{work}/types") if not d.startswith("."))
    assert dirs == ["k=__HIVE_DEFAULT_PARTITION__", "k=a%2Fb c", "k=ü%25"], dirs
    n = duckdb.execute(f"SELECT count(*), count(DISTINCT id) FROM read_parquet('{work}/types/**/*.parquet')").fetchone()
    assert n == (4, 4), n
    fsck(config)
    print("types: every type equal in PyArrow")


SKIPS = """
pipeline: skips
state_dir: {work}/skips-state
source:
  files: {{paths: ["{work}/skips.csv"]}}
  format: csv
table: {{name: skips, location: "{work}/skips", columns: [id bigint, d double, z double, x string, day date, "c decimal(38,2)"]}}
compaction: {{policy: "{policy}"}}
rolling: {{rows: 1000}}
"""


def skips(work):
    """Readers skip by minima, maxima and the page index: they count as many rows as
    a scan finds. Not of NaN: it is in no minimum or maximum, as the format says, and
    DuckDB takes a column that has those for one without it (docs/readers.md)."""
    with open(f"{work}/skips.csv", "w") as out:
        out.write("id,d,z,x,day,c\n")
        for i in range(8000):
            out.write(f"{i},{i / 4},{'-0.0' if i % 2 else '0.0'},{chr(0x10ffff) * 20}{i:05},{1000 + i:04}-02-28,{(i - 4000) * 10**30}.25\n")
    asked = ["d < 3", "d BETWEEN 1999.75 AND 5000", "d > 5000", "d = 500", "z = 0", "z < 0", "z >= -0.0", f"x > '{chr(0x10ffff) * 20}07998'", "x < 'a'", "day < DATE '1000-03-01'",
             "day = DATE '8999-02-28'", "c < 0", f"c > {3999 * 10**30}", "c IS NULL", "id IN (0, 7999, 8000)"]
    for policy in ("hold", "off"):
        config = f"{work}/skips.yaml"
        with open(config, "w") as out:
            out.write(SKIPS.format(work=work, policy=policy))
        summary = run(config)
        assert summary["rows_bad"] == 0 and summary["rows_visible"] == 8000, summary
        db = duckdb.connect()
        table = f"read_parquet('{work}/skips/*.parquet')"
        db.execute(f"CREATE TABLE scanned AS SELECT * FROM {table}")
        for where in asked:
            got, want = (db.execute(f"SELECT count(*) FROM {t} WHERE {where}").fetchone()[0] for t in (table, "scanned"))
            assert got == want, f"policy {policy}: {where}: {got} rows, a scan finds {want}"
        shutil.rmtree(f"{work}/skips")
        shutil.rmtree(f"{work}/skips-state")
    print(f"skips: {len(asked)} predicates count in DuckDB what a scan finds")


KILLS = """
pipeline: kills
state_dir: {work}/kills-state
source:
  datagen: {{rows: {rows}, rate: 1000000, columns: {{ts: {{values: 200}}}}}}
  readers: 2
  event_time: {{column: ts}}
table:
  name: kills
  location: {work}/kills
  columns: [id bigint, ts timestamp, name string, country string, amount double, ok boolean]
  partitioned_by: [{{dt: date(ts)}}]
checkpoint: {{interval: 100ms}}
compaction: {{file_size: 1MB, max_delay: 2s}}
commit: {{trigger: partition-time, delay: 1h}}
"""


def kills(work, rows=5_000_000, want=20):
    """A run into 200 partitions, killed at random moments; DuckDB counts."""
    config = f"{work}/kills.yaml"
    with open(config, "w") as out:
        out.write(KILLS.format(work=work, rows=rows))
    seed = int(os.environ.get("HIVESINK_SEED", time.time_ns() % 10**9))
    rng = random.Random(seed)
    table = f"{work}/kills"
    hits = tries = 0
    while True:
        tries += 1
        p = subprocess.Popen([BINARY, "run", "-c", config, "--json"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if hits < want:
            # A moment is a number of new log records: later ones lie in the
            # end of input and the last compactions.
            stop = records(table) + rng.randint(1, 8)
            while p.poll() is None and records(table) < stop:
                time.sleep(0.002)
            if p.poll() is None:
                p.send_signal(signal.SIGKILL)
                hits += 1
        out, err = p.communicate()
        if p.returncode == 0:
            break
        assert p.returncode == -signal.SIGKILL, f"seed {seed}: {err.decode()}"
        if tries % 3 == 0:
            shutil.rmtree(f"{work}/kills-state")  # it may be lost
    assert hits == want, f"seed {seed}: only {hits} kills hit a live process"
    summary = json.loads(out.decode().strip().splitlines()[-1])
    visible(table)
    no_hidden_data(table)
    n = duckdb.execute(f"SELECT count(*), count(DISTINCT id), min(id), max(id) FROM read_parquet('{table}/**/*.parquet')").fetchone()
    assert n == (rows, rows, 0, rows - 1), f"seed {seed}: {n}"
    fsck(config)
    print(f"kills: {rows} rows exact in DuckDB after {hits} kills ({summary['partitions']} partitions, {summary['visible_files']} files, seed {seed})")


def records(table):
    try:
        return max((int(n[:12]) for n in os.listdir(f"{table}/.hivesink/log")), default=0)
    except FileNotFoundError:
        return 0


def compact_cli(work, table, *args, code=0, yaml=""):
    """Runs hivesink compact on a table of others and returns its report."""
    config = f"{work}/compact.yaml"
    with open(config, "w") as out:
        out.write(f"pipeline: readers\ntable: {{name: t, location: {table}}}\n{yaml}")
    out = subprocess.run([BINARY, "compact", "-c", config, "--json", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert out.returncode == code, (out.returncode, out.stdout.decode(), out.stderr.decode())
    return json.loads(out.stdout)


def tree(table):
    """Every name below a table, with size and time."""
    return {os.path.relpath(os.path.join(d, n), table): os.lstat(os.path.join(d, n))[1:9]
            for d, dirs, files in os.walk(table) for n in dirs + files}


def frozen(value):
    if isinstance(value, dict):
        return tuple((k, frozen(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(frozen(v) for v in value)
    return repr(value) if isinstance(value, float) else value


def exact(t):
    """Nanoseconds as numbers: Python's datetime has none."""
    for i, field in enumerate(t.schema):
        if str(field.type).startswith("timestamp[ns"):
            t = t.set_column(i, field.name, t.column(i).cast("int64"))
    return t


def contents(table):
    """What PyArrow and DuckDB read of each partition: rows in full, schema, counts."""
    out = {}
    for d in sorted(glob.glob(f"{table}/*=*")):
        files = sorted(glob.glob(f"{d}/*.parquet"))
        tables = [pyarrow.parquet.ParquetFile(f).read() for f in files]
        rows = multiset(frozen(r) for t in tables for r in exact(t).to_pylist())
        schemas = {str(pyarrow.parquet.ParquetFile(f).schema).partition("\n")[2] for f in files}
        # The order of the footer's metadata says nothing.
        arrow = {str(t.schema.remove_metadata()) + str(sorted((t.schema.metadata or {}).items())) for t in tables}
        db = duckdb.connect()
        db.execute("SET TimeZone='UTC'")
        columns = [c[0] for c in db.execute(f"DESCRIBE SELECT * FROM read_parquet('{d}/*.parquet')").fetchall()]
        counts = db.execute("SELECT count(*), " + ", ".join(f'count("{c}")' for c in columns) + f", bit_xor(hash(t)) FROM read_parquet('{d}/*.parquet') t").fetchone()
        out[os.path.basename(d)] = (rows, schemas, arrow, counts)
    return out


def every_type(pa, n, start):
    """A table of every kind of column, nulls and repeats included."""
    ids = range(start, start + n)
    null = lambda i, v: None if i % 7 == 3 else v
    utc = datetime.timezone.utc
    return pa.table({
        "id": pa.array(ids, pa.int64()),
        "tiny": pa.array([null(i, i % 100) for i in ids], pa.int8()),
        "unsigned": pa.array([null(i, i) for i in ids], pa.uint32()),
        "f": pa.array([null(i, i / 3) for i in ids], pa.float32()),
        "d": pa.array([float("nan") if i % 11 == 0 else i / 7 for i in ids], pa.float64()),
        "b": pa.array([null(i, i % 2 == 0) for i in ids], pa.bool_()),
        "few": pa.array([null(i, f"value {i % 5}") for i in ids], pa.string()),
        "many": pa.array([f"{i:08d} grün \U0001f600" for i in ids], pa.string()),
        "dict": pa.array([f"c{i % 3}" for i in ids]).dictionary_encode(),
        "bin": pa.array([null(i, bytes([i % 256]) * (i % 4)) for i in ids], pa.binary()),
        "fixed": pa.array([bytes(4) for _ in ids], pa.binary(4)),
        "day": pa.array([datetime.date(2026, 1, 1 + i % 28) for i in ids], pa.date32()),
        "ts": pa.array([datetime.datetime(2026, 1, 1, 0, 0, i % 60, i % 10**6, tzinfo=utc) for i in ids], pa.timestamp("us", "UTC")),
        "ns": pa.array([i * 1001 for i in ids], pa.timestamp("ns")),
        "money": pa.array([null(i, decimal.Decimal(i).scaleb(-2)) for i in ids], pa.decimal128(10, 2)),
        "big": pa.array([decimal.Decimal(i) for i in ids], pa.decimal128(38, 0)),
        "nothing": pa.array([None for _ in ids], pa.string()),
        "tags": pa.array([null(i, [f"t{k}" if k % 2 else None for k in range(i % 4)]) for i in ids], pa.list_(pa.string())),
        "m": pa.array([null(i, [(f"k{k}", k) for k in range(i % 3)]) for i in ids], pa.map_(pa.string(), pa.int32())),
        "deep": pa.array([null(i, {"a": i, "in": [{"x": f"{i % 9}"}, None]}) for i in ids],
                         pa.struct([("a", pa.int64()), ("in", pa.list_(pa.struct([("x", pa.string())])))])),
    })


def compact(work):
    """Tables of PyArrow and DuckDB, compacted and compared row by row."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def pyarrow_table(name, options, parts=3, files=12, rows=40):
        table = f"{work}/{name}"
        start = 0
        for p in range(parts):
            os.makedirs(f"{table}/p={p}")
            for f in range(files):
                pq.write_table(every_type(pa, rows, start), f"{table}/p={p}/f-{f:03d}.parquet", **options)
                start += rows
            open(f"{table}/p={p}/_SUCCESS", "w").close()
        return table

    cases = {
        "snappy": {}, "zstd": dict(compression="zstd"), "gzip": dict(compression="gzip"), "lz4": dict(compression="lz4"),
        "none": dict(compression="none", use_dictionary=False), "brotli": dict(compression="brotli"),
        "v2": dict(data_page_version="2.0", compression="zstd"), "index": dict(write_page_index=True), "int96": dict(use_deprecated_int96_timestamps=True),
        "byname": dict(compression={"id": "gzip", "few": "none", "many": "zstd"}, use_dictionary=["few", "dict"]),
        "encodings": dict(use_dictionary=False, column_encoding={"id": "DELTA_BINARY_PACKED", "many": "DELTA_BYTE_ARRAY", "few": "DELTA_LENGTH_BYTE_ARRAY", "d": "BYTE_STREAM_SPLIT"}),
        "groups": dict(row_group_size=7), "nostats": dict(write_statistics=False), "bloom": {},
    }
    modes = collections.Counter()
    for name, options in cases.items():
        table = pyarrow_table(name, options)
        before, names = contents(table), tree(table)
        dry = compact_cli(work, table, "--dry-run")
        assert tree(table) == names, f"{name}: --dry-run changed the table"
        report = compact_cli(work, table)
        assert report["files_before"] == 36 and report["files_after"] == dry["files_after"] == 3 and report["rows"] == 3 * 12 * 40, report
        after = contents(table)
        for part in before:
            differ(f"{name} {part}", after[part][0], before[part][0])
            assert after[part][1:] == before[part][1:], (name, part, before[part][1:], after[part][1:])
            assert os.path.exists(f"{table}/{part}/_SUCCESS"), part
        codecs = lambda f: {pq.ParquetFile(f).metadata.row_group(0).column(c).compression for c in range(5)}
        assert not [n for n in tree(table) if "hivesink" in n], tree(table)
        modes.update(report["targets_by_mode"])
        if name == "zstd":
            assert codecs(visible(table)[0]) == {"ZSTD"}
    # An explicit codec is used, and shows.
    table = pyarrow_table("recoded", {})
    before = contents(table)
    compact_cli(work, table, "--set", "table.compression=zstd")
    after = contents(table)
    for part in before:
        differ(f"recoded {part}", after[part][0], before[part][0])
        assert after[part][1:] == before[part][1:], part
    meta = pq.ParquetFile(visible(table)[0]).metadata
    assert {meta.row_group(g).column(c).compression for g in range(meta.num_row_groups) for c in range(meta.num_columns)} == {"ZSTD"}, meta

    # DuckDB's own files, several row groups and threads.
    db = duckdb.connect()
    table = f"{work}/duck"
    for n in range(6):
        db.execute(f"COPY (SELECT i AS id, i % 3 AS p, 'name ' || (i % 50) AS name, CASE WHEN i % 5 = 0 THEN NULL ELSE i::DECIMAL(18,3) / 7 END AS amount, "
                   f"[i, NULL, i + 1] AS list, {{'a': i, 'b': 'x'}} AS s, TIMESTAMP '2026-01-01' + INTERVAL (i) SECOND AS ts, (i * 7919)::HUGEINT AS h, uuid() AS u "
                   f"FROM range({n * 3000}, {n * 3000 + 3000}) t(i)) TO '{table}' (FORMAT parquet, PARTITION_BY (p), ROW_GROUP_SIZE 2048, FILENAME_PATTERN 'data_{n}_{{uuid}}', APPEND, CODEC 'snappy')")
    before = contents(table)
    report = compact_cli(work, table)
    assert report["files_after"] == 3 and report["rows"] == 18000, report
    after = contents(table)
    for part in before:
        differ(f"duck {part}", after[part][0], before[part][0])
        assert after[part][1:] == before[part][1:], (part, before[part][1:], after[part][1:])
    modes.update(report["targets_by_mode"])

    # Two schemas: rewritten as the table's columns, or joined by schema.
    def drifted(name):
        table = f"{work}/{name}"
        os.makedirs(f"{table}/p=0")
        for f in range(6):
            t = pa.table({"id": pa.array(range(f * 10, f * 10 + 10), pa.int32() if f % 2 else pa.int64()), "name": [f"n{i}" for i in range(10)]})
            pq.write_table(t, f"{table}/p=0/f-{f}.parquet")
        return table

    table = drifted("drift")
    ids = lambda: sorted(r[0] for r in duckdb.execute(f"SELECT id FROM read_parquet('{table}/**/*.parquet')").fetchall())
    assert compact_cli(work, table)["files_after"] == 2 and ids() == list(range(60))
    table = drifted("drift2")
    report = compact_cli(work, table, "--set", "table.columns=[id bigint, name string]")
    assert report["files_after"] == 1 and report["targets_by_mode"] == {"rewrite": 1} and ids() == list(range(60)), report
    table = drifted("drift3")
    report = compact_cli(work, table, "--set", "table.columns=[id bigint]")
    assert report["partitions_left_alone"] == 1 and "name" in report["partitions"][0]["reason"] and ids() == list(range(60)), report

    # Many files in ten partitions, while DuckDB reads: each partition's sum is
    # right at every moment.
    table, rows, parts, files = f"{work}/many", 500, 10, 100
    per, start = {}, 0
    for p in range(parts):
        os.makedirs(f"{table}/p={p}")
        first = start
        for f in range(files):
            pq.write_table(pa.table({"id": pa.array(range(start, start + rows), pa.int64()), "name": [f"n{i % 97}" for i in range(rows)], "x": [i / 3 for i in range(rows)]}),
                           f"{table}/p={p}/f-{f:03d}.parquet")
            start += rows
        per[p] = (rows * files, sum(range(first, start)))
    with open(f"{work}/compact.yaml", "w") as out:
        out.write(f"pipeline: readers\ntable: {{name: t, location: {table}}}\ncompaction: {{parallelism: 1, bytes_per_second: 2MB}}\n")
    p = subprocess.Popen([BINARY, "compact", "-c", f"{work}/compact.yaml"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    looks = gone = 0
    while p.poll() is None:
        for k in per:
            try:
                got = duckdb.execute(f"SELECT count(*), sum(id)::BIGINT FROM read_parquet('{table}/p={k}/*.parquet')").fetchone()
            except duckdb.IOException:
                gone += 1  # it listed the old files, and they went before it opened them
                continue
            assert got == per[k], (k, got, per[k])
            looks += 1
    assert p.returncode == 0, p.communicate()
    assert len(visible(table)) == parts
    for k in per:
        assert duckdb.execute(f"SELECT count(*), sum(id)::BIGINT FROM read_parquet('{table}/p={k}/*.parquet')").fetchone() == per[k]
    print(f"compact: {len(cases) + 1} kinds of PyArrow tables, DuckDB's, drifted schemas; targets {dict(modes)}; "
          f"{looks} right sums beside a compaction, {gone} times the files went before they were opened")


if __name__ == "__main__":
    names = sys.argv[1:] or ["flights", "types", "skips", "kills", "compact"]
    for name in names:
        work = tempfile.mkdtemp(prefix="hivesink-")
        try:
            globals()[name](work)
        finally:
            shutil.rmtree(work, ignore_errors=True)
