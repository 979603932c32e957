"""The targets of the ingest benchmark, and whether a result meets them."""

# Rows per CPU second of Flink 2.3 (filesystem sink, compaction on) as a share of
# DuckDB's with zstd, both measured on the same machine with the same rows:
# 0.16 M on a warm cluster with a checkpoint every 10 s, 0.065 M every 2 s, and
# 0.93 M. `make bench-peers` measures them directly.
FLINK_10S, FLINK_2S = 0.16 / 0.93, 0.065 / 0.93


def figures(r):
    """Every target whose figure was measured: (text, value, relation, bound)."""
    s = r["systems"]
    get = lambda name, key: s.get(name, {}).get(key)
    j10, j1 = get("NDJSON, checkpoint 10s", "rows_per_cpu_second"), get("NDJSON, checkpoint 1s", "rows_per_cpu_second")
    a10, a1 = get("Arrow, checkpoint 10s", "rows_per_cpu_second"), get("Arrow, checkpoint 1s", "rows_per_cpu_second")
    ratio = lambda a, b: a / b if a and b else None
    small = "small files, checkpoint 10s"
    rows = [
        ("NDJSON, 10 s: rows per CPU second, of DuckDB's", get("NDJSON, checkpoint 10s", "of_duckdb"), ">=", 0.9),
        ("NDJSON, 1 s: of DuckDB's", get("NDJSON, checkpoint 1s", "of_duckdb"), ">=", 0.7),
        ("NDJSON, 10 s: of a warm Flink cluster's, through DuckDB's", ratio(get("NDJSON, checkpoint 10s", "of_duckdb"), FLINK_10S), ">=", 5),
        ("NDJSON, 1 s: of Flink's at 2 s, through DuckDB's", ratio(get("NDJSON, checkpoint 1s", "of_duckdb"), FLINK_2S), ">=", 10),
        ("library, 10 s: of the NDJSON figure", ratio(a10, j10), ">=", 1.5),
        ("library, 1 s: of the NDJSON figure", ratio(a1, j1), ">=", 1.5),
        ("allocations per row, whole run", r.get("allocs_per_row"), "<=", 0.1),
        ("two readers, of one", r.get("readers", {}).get("ratio"), ">=", 1.7),
        ("NDJSON, 10 s: peak RSS, MB", get("NDJSON, checkpoint 10s", "peak_rss_mb"), "<=", 500),
        ("NDJSON, 1 s: peak RSS, MB", get("NDJSON, checkpoint 1s", "peak_rss_mb"), "<=", 500),
        ("CSV, 10 s: peak RSS, MB", get("CSV, checkpoint 10s", "peak_rss_mb"), "<=", 500),
        ("small files, 10 s: peak RSS, MB", get(small, "peak_rss_mb"), "<=", 500),
    ]
    for name, system in s.items():
        if name.startswith("Kafka"):
            rows.append((f"{name}: rows per CPU second, of the files'", system["of_files"], ">=", 0.7))
            rows.append((f"{name}: peak RSS, MB", system["peak_rss_mb"], "<=", 1074))  # limits.memory, by default 1 GB
    return [row for row in rows if row[1] is not None]


def judge(result):
    """Prints each target with its figure; returns them and how many are missed."""
    out, missed = [], 0
    for text, value, relation, bound in figures(result):
        met = value >= bound if relation == ">=" else value <= bound
        missed += not met
        out.append({"target": text, "value": value, "want": f"{relation} {bound:g}", "met": met})
        print(f"  {'pass' if met else 'MISS'}  {text}: {value:.3g} (want {relation} {bound:g})")
    return out, missed
