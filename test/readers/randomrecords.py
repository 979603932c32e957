"""Random records of random columns through `hivesink run`, from NDJSON and CSV, and
the table that comes of them."""

import base64
import datetime
import decimal
import glob
import json
import os
import random
import struct
import subprocess

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import pagefacts
import randomfiles
import randomvalues

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BINARY = os.path.join(ROOT, "bin", "hivesink")
UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=UTC)

CONFIG = """
pipeline: fuzz
state_dir: {work}/state
source:
  files: {{paths: ["{work}/rows.*"]}}
  format: {format}
table:
  name: t
  location: {work}/t
  columns: {columns}
  partitioned_by: {partitions}
  compression: {codec}
  parquet: {{timestamps: {timestamps}, decimals: {decimals}}}
rolling: {{rows: {rolling}}}
checkpoint: {{interval: 50ms}}
compaction: {{policy: "{policy}"}}
"""


def drawn(rng, depth):
    """A Hive type, and a function that draws a value of it: as JSON has it, and as it is read."""
    kind = rng.choice(["array", "map", "struct"]) if depth and rng.random() < 0.4 else "leaf"
    if kind == "leaf":
        return leaf(rng)
    if kind == "struct":
        fields = [(n, *drawn(rng, depth - 1)) for n in rng.sample(["a", "b", "c"], rng.randint(1, 3))]

        def value():
            out, want = {}, {}
            for n, _, draw in fields:
                v, w = (None, None) if rng.random() < 0.2 else draw()
                if v is not None or rng.random() < 0.5:
                    out[n] = v
                want[n] = w
            return out, want
        return "struct<" + ",".join(f"{n}:{t}" for n, t, _ in fields) + ">", value
    t, draw = drawn(rng, depth - 1)
    item = lambda: (None, None) if rng.random() < 0.2 else draw()
    size = lambda: rng.choice([0, 0, 1, 2, 3, 30 if rng.random() < 0.05 else 1])
    if kind == "array":
        def value():
            both = [item() for _ in range(size())]
            return [v for v, _ in both], [w for _, w in both]
        return f"array<{t}>", value

    def value():
        both = {f"k{i}": item() for i in range(size())}
        return {k: v for k, (v, _) in both.items()}, [(k, w) for k, (_, w) in both.items()]
    return f"map<string,{t}>", value


def leaf(rng):
    kind = rng.choice(["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal", "string", "string", "varchar", "binary", "date", "timestamp"])
    pool = [one(rng, kind) for _ in range(rng.choice([1, 3, 20, 500]))] if kind not in ("decimal", "varchar") else None
    if kind == "decimal":
        p = rng.choice([1, 5, 9, 10, 18, 19, 38])
        s = rng.randint(0, p)
        most = 10**p - 1
        pool = []
        for v in randomvalues.integers(rng, -most, most, 50):
            d = decimal.Decimal(v).scaleb(-s)
            pool.append((f"{d:f}", d))
        return f"decimal({p},{s})", lambda: rng.choice(pool)
    if kind == "varchar":
        pool = [(t[:20], t[:20]) for t in texts(rng)]
        return "varchar(20)", lambda: rng.choice(pool)
    return kind, lambda: rng.choice(pool)


def texts(rng):
    return [t.replace("\ud7ff", "z") for t in randomvalues.texts(rng, 20)]


def one(rng, kind):
    if kind == "boolean":
        v = rng.random() < 0.5
        return v, v
    if kind in ("tinyint", "smallint", "int", "bigint"):
        bits = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}[kind]
        v = randomvalues.integers(rng, -(1 << bits - 1), (1 << bits - 1) - 1, 1)[0]
        return v, v
    if kind in ("float", "double"):
        bits, form = (32, "f") if kind == "float" else (64, "d")
        v = float("nan")
        while v != v or v in (float("inf"), -float("inf")):
            v = struct.unpack(form, randomvalues.floats(rng, bits, 1)[0].to_bytes(bits // 8, "little"))[0]
        return v, v
    if kind == "binary":
        v = randomvalues.blobs(rng, 1)[0]
        return base64.b64encode(v).decode(), v
    if kind == "date":
        d = datetime.date.fromordinal(rng.choice([1, 3652059, 719163, rng.randint(1, 3652059), 738000 + rng.randrange(30)]))
        return d.isoformat(), d
    if kind == "timestamp":
        us = rng.choice([0, -1, rng.randint(-62135596800000000, 253402300799999999), 1767225600000000 + rng.randrange(10**9)])
        t = EPOCH + datetime.timedelta(microseconds=us)
        text = t.strftime("%H:%M:%S.%f")
        return f"{t.year:04}-{t.month:02}-{t.day:02}{rng.choice('T ')}{text}Z", t
    v = rng.choice(texts(rng))
    return v, v


def csvField(v):
    if v is None:
        return ""
    if isinstance(v, bool):
        return str(v).lower()
    text = v if isinstance(v, str) else repr(v) if isinstance(v, float) else json.dumps(v, ensure_ascii=False)
    return '"' + text.replace('"', '""') + '"' if text == "" or set(text) & set(',"\r\n') or text != text.strip() else text


def run(seed, work):
    rng = random.Random(seed)
    form = rng.choice(["json", "csv"])
    columns = [(f"c{i}", *drawn(rng, rng.choice([0, 0, 1, 3]))) for i in range(rng.choice([1, 2, 4, 8]))]
    n = rng.choice([1, 10, 200, 1000, 3000])
    rows, want = [], []
    nulls = {name: rng.choice([0, 0.05, 0.5, 1]) for name, _, _ in columns}
    for i in range(n):
        r, w = {"id": i, "k": rng.choice(["a", "b", None])}, {"id": i}
        for name, _, draw in columns:
            v, x = (None, None) if rng.random() < nulls[name] else draw()
            r[name], w[name] = v, x
        rows.append(r)
        want.append(w)
    with open(f"{work}/rows.{form}", "w", newline="", encoding="utf-8") as f:
        names = ["id", "k"] + [c[0] for c in columns]
        if form == "csv":
            f.write(",".join(names) + "\n")
        for r in rows:
            if form == "csv":
                f.write(",".join(csvField(r[c]) for c in names) + "\n")
            else:
                f.write(json.dumps({k: v for k, v in r.items() if v is not None or rng.random() < 0.5}, ensure_ascii=rng.random() < 0.5) + "\n")
    config = f"{work}/t.yaml"
    with open(config, "w") as f:
        f.write(CONFIG.format(work=work, format=form, columns=json.dumps(["id bigint"] + [f"{c} {t}" for c, t, _ in columns] + ["k string"]),
                              partitions=rng.choice(["[]", "[k]"]), codec=rng.choice(randomfiles.CODECS[:5]),
                              timestamps=rng.choice(["int64", "int64", "int96"]), decimals=rng.choice(["shortest", "fixed"]),
                              rolling=rng.choice([7, 100, 1000000]) if n < 1000 else rng.choice([100, 1000000]), policy=rng.choice(["hold", "checkpoint", "off"])))
    out = subprocess.run([BINARY, "run", "-c", config, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert out.returncode == 0, (out.returncode, out.stderr[-2000:])
    summary = json.loads(out.stdout.strip().splitlines()[-1])
    assert summary["rows_bad"] == 0 and summary["rows_visible"] == n, summary
    files = glob.glob(f"{work}/t/**/*.parquet", recursive=True)
    tables = [pq.ParquetFile(f, coerce_int96_timestamp_unit="us").read(columns=["id"] + [c[0] for c in columns]) for f in files]
    got = pa.concat_tables(tables)
    got = got.take(pc.sort_indices(got.column("id"))).to_pylist()
    for g, w in zip(got, want):
        for name in w:
            a, b = plain(g[name]), plain(w[name])
            assert a == b, f"row {w['id']}, {name}: {str(w[name])[:300]!r} became {str(g[name])[:300]!r}"
    assert len(got) == n
    for f in files:
        pagefacts.check(f)


def plain(v):
    if isinstance(v, dict):
        return tuple((k, plain(x)) for k, x in v.items())
    if isinstance(v, (list, tuple)):
        return tuple(plain(x) for x in v)
    if isinstance(v, float):
        return struct.pack("d", v)
    if isinstance(v, datetime.datetime):
        return v.replace(tzinfo=None) if v.tzinfo is None else v.astimezone(UTC).replace(tzinfo=None)
    return v
