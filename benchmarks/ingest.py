"""Measures the ingest path, NDJSON files to a compacted, partitioned table,
beside DuckDB's COPY on the same files. Run by `make bench-ingest`.

Each run is a child process; CPU seconds (user and system), wall clock and peak
memory are what the kernel says of it. Runs alternate; medians are printed.
DuckDB has no checkpoints and nothing to recover: it shows what the bytes cost.

    ingest.py [--rows N] [--files N] [--days N] [--rounds N] [--input DIR] [--no-stages]
"""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import duckdb

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
CACHE = os.path.join(HERE, ".cache")
BINARY = os.path.join(ROOT, "bin", "hivesink")

CONFIG = """\
pipeline: bench
state_dir: {work}/state
source:
  files: {{paths: ["{data}/*.ndjson"]}}
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
data, out, threads = sys.argv[1:]
db = duckdb.connect(config={"threads": threads})
db.execute(f\"\"\"
COPY (SELECT *, strftime(ts::timestamp, '%Y-%m-%d') AS dt FROM read_ndjson('{data}/*.ndjson', columns={{
  id: 'BIGINT', ts: 'TIMESTAMP', user_name: 'VARCHAR', country: 'VARCHAR', amount: 'DOUBLE', url: 'VARCHAR', ok: 'BOOLEAN'}}))
TO '{out}' (FORMAT parquet, PARTITION_BY (dt), COMPRESSION zstd)\"\"\")
"""


def measured(argv):
    """Runs a child and returns its CPU seconds, wall seconds and peak MB."""
    started = time.monotonic()
    child = subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{argv[0]}: exit code {child.returncode}")
    return {"cpu_seconds": usage.ru_utime + usage.ru_stime, "seconds": seconds,
            "peak_rss_mb": usage.ru_maxrss / (1e3 if sys.platform == "linux" else 1e6)}


def contents(out):
    """What a reader of the table sees."""
    files = glob.glob(f"{out}/dt=*/*.parquet")
    # id is unique: a row lost and another doubled would show in the sum.
    rows, distinct, total = duckdb.sql(
        f"SELECT count(*), count(DISTINCT id), sum(id) FROM read_parquet('{out}/dt=*/*.parquet')").fetchall()[0]
    return {"rows": rows, "distinct": distinct, "sum": int(total), "files": len(files),
            "bytes": sum(os.path.getsize(f) for f in files)}


def hivesink(data, work, threads, interval):
    config = os.path.join(work, "bench.yaml")
    with open(config, "w") as f:
        f.write(CONFIG.format(work=work, data=data, threads=threads, interval=interval))
    run = measured([BINARY, "run", "-c", config, "--json"])
    return run | contents(f"{work}/clicks")


def duck(data, work, threads):
    run = measured([sys.executable, "-c", DUCKDB, data, f"{work}/out", str(threads)])
    return run | contents(f"{work}/out")


def alternate(systems, rounds, work):
    """Runs every system once a round, each in an empty directory."""
    runs = {name: [] for name in systems}
    for _ in range(rounds):
        for name, run in systems.items():
            shutil.rmtree(work, ignore_errors=True)
            os.makedirs(work)
            runs[name].append(run())
    shutil.rmtree(work, ignore_errors=True)
    return runs


def median(runs):
    return {key: statistics.median(r[key] for r in runs) for key in runs[0]}


def prepare(args):
    if args.input:
        return args.input
    data = os.path.join(CACHE, f"{args.rows}-{args.files}-{args.days}")
    if not os.path.exists(data):
        shutil.rmtree(data + ".tmp", ignore_errors=True)
        subprocess.run(["go", "run", "./benchmarks/gen", data + ".tmp", str(args.rows), str(args.files), str(args.days)],
                       cwd=ROOT, check=True)
        os.rename(data + ".tmp", data)
    return data


def stages(data):
    out = subprocess.run(["go", "run", "./benchmarks/stages", sorted(glob.glob(f"{data}/*.ndjson"))[0]],
                         cwd=ROOT, stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=5_000_000)
    p.add_argument("--files", type=int, default=8)
    p.add_argument("--days", type=int, default=10)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--input", help="a directory that benchmarks/gen has filled")
    p.add_argument("--out", default=os.path.join(HERE, "results", "ingest.json"))
    p.add_argument("--no-stages", action="store_true")
    args = p.parse_args()

    data = prepare(args)
    inputs = sorted(glob.glob(f"{data}/*.ndjson"))
    size = sum(os.path.getsize(f) for f in inputs)
    rows = 0
    for name in inputs:
        with open(name, "rb") as f:
            while block := f.read(1 << 20):
                rows += block.count(b"\n")
    work = os.path.join(CACHE, "work")
    systems = {
        "hivesink, checkpoint 10 s": lambda: hivesink(data, work, args.threads, "10s"),
        "hivesink, checkpoint 1 s": lambda: hivesink(data, work, args.threads, "1s"),
        "DuckDB " + duckdb.__version__: lambda: duck(data, work, args.threads),
    }
    runs = alternate(systems, args.rounds, work)
    want = (rows, rows, rows * (rows - 1) // 2)
    for name, all_runs in runs.items():
        for r in all_runs:
            if (r["rows"], r["distinct"], r["sum"]) != want:
                sys.exit(f"{name}: {r['rows']} rows, {r['distinct']} different, ids add up to {r['sum']}; want {want}")

    result = {"rows": rows, "bytes_in": size, "files_in": len(inputs), "rounds": args.rounds, "threads": args.threads, "systems": {}}
    last = list(runs)[-1]
    base = rows / median(runs[last])["cpu_seconds"]
    print(f"{rows} rows, {size / 1e6:.0f} MB NDJSON in {len(inputs)} files; {args.threads} threads; medians of {args.rounds}")
    for name, all_runs in runs.items():
        m = median(all_runs)
        m["rows_per_cpu_second"] = rows / m["cpu_seconds"]
        m["mb_per_second"] = size / 1e6 / m["seconds"]
        m["of_duckdb"] = m["rows_per_cpu_second"] / base
        result["systems"][name] = m
        print(f"  {name:26} {m['rows_per_cpu_second'] / 1e6:5.2f} M rows/CPU s ({m['of_duckdb']:.2f})  {m['seconds']:5.1f} s"
              f"  {m['mb_per_second']:5.0f} MB/s  {m['peak_rss_mb']:5.0f} MB RSS  {m['files']:.0f} files, {m['bytes'] / 1e6:.0f} MB")
    if not args.no_stages:
        result["stages"] = stages(data)
        for s in result["stages"]:
            print(f"  stage {s['stage']:20} {s['ns_per_row']:7.1f} ns/row  {s['allocs_per_row']:.4f} allocations/row")
    os.makedirs(os.path.dirname(args.out), exist_ok=True)
    with open(args.out, "w") as f:
        json.dump(result, f, indent=2)
        f.write("\n")


if __name__ == "__main__":
    main()
