"""The part of the compaction benchmark that needs other people's programs:
small files of PyArrow and DuckDB, DuckDB doing the same job, and DuckDB as the
reader who counts what came out. Run by the Go program beside it, which hands
the job over on standard input and reads the answer from standard output.

    duck.py convert|join|start|check
"""

import json
import os
import resource
import sys
import time


def cpu():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def proc(name, key):
    """A number of a file of /proc, 0 where there is none."""
    try:
        with open(name) as f:
            for line in f:
                if line.startswith(key):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def convert(job):
    """Writes each file again, in place, as another writer writes it."""
    s = job["scenario"]
    if s["writer"] == "PyArrow":
        import pyarrow.parquet as pq
        for name in job["inputs"][0]:
            table = pq.ParquetFile(name).read()
            pq.write_table(table, name, compression=s["codec_in"], row_group_size=s["rows_per_row_group"],
                           write_page_index=True)
        return {}
    db = duck(1)
    for name in job["inputs"][0]:
        db.execute(f"COPY (FROM read_parquet('{name}')) TO '{name}.tmp' "
                   f"(FORMAT parquet, COMPRESSION {s['codec_in']}, ROW_GROUP_SIZE {s['rows_per_row_group']})")
        os.rename(name + ".tmp", name)
    return {}


def duck(threads):
    import duckdb
    return duckdb.connect(config={"threads": threads})


def listed(names):
    return "[" + ", ".join(f"'{n}'" for n in names) + "]"


def join(job):
    """Makes one file of each target's inputs, and syncs it. What is timed is
    the queries: Python and DuckDB have started."""
    db = duck(job["threads"])
    db.execute("SELECT 42").fetchall()
    started, before, written = time.monotonic(), cpu(), proc("/proc/self/io", "wchar:")
    outputs, syncing = [], 0.0
    for i, inputs in enumerate(job["inputs"]):
        name = f"{job['dir']}/target-{i:05d}.parquet"
        db.execute(f"COPY (FROM read_parquet({listed(inputs)})) TO '{name}' "
                   f"(FORMAT parquet, COMPRESSION {codec(job)}, ROW_GROUP_SIZE 131072)")
        syncing -= time.monotonic()
        with open(name, "rb") as f:
            os.fsync(f.fileno())
        syncing += time.monotonic()
        outputs.append(name)
    return {"seconds": time.monotonic() - started, "cpu_seconds": cpu() - before, "sync_seconds": syncing,
            "bytes_written": proc("/proc/self/io", "wchar:") - written, "outputs": outputs,
            "peak_rss_mb": proc("/proc/self/status", "VmHWM:") * 1024 / 1e6}


def codec(job):
    return {"none": "uncompressed", "lz4": "lz4_raw"}.get(job["codec"], job["codec"])


def start(job):
    """Nothing but the start of Python and DuckDB."""
    duck(job["threads"]).execute("SELECT 42").fetchall()
    return {}


def check(job):
    """Counts the rows, sums up a hash of every column, and looks at the order
    of the rows, of the inputs and of what each mode made of them; then times
    readers of each."""
    db = duck(2)
    files = [n for target in job["inputs"] for n in target]
    columns = [(c[0], c[1]) for c in db.execute(f"DESCRIBE FROM read_parquet('{files[0]}')").fetchall()]
    want = digest(db, files, columns)
    answer = {"modes": {}, "rows": want[0]}
    for mode, outputs in job["outputs"].items():
        try:
            got = digest(db, outputs, columns)
        except Exception as err:  # a file that DuckDB refuses is a fault of who wrote it
            answer["modes"][mode] = {"fault": f"DuckDB: {err}"}
            continue
        out_of_order = db.execute(
            f"SELECT count(*) FROM (SELECT count(DISTINCT id - file_row_number) AS runs "
            f"FROM read_parquet({listed(outputs)}, file_row_number = true, filename = true) GROUP BY filename) WHERE runs <> 1").fetchone()[0]
        fault = ""
        if got[0] != want[0]:
            fault = f"{got[0]} rows, want {want[0]}"
        elif got != want:
            wrong = [c[0] for c, g, w in zip(columns, got[1:], want[1:]) if g != w]
            fault = f"other values in {', '.join(wrong)}"
        elif out_of_order:
            fault = f"{out_of_order} files have their rows in another order"
        answer["modes"][mode] = {"fault": fault}
    for mode, scans in readers(job, job["outputs"]).items():
        answer["modes"][mode]["scans"] = scans
    return answer


def digest(db, files, columns):
    """Rows, and the sum of a hash of each column. A timestamp is hashed as the
    instant it is, so that its unit and zone do not count."""
    sums = []
    for name, kind in columns:
        value = f'"{name}"'
        if kind.startswith("TIMESTAMP"):
            value = f"epoch_us({value})"
        sums.append(f"sum(hash({value})::HUGEINT)")
    return db.execute(f"SELECT count(*), {', '.join(sums)} FROM read_parquet({listed(files)})").fetchone()


def readers(job, outputs):
    """CPU milliseconds of each query over each set of files, one thread, sets
    alternating; medians: what a reader pays."""
    db = duck(1)
    first = next(iter(outputs.values()))
    number, text = job["sum"], job["filter"]
    value, low = db.execute(f"SELECT any_value({text}), min(id) FROM read_parquet('{first[0]}')").fetchone()
    queries = {
        "count + sum": f"SELECT count(*), sum({number}) FROM %s",
        "point filter": f"SELECT count(*), max(id) FROM %s WHERE {text} = '{value}'",
        "id range": f"SELECT count(*) FROM %s WHERE id BETWEEN {low + 1000} AND {low + 3000}",
        "count(*)": "SELECT count(*) FROM %s",
    }
    sets = {mode: f"read_parquet({listed(names)})" for mode, names in outputs.items() if mode in job["scan"]}
    answer = {mode: {} for mode in sets}
    for query, sql in queries.items():
        took = {mode: [] for mode in sets}
        until = time.monotonic() + 0.4 * len(sets)
        while time.monotonic() < until or len(next(iter(took.values()))) < 5:
            for mode, source in sets.items():
                before = time.process_time()
                db.execute(sql % source).fetchall()
                took[mode].append(1000 * (time.process_time() - before))
        for mode, times in took.items():
            answer[mode][query] = min(times)
    return answer


if __name__ == "__main__":
    task = {"convert": convert, "join": join, "start": start, "check": check}[sys.argv[1]]
    json.dump(task(json.load(sys.stdin)), sys.stdout)
