"""Measures the ingest path, records to a compacted, partitioned table, beside
DuckDB's COPY ... PARTITION_BY on the same files. Run by `make bench-ingest`.

Inputs: NDJSON files, CSV files, thousands of small NDJSON files, and Arrow
batches in memory that a Go program hands over (benchmarks/library); with a
checkpoint every 10 s and every second, compaction on, zstd. The same NDJSON
records are also read from topics of Kafka, as JSON and as Avro, compressed or not
(benchmarks/kafka starts a broker when none is there). Each run is a child
process; CPU seconds (user and system), wall clock and peak memory are what the
kernel says of it. The systems take turns, round by round; medians are printed.
What each table holds is counted. DuckDB has no checkpoints and nothing to
recover: it shows what the bytes cost.

    ingest.py [--rows N] [--files N] [--small N] [--days N] [--rounds N] [--threads N]
              [--only TEXT] [--no-kafka] [--no-stages] [--no-readers] [--check]

--check ends with exit code 1 when a target is missed.
"""

import argparse
import contextlib
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import duckdb

from targets import judge

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
CACHE = os.path.join(HERE, ".cache")
BIN = os.path.join(ROOT, "bin")

CONFIG = """\
pipeline: bench
state_dir: {work}/state
source:
  {source}
  format: {format}
  readers: {threads}
table:
  database: bench
  name: clicks
  location: {work}/clicks
  columns:
    - id bigint
    - ts timestamp
    - user_name string
    - country string
    - amount double
    - url string
    - ok boolean
  partitioned_by:
    - dt: date(ts)
  compression: zstd
checkpoint: {{interval: {interval}}}
compaction: {{file_size: 128MB, policy: hold, max_delay: 5m, parallelism: {threads}}}
"""

DUCKDB = """\
import duckdb, sys
data, ext, out, threads = sys.argv[1:]
columns = "{id: 'BIGINT', ts: 'TIMESTAMP', user_name: 'VARCHAR', country: 'VARCHAR', amount: 'DOUBLE', url: 'VARCHAR', ok: 'BOOLEAN'}"
read = f"read_ndjson('{data}/*.ndjson', columns={columns})"
if ext == "csv":
    read = f"read_csv('{data}/*.csv', header=true, columns={columns})"
db = duckdb.connect(config={"threads": threads})
db.execute(f\"\"\"COPY (SELECT *, strftime(ts::timestamp, '%Y-%m-%d') AS dt FROM {read})
TO '{out}' (FORMAT parquet, PARTITION_BY (dt), COMPRESSION zstd)\"\"\")
"""


def measured(argv, env=None):
    """Runs a child; its CPU seconds, wall seconds and peak MB, and what it printed."""
    started = time.monotonic()
    child = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, env=os.environ | (env or {}))
    printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{argv[0]}: exit code {child.returncode}")
    facts = {"cpu_seconds": usage.ru_utime + usage.ru_stime, "seconds": seconds,
             "peak_rss_mb": usage.ru_maxrss / (1e3 if sys.platform == "linux" else 1e6)}
    return facts, printed


def contents(out):
    """What a reader of the table sees."""
    files = glob.glob(f"{out}/dt=*/*.parquet")
    # id is unique: a row lost and another doubled would show in the sum.
    rows, distinct, total = duckdb.sql(
        f"SELECT count(*), count(DISTINCT id), sum(id) FROM read_parquet('{out}/dt=*/*.parquet')").fetchall()[0]
    return {"rows": rows, "distinct": distinct, "sum": int(total), "files": len(files),
            "bytes": sum(os.path.getsize(f) for f in files)}


class Bench:
    def __init__(self, args):
        self.args = args
        self.work = os.path.join(CACHE, f"work-{os.getpid()}")  # two at once do not mix

    def write(self, source, format, interval, threads):
        name = os.path.join(self.work, "bench.yaml")
        with open(name, "w") as f:
            f.write(CONFIG.format(work=self.work, source=source, format=format, threads=threads, interval=interval))
        return name

    def config(self, data, interval, threads):
        ext = "csv" if data.endswith("csv") else "ndjson"
        return self.write(f'files: {{paths: ["{data}/*.{ext}"]}}', "csv" if ext == "csv" else "json", interval, threads)

    def run(self, config):
        run, _ = measured([f"{BIN}/hivesink", "run", "-c", config, "--json"])
        return run | contents(f"{self.work}/clicks")

    def hivesink(self, data, interval):
        return self.run(self.config(data, interval, self.args.threads))

    def topic(self, kafka, topic):
        source = (f"kafka: {{brokers: {json.dumps(kafka['brokers'])}, topics: [{topic['topic']}], until: end,"
                  f" schema_registry: {{url: \"{kafka['registry']}\"}}}}")
        return self.run(self.write(source, topic["format"], "10s", self.args.threads))

    def arrow(self, data, interval):
        _, printed = measured([f"{BIN}/bench-library", self.config(data, interval, self.args.threads)])
        facts = json.loads(printed)
        return {k: facts[k] for k in ("cpu_seconds", "seconds", "peak_rss_mb", "allocs_per_row")} | contents(f"{self.work}/clicks")

    def duck(self, data):
        ext = "csv" if data.endswith("csv") else "ndjson"
        run, _ = measured([sys.executable, "-c", DUCKDB, data, ext, f"{self.work}/out", str(self.args.threads)])
        return run | contents(f"{self.work}/out")

    def reading(self, data, readers):
        """Rows a second until the last row is taken, without the end of the run."""
        name = self.config(data, "10s", readers)
        _, printed = measured([f"{BIN}/bench-profile", name])
        facts = json.loads(printed)
        return {"rows_per_second": facts["rows"] / facts["read_seconds"], "allocs_per_row": facts["allocs_per_row"]}

    def fresh(self):
        shutil.rmtree(self.work, ignore_errors=True)
        os.makedirs(self.work)

    def rounds(self, systems):
        """Runs every system once a round, each in an empty directory."""
        runs = {name: [] for name in systems}
        for i in range(self.args.rounds):
            for name, run in systems.items():
                self.fresh()
                runs[name].append(run())
            print(f"round {i + 1} of {self.args.rounds} done", file=sys.stderr)
        shutil.rmtree(self.work, ignore_errors=True)
        return runs


class Topics:
    """Topics with the records of NDJSON files, there for as long as it is entered."""

    def __init__(self, data):
        self.data = data

    def __enter__(self):
        self.child = subprocess.Popen([f"{BIN}/bench-kafka", self.data], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.child.stdout.readline()
        if not line:
            sys.exit(f"bench-kafka: exit code {self.child.wait()}")
        return json.loads(line)

    def __exit__(self, *_):
        self.child.stdin.close()  # it removes the topics, and stops what it has started
        if self.child.wait() != 0:
            sys.exit(f"bench-kafka: exit code {self.child.returncode}")


def median(runs):
    return {key: statistics.median(r[key] for r in runs) for key in runs[0]}


def prepare(rows, files, days, ext):
    data = os.path.join(CACHE, f"{rows}-{files}-{days}-{ext}")
    if not os.path.exists(data):
        shutil.rmtree(data + ".tmp", ignore_errors=True)
        subprocess.run(["go", "run", "./benchmarks/gen", data + ".tmp", str(rows), str(files), str(days), ext], cwd=ROOT, check=True)
        os.rename(data + ".tmp", data)
    return data


def stages(json_data, csv_data):
    first = lambda d: sorted(glob.glob(f"{d}/*"))[0]
    out = subprocess.run(["go", "run", "./benchmarks/stages", first(json_data), first(csv_data)], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


FILES = "NDJSON, checkpoint 10s"  # what topics are compared with


def systems(bench, inputs, kafka):
    """Name -> (input, what to run). DuckDB's is the base of its input."""
    table = {}
    for name, data in inputs.items():
        for interval in ("10s", "1s"):
            table[f"{name}, checkpoint {interval}"] = (name, lambda d=data, i=interval: bench.hivesink(d, i))
        table[f"{name}, DuckDB"] = (name, lambda d=data: bench.duck(d))
    for interval in ("10s", "1s"):
        table[f"Arrow, checkpoint {interval}"] = ("NDJSON", lambda i=interval: bench.arrow(inputs["NDJSON"], i))
    for t in kafka["topics"] if kafka else []:
        table[f"Kafka, {t['format']}, {t['codec']}"] = ("NDJSON", lambda t=t: bench.topic(kafka, t))
    chosen = {k for k in table if any(text in k for text in bench.args.only.split(","))}
    if any(k.startswith("Kafka") for k in chosen):
        chosen.add(FILES)
    return {k: v for k, v in table.items() if k in chosen}


def report(table, runs, rows, sizes):
    """Medians with what follows from them; every table must hold every row once."""
    want = (rows, rows, rows * (rows - 1) // 2)
    result = {}
    for name, all_runs in runs.items():
        for r in all_runs:
            if (r["rows"], r["distinct"], r["sum"]) != want:
                sys.exit(f"{name}: {r['rows']} rows, {r['distinct']} different, ids add up to {r['sum']}; want {want}")
        source = table[name][0]
        m = median(all_runs)
        m["rows_per_cpu_second"] = rows / m["cpu_seconds"]
        m["mb_per_cpu_second"] = sizes[source] / 1e6 / m["cpu_seconds"]
        m["mb_per_second"] = sizes[source] / 1e6 / m["seconds"]
        base = runs.get(f"{source}, DuckDB")
        if base:
            m["of_duckdb"] = statistics.median(b["cpu_seconds"] / r["cpu_seconds"] for b, r in zip(base, all_runs))
        shown = f"({m.get('of_duckdb', 0):.2f})"
        if name.startswith("Kafka"):
            m["of_files"] = statistics.median(b["cpu_seconds"] / r["cpu_seconds"] for b, r in zip(runs[FILES], all_runs))
            shown = f"({m['of_files']:.2f} of files)"
        result[name] = m
        print(f"  {name:32} {m['rows_per_cpu_second'] / 1e6:5.2f} M rows/CPU s {shown}"
              f" {m['mb_per_cpu_second']:4.0f} MB/CPU s {m['seconds']:6.1f} s {m['mb_per_second']:4.0f} MB/s"
              f" {m['peak_rss_mb']:4.0f} MB RSS  {m['files']:.0f} files, {m['bytes'] / 1e6:.0f} MB")
    return result


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=5_000_000)
    p.add_argument("--files", type=int, default=8)
    p.add_argument("--small", type=int, default=2000, help="files of the input of many small files")
    p.add_argument("--days", type=int, default=10)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--only", default="", help="only systems whose name has one of these texts, by commas")
    p.add_argument("--out", default=os.path.join(HERE, "results", "ingest.json"))
    p.add_argument("--no-kafka", action="store_true")
    p.add_argument("--no-stages", action="store_true")
    p.add_argument("--no-readers", action="store_true")
    p.add_argument("--check", action="store_true")
    args = p.parse_args()

    for name in ("library", "profile", "kafka"):
        subprocess.run(["go", "build", "-o", f"{BIN}/bench-{name}", f"./benchmarks/{name}"], cwd=ROOT, check=True)
    inputs = {"NDJSON": prepare(args.rows, args.files, args.days, "ndjson"),
              "CSV": prepare(args.rows, args.files, args.days, "csv"),
              "small files": prepare(args.rows, args.small, args.days, "ndjson")}
    sizes = {name: sum(os.path.getsize(f) for f in glob.glob(f"{d}/*")) for name, d in inputs.items()}
    bench = Bench(args)
    with contextlib.nullcontext() if args.no_kafka else Topics(inputs["NDJSON"]) as kafka:
        table = systems(bench, inputs, kafka)
        runs = bench.rounds({name: run for name, (_, run) in table.items()})
    load = os.getloadavg()[0]
    print(f"{args.rows} rows; NDJSON {sizes['NDJSON'] / 1e6:.0f} MB and CSV {sizes['CSV'] / 1e6:.0f} MB in {args.files} files, small:"
          f" NDJSON in {args.small}; {args.threads} threads; medians of {args.rounds}; load {load:.1f} at the end")
    result = {"rows": args.rows, "bytes_in": sizes, "files_in": args.files, "small_files_in": args.small, "rounds": args.rounds,
              "threads": args.threads, "duckdb": duckdb.__version__, "load": load, "cpus": os.cpu_count(),
              "systems": report(table, runs, args.rows, sizes)}
    if not args.no_readers:
        reading = bench.rounds({n: lambda n=n: bench.reading(inputs["NDJSON"], n) for n in (1, 2)})
        one, two = median(reading[1]), median(reading[2])
        result["readers"] = {"one": one["rows_per_second"], "two": two["rows_per_second"],
                             "ratio": statistics.median(b["rows_per_second"] / a["rows_per_second"] for a, b in zip(reading[1], reading[2]))}
        result["allocs_per_row"] = two["allocs_per_row"]
        print(f"  one reader {one['rows_per_second'] / 1e6:.2f} M rows/s, two {two['rows_per_second'] / 1e6:.2f} M rows/s, until the last row is taken")
    if not args.no_stages:
        result["stages"] = stages(inputs["NDJSON"], inputs["CSV"])
        for s in result["stages"]:
            print(f"  stage {s['stage']:20} {s['ns_per_row']:7.1f} ns/row {s['mb_per_second']:6.0f} MB/s of input  {s['allocs_per_row']:.4f} allocations/row")
    result["targets"], missed = judge(result)
    os.makedirs(os.path.dirname(args.out), exist_ok=True)
    with open(args.out, "w") as f:
        json.dump(result, f, indent=2)
        f.write("\n")
    if args.check and missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
