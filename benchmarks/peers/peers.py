"""The same records through hivesink, Flink, Spark Structured Streaming, Polars and DuckDB.

    peers.py [--rows N] [--rounds N] [--codecs zstd,snappy] [--only NAME,...] [--no-crash]

One run, one table: rounds are interleaved, medians are shown, every output is
counted against the input. Results go to benchmarks/results/peers.json and into
docs/benchmarks.md. Needs Linux, Go and Python 3.11; Flink and Spark need Java.
Standard library only; the peers live in a venv of their own.
"""

import argparse
import glob
import json
import os
import platform
import re
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import crash  # noqa: E402
import fetch  # noqa: E402
import report  # noqa: E402
import systems  # noqa: E402
import tree  # noqa: E402

ROOT = fetch.ROOT
NAMES = ["hivesink", "duckdb", "polars", "spark", "flink"]


def prepare_input(rows, files, days):
    data = os.path.join(fetch.HOME, f"{rows}-{files}-{days}")
    if not os.path.exists(data):
        subprocess.run(["go", "run", "./benchmarks/gen", data + ".tmp", str(rows), str(files), str(days), "ndjson"], cwd=ROOT, check=True)
        os.rename(data + ".tmp", data)
    return data


def output(argv):
    return subprocess.run(argv, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True).stdout.strip()


def versions(python, java_line, have):
    packages = "import importlib.metadata as m; print(*[m.version(p) for p in ('duckdb', 'polars', 'pyspark')])"
    duckdb, polars, spark = output([python, "-c", packages]).split()
    found = {"hivesink": json.loads(output([systems.HIVESINK, "version", "--json"]))["version"] + " at " + output(["git", "rev-parse", "--short", "HEAD"]),
             "go": output(["go", "env", "GOVERSION"]), "python": platform.python_version(), "duckdb": duckdb, "polars": polars}
    if "spark" in have:
        found["spark"] = spark
    if "flink" in have:
        found["flink"] = next(name.split("==")[1] for kind, name, _ in fetch.pins() if kind == "pypi")
        found["flink_jars"] = [name for kind, name, _ in fetch.pins() if kind == "maven"]
    if java_line:
        found["java"] = java_line
    return found


def machine():
    with open("/proc/cpuinfo") as f:
        model = re.search(r"model name\s*:\s*(.*)", f.read())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cores": os.cpu_count(), "cpu": model.group(1) if model else platform.machine(), "memory_gib": round(memory / 2**30),
            "kernel": platform.release()}


class Results:
    """The runs by system, codec and checkpoint interval, in the order in which they first came."""

    def __init__(self, bench, rows):
        self.bench, self.rows, self.runs = bench, rows, {}

    def add(self, system, codec, interval, measured, table):
        run = measured | self.bench.contents(table)
        self.runs.setdefault((system, codec, interval), []).append(run)
        print(f"  {system:22} {codec:6} {interval:8} {run['seconds']:6.1f} s {run['cpu_seconds']:6.1f} CPU s"
              f" {run['peak_rss_mb']:6.0f} MB {run['files']:4} files  others {run['others_share']:3.0%}  {'exact' if run['exact'] else 'NOT EXACT'}", flush=True)

    def medians(self):
        out = []
        for (system, codec, interval), runs in self.runs.items():
            row = {"system": system, "codec": codec, "checkpoint": interval, "runs": len(runs), "exact": sum(r["exact"] for r in runs)}
            for key in runs[0]:
                if key == "exact":
                    continue
                values = [r[key] for r in runs if r[key] is not None]
                row[key] = statistics.median(values) if values else None
            row["rows_per_cpu_second"] = self.rows / row["cpu_seconds"]
            row["cpu_seconds_all"] = [round(r["cpu_seconds"], 2) for r in runs]
            out.append(row)
        return out


def one_round(bench, results, codec, have):
    def single(system, interval, run):
        bench.clean()
        results.add(system, codec, interval, run(), bench.path("out"))

    if "hivesink" in have:
        for interval in ("10s", "2s", "1s"):
            single("hivesink", interval.replace("s", " s"), lambda: systems.hivesink(bench, codec, interval))
    if "duckdb" in have:
        single("DuckDB", "none", lambda: systems.duckdb(bench, codec))
    if "polars" in have:
        single("Polars", "none", lambda: systems.polars(bench, codec))
    if "spark" in have:
        single("Spark Structured Str.", "a file", lambda: systems.spark(bench, codec))
    if "flink" in have:
        bench.clean()
        systems.flink_round(bench, codec, lambda name, interval, m, table: results.add(name, codec, interval, m, table))


def crashes(bench, results, codec, have, save):
    """Kills, as far as the systems' times without a kill are known; save takes those so far."""
    known = {key[0]: statistics.median(r["seconds"] for r in runs) for key, runs in results.runs.items()
             if key[1] == codec and key[2] in ("1 s", "a file", "2 s")}
    names = {"hivesink": "hivesink", "spark": "Spark Structured Str.", "flink": "Flink, warm cluster"}
    seconds = {n: known[full] for n, full in names.items() if full in known}
    found = []

    def add(system, interval, moment, result):
        if result is None:
            print(f"  {system:22} had ended before the kill: {moment}", flush=True)
            return
        found.append({"system": system, "checkpoint": interval, "moment": moment} | result)
        save(found)
        print(f"  {system:22} {interval:9} killed {moment:22} {report.verdict(result)}", flush=True)

    crash.all_systems(bench, codec, seconds, set(seconds) & have, add)


def save(args, setup, results, more=None):
    shares = [r["others_share"] for runs in results.runs.values() for r in runs]
    result = {"rows": results.rows} | setup | {
        "others_share_median": statistics.median(shares), "others_share_max": max(shares), "systems": results.medians()} | (more or {})
    os.makedirs(os.path.dirname(args.out), exist_ok=True)
    with open(args.out, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    report.write(args.out, args.docs)
    return result


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=5_000_000)
    p.add_argument("--files", type=int, default=8)
    p.add_argument("--days", type=int, default=10)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--patience", type=float, default=0, help="minutes to wait, before each run, until the machine is quiet")
    p.add_argument("--codecs", default="zstd", help="zstd, snappy or both")
    p.add_argument("--only", default=",".join(NAMES))
    p.add_argument("--no-crash", action="store_true")
    p.add_argument("--out", default=os.path.join(ROOT, "benchmarks", "results", "peers.json"))
    p.add_argument("--docs", default=os.path.join(ROOT, "docs", "benchmarks.md"))
    p.add_argument("--report", action="store_true", help="measure nothing, write the documents of the last result")
    args = p.parse_args()
    if args.report:
        return report.show(report.write(args.out, args.docs))

    have = set(args.only.split(","))
    if have - set(NAMES):
        sys.exit(f"peers: --only: unknown {', '.join(sorted(have - set(NAMES)))}; known are {', '.join(NAMES)}")
    java, line = fetch.java()
    if not java and have & {"spark", "flink"}:
        print(f"peers: {line}. They are left out.")
        have -= {"spark", "flink"}
    python = fetch.venv()
    home = fetch.flink() if "flink" in have else None
    data = prepare_input(args.rows, args.files, args.days)
    bench = systems.Bench(data, os.path.join(fetch.HOME, "work"), python, java, home, args.threads, args.patience)
    rows = bench.count_input()
    checked = tree.check(os.path.join(fetch.HOME, "check"))
    print(f"measuring a known load: {checked}")

    setup = {"bytes_in": sum(os.path.getsize(f) for f in glob.glob(f"{data}/*.ndjson")), "files_in": args.files,
             "partitions": len(bench.want), "threads": args.threads, "machine": machine(),
             "versions": versions(python, line if java else None, have), "measuring_checked": checked}
    results = Results(bench, rows)
    for n in range(args.rounds):
        for codec in args.codecs.split(","):
            print(f"round {n + 1} of {args.rounds}, {codec}")
            one_round(bench, results, codec, have)
        # After every round, and every kill: an hour of measuring must not be lost to
        # whoever stops it, or to a system that does not start.
        result = save(args, setup | {"rounds": n + 1}, results)
    if not args.no_crash:
        def save_kills(found):
            nonlocal result
            result = save(args, setup | {"rounds": args.rounds}, results, {"crashes": found})

        crashes(bench, results, args.codecs.split(",")[0], have, save_kills)
    bench.clean()
    report.show(result)
    if any(s["exact"] < s["runs"] for s in result["systems"] if s["system"] == "hivesink"):
        sys.exit("peers: a table of hivesink is not exact")


if __name__ == "__main__":
    main()
