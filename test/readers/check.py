"""Reads finished tables with readers nobody here wrote (DuckDB, PyArrow) and
compares the multiset of rows with the input. Run by `make integration`.

    check.py [flights|types|kills]...      default: all
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


if __name__ == "__main__":
    names = sys.argv[1:] or ["flights", "types", "kills"]
    for name in names:
        work = tempfile.mkdtemp(prefix="hivesink-")
        try:
            globals()[name](work)
        finally:
            shutil.rmtree(work, ignore_errors=True)
