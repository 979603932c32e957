"""Random Parquet files of other writers, joined in every mode, and random records
written, each compared with what went in. A case is its seed: the same seed is the
same files, with the same versions of the libraries.

    fuzz.py [--seconds N] [--from SEED] [--seeds N] [--only join|kill|write]
            [--writer NAME] [--keep DIR]     default: 20 seconds from seed 1 on

PyArrow and DuckDB write the files, and Polars, DataFusion and fastparquet, where
they are installed; "plain" are PyArrow's of types that a table has, "mixed" are a
table of several writers. Compared are the values bit by bit, in order, with their nulls, as PyArrow and
DuckDB (and Polars, where it is installed) read them; the schema with its logical
types, ids and metadata; what statistics, page index and page headers say, with
the values of each page (pagefacts.py); and the rows that DuckDB finds with what a
scan finds. Files of a case that failed are kept."""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BINARY = os.path.join(ROOT, "bin", "hivesink")
sys.path.insert(0, HERE)
import pagefacts  # noqa: E402
import randomfiles  # noqa: E402
from randomfiles import CODECS, Files, List, Map, Struct, polars  # noqa: E402
from samevalues import asColumns, conform, sameTables, single  # noqa: E402

# What PyArrow, DuckDB and Polars cannot write, or read back, of their own.
CANNOT = (pa.ArrowException, duckdb.Error, OverflowError, OSError)


def read(names):
    return pa.concat_tables([pq.ParquetFile(n).read().replace_schema_metadata(None) for n in names])


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


class Joiner:
    """The program that joins files in a mode that is asked for."""

    def __init__(self):
        self.p = None

    def ask(self, **request):
        if self.p is None:
            self.p = subprocess.Popen([os.path.join(ROOT, "bin", "joinfiles")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.p.stdin.write(json.dumps(request) + "\n")
        self.p.stdin.flush()
        line = self.p.stdout.readline()
        if not line:
            code, self.p = self.p.wait(), None
            raise AssertionError(f"{request['mode']}: the process died with {code}")
        return json.loads(line)


JOINER = Joiner()
ONLY = None  # a writer


def duck(names):
    db = duckdb.connect()
    db.execute("SET threads=1; SET TimeZone='UTC'")
    rel = "read_parquet([" + ", ".join("'" + n.replace("'", "''") + "'" for n in names) + "], hive_partitioning=false)"
    return db, rel


def duckRead(names):
    db, rel = duck(names)
    return db.sql(f"SELECT * FROM {rel}").to_arrow_table()


def finds(rng, name, table, inputs, times=4):
    """DuckDB finds by minima, maxima, page index and bloom filters what a scan finds,
    where it does in what the file was made of."""
    db, rel = duck([name])
    columns = [f for f in table.schema if not pa.types.is_nested(f.type) and not pa.types.is_dictionary(f.type) and not isinstance(f.type, pa.BaseExtensionType)]
    if not columns or not table.num_rows:
        return 0
    db.execute(f"CREATE TEMP TABLE scanned AS SELECT * FROM {rel}")
    n = 0
    for _ in range(times):
        f = rng.choice(columns)
        # DuckDB takes a column with statistics for one without NaN (docs/readers.md).
        if pa.types.is_floating(f.type) and pc.any(pc.is_nan(table.column(f.name).cast(pa.float64()))).as_py():
            continue
        op = rng.choice(["=", "<>", "<", "<=", ">", ">="])
        v = f"(SELECT any_value({quoted(f.name)}) FROM (SELECT {quoted(f.name)} FROM scanned OFFSET {rng.randrange(table.num_rows)} LIMIT 1))"
        value = db.execute(f"SELECT {v}").fetchone()[0]
        where = f"{quoted(f.name)} IS NULL" if value is None else f"{quoted(f.name)} {op} ?"
        args = [] if value is None else [value]
        got, want = (db.execute(f"SELECT count(*) FROM {t} WHERE {where}", args).fetchone()[0] for t in (rel, "scanned"))
        if got != want and inputs and db.execute(f"SELECT count(*) FROM {duck(inputs)[1]} WHERE {where}", args).fetchone()[0] != want:
            continue  # DataFusion and DuckDB hash decimals of 39 digits differently
        assert got == want, f"DuckDB finds {got} rows where {where} {args}, a scan {want}"
        n += 1
    return n


class Case:
    def __init__(self, seed, work):
        self.seed, self.work = seed, work
        self.rng = random.Random(seed)
        self.facts = 0

    def run(self):
        """Returns why the writer could not write such files, or wrote what is not so."""
        rng = self.rng
        writer = rng.choice(randomfiles.WRITERS if not ONLY else [ONLY])
        self.dir = f"{self.work}/t/p=0"
        os.makedirs(self.dir)
        try:
            self.files = Files(rng, writer)
            self.names = self.files.write(self.dir)
            self.before = read(self.names) if writer != "mixed" else pa.concat_tables(asColumns(pq.ParquetFile(n).read(), self.files.schema) for n in self.names)
            self.schemas = {str(pq.ParquetFile(n).schema).partition("\n")[2] for n in self.names}
            self.arrow = [pq.ParquetFile(n).schema_arrow for n in self.names]
            self.wrong = self.untold(self.names)
        except CANNOT as e:
            why = f"{writer}: {type(e).__name__} {str(e)[:60]}"
            return self.unread(why) if isinstance(e, OSError) else why
        try:
            self.duckBefore = duckRead(self.names) if len(self.schemas) == 1 else None
        except CANNOT:
            self.duckBefore = None
        self.polarsBefore = self.polars(self.names) if len(self.schemas) == 1 else None
        if self.files.plain:
            self.asTable()
        if len(self.schemas) > 1:
            return self.wrong
        self.copy()
        self.merge()
        if rng.random() < 0.3:
            self.merge()
        self.compact()
        return self.wrong

    def unread(self, why):
        """PyArrow does not read the files: DuckDB may."""
        if self.files.writer == "mixed":
            return why
        try:
            before = duckRead(self.names)
        except CANNOT:
            return why
        for mode in ("copy", "merge"):
            out = f"{self.work}/{mode}.parquet"
            answer = JOINER.ask(mode=mode, inputs=self.names, out=out, codec=self.rng.choice(CODECS[:5]), keep=self.rng.random() < 0.5)
            assert "error" not in answer, f"{mode}: {answer['error']}"
            sameTables(before, duckRead([out]), f"{mode}: DuckDB")
        return why + ", and DuckDB reads it"

    def untold(self, names):
        """What the writer says that is not so; then nothing that is said is looked at."""
        try:
            for n in names:
                pagefacts.check(n)
        except pagefacts.Wrong as e:
            return f"{self.files.writer}: it is wrong itself: {str(e)[:150]}"
        return None

    def told(self, name, merged=True):
        # A merge believes neither a page of lists that is said to be null (Arrow's Rust)
        # nor bounds of a page without values (Polars).
        if self.wrong is None or merged and ("null page True" in self.wrong or "of no values" in self.wrong):
            self.facts += pagefacts.check(name)[1]

    def polars(self, names):
        if polars is None or self.rng.random() < 0.7:
            return None
        try:
            return polars.concat([polars.read_parquet(n, hive_partitioning=False) for n in names]).to_arrow()
        except BaseException as e:  # it panics, too
            if isinstance(e, KeyboardInterrupt):
                raise
            return None

    def compare(self, what, name):
        after = pq.ParquetFile(name).read()
        if self.files.writer == "mixed":
            after = asColumns(after, self.files.schema)
        sameTables(self.before, after, f"{what}: PyArrow")
        schema = str(pq.ParquetFile(name).schema).partition("\n")[2]
        assert {schema} == self.schemas, f"{what}: the schema was {self.schemas}, is {schema}"
        fields = pq.ParquetFile(name).schema_arrow
        if all(a.equals(self.arrow[0]) for a in self.arrow):
            narrow = "indices=int8" in str(fields) + str(self.arrow[0]) or "indices=int16" in str(self.arrow[0])
            assert narrow or fields.remove_metadata().equals(self.arrow[0].remove_metadata(), check_metadata=True), f"{what}: {self.arrow[0]} is {fields}"
        self.told(name, what.startswith("merge") and self.copied == 0)
        if self.duckBefore is not None:
            sameTables(self.duckBefore, duckRead([name]), f"{what}: DuckDB")
            if self.before.num_columns == len(set(n.lower() for n in self.before.column_names)):
                try:
                    finds(self.rng, name, after, self.names)
                except duckdb.Error:
                    pass
        if self.polarsBefore is not None:
            sameTables(self.polarsBefore, polars.read_parquet(name, hive_partitioning=False).to_arrow(), f"{what}: Polars")

    def joined(self, mode, **more):
        out = f"{self.work}/{mode}.parquet"
        answer = JOINER.ask(mode=mode, inputs=self.names, out=out, **more)
        assert "error" not in answer, f"{mode} {more}: {answer['error']}"
        assert answer["rows"] == self.before.num_rows, f"{mode} {more}: {answer}"
        self.copied = answer["copied"]
        return out

    def copy(self):
        self.compare("copy", self.joined("copy"))

    def merge(self):
        codec = self.rng.choice(CODECS[:5])
        keep = self.rng.random() < 0.5
        out = self.joined("merge", codec=codec, keep=keep)
        self.compare(f"merge {codec} keep={keep}", out)
        meta = pq.ParquetFile(out).metadata
        codecs = {meta.row_group(g).column(c).compression.lower() for g in range(meta.num_row_groups) for c in range(meta.num_columns)}
        if not keep:
            assert codecs <= {{"none": "uncompressed"}.get(codec, codec)}, f"merge: {codecs}, {codec} was asked for"

    def compact(self):
        given = self.rng.choice([None, None] + CODECS[:5])
        before = [pq.ParquetFile(n).metadata.metadata or {} for n in self.names]
        config = f"{self.work}/compact.yaml"
        with open(config, "w") as f:
            f.write(f"pipeline: fuzz\ntable: {{name: t, location: {self.work}/t" + (f", compression: {given}" if given else "") + "}\ncompaction: {file_size: 4GB}\n")
        out = subprocess.run([BINARY, "compact", "-c", config, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert out.returncode == 0, f"compact: {out.returncode} {out.stdout} {out.stderr}"
        report = json.loads(out.stdout)
        names = sorted(os.path.join(self.dir, n) for n in os.listdir(self.dir))
        assert os.listdir(f"{self.work}/t") == ["p=0"], os.listdir(f"{self.work}/t")
        if len(names) > 1:
            # Days before 1582 are counted by a calendar that the files do not name (docs/compact.md).
            assert "read alike" in out.stdout, f"compact: {len(names)} files: {out.stdout}"
            return
        self.compare(f"compact {given} {report['targets_by_mode']}", names[0])
        if report["files_after"] == report["files_before"] == 1 and not report["targets_by_mode"]:
            return
        meta = pq.ParquetFile(names[0]).metadata.metadata or {}
        own = b"ARROW:schema"
        want = {k: v for k, v in before[0].items() if k != own and all(m.get(k) == v for m in before)}
        assert {k: v for k, v in meta.items() if k != own} == want, f"compact: metadata {meta}, not {want}"
        assert (own in meta) == all(own in m for m in before), f"compact: metadata {meta}"

    def asTable(self):
        """As the columns of a table that has wider ones, in another order, and more."""
        rng = self.rng
        columns = [(name, wider(rng, s)) for name, s, _ in self.files.sources if rng.random() < 0.9]
        rng.shuffle(columns)
        columns.insert(rng.randint(0, len(columns)), ("more", rng.choice(["string", "array<struct<a:int>>", "map<string,double>"])))
        texts = [f"{name} {t}" for name, t in columns]
        for mode in ("columns", "rewrite"):
            out = self.joined(mode, codec=rng.choice(CODECS[:5]), columns=texts)
            after = pq.ParquetFile(out).read()
            want = pa.table([conform(single(self.before.column(name)), after.schema.field(name).type) if name != "more" else pa.nulls(after.num_rows, after.schema.field(name).type)
                             for name, _ in columns], names=[name for name, _ in columns])
            sameTables(want, after, f"{mode} {texts}")
            self.told(out, self.copied == 0)
            finds(rng, out, after, None)


def hive(t):
    """The Hive type of an Arrow type."""
    ty = pa.types
    if ty.is_decimal(t):
        return f"decimal({t.precision},{t.scale})"
    return {"bool": "boolean", "int8": "tinyint", "int16": "smallint", "int32": "int", "int64": "bigint", "float": "float", "double": "double", "string": "string",
            "binary": "binary", "date32[day]": "date", "timestamp[us, tz=UTC]": "timestamp"}[str(t)]


def wider(rng, s):
    """The Hive type of a source, or one that it widens to."""
    if isinstance(s, Struct):
        return "struct<" + ",".join(f"{name}:{wider(rng, f)}" for name, f, _ in s.fields) + ">"
    if isinstance(s, List):
        return f"array<{wider(rng, s.element)}>"
    if isinstance(s, Map):
        return f"map<{hive(s.key.type)},{wider(rng, s.item)}>"
    t = s.type
    if rng.random() < 0.6:
        return hive(t)
    if pa.types.is_decimal(t):
        return f"decimal({rng.randint(t.precision, 38)},{t.scale})"
    return {"tinyint": "int", "smallint": "bigint", "int": "bigint", "float": "double", "string": "binary"}.get(hive(t), hive(t))


def kill(seed, work):
    """A compaction killed again and again: the rows are there at every moment, each once."""
    rng = random.Random(seed)
    before = {}
    for p in range(4):
        d = f"{work}/t/p={p}"
        os.makedirs(d)
        for attempt in range(20):
            try:
                files = Files(random.Random(seed * 1000 + p * 20 + attempt), "pyarrow")
                names = files.write(d)
                before[d] = read(names)
                break
            except CANNOT:
                for n in os.listdir(d):
                    os.remove(f"{d}/{n}")
    config = f"{work}/compact.yaml"
    with open(config, "w") as f:
        f.write(f"pipeline: fuzz\ntable: {{name: t, location: {work}/t}}\ncompaction: {{parallelism: 1}}\n")

    def look(what):
        for d, want in before.items():
            names = sorted(os.path.join(d, n) for n in os.listdir(d) if n.endswith(".parquet"))
            sameTables(want, read(names), f"{what}: {d}")

    command = [BINARY, "compact", "-c", config, "--json"]
    plan = json.loads(subprocess.run(command + ["--dry-run"], stdout=subprocess.PIPE, check=True).stdout)
    for p in plan["partitions"]:
        if p["files_after"] > 1:  # files that are not read alike change places
            shutil.rmtree(f"{work}/t/{p['partition']}")
            del before[f"{work}/t/{p['partition']}"]
    hits = 0
    for _ in range(rng.randint(2, 8)):
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(rng.uniform(0, 0.12))
        p.send_signal(signal.SIGKILL)
        p.communicate()
        hits += p.returncode == -signal.SIGKILL
        look(f"after kill {hits}")
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert out.returncode == 0, f"{out.returncode} {out.stdout} {out.stderr}"
    look("at the end")
    for d in before:
        assert len(os.listdir(d)) == 1, os.listdir(d)
    assert sorted(os.listdir(f"{work}/t")) == sorted(os.path.basename(d) for d in before), os.listdir(f"{work}/t")
    return hits


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--seconds", type=float, default=20)
    a.add_argument("--from", dest="first", type=int, default=1)
    a.add_argument("--seeds", type=int, default=10**9)
    a.add_argument("--only", choices=["join", "kill", "write"])
    a.add_argument("--keep", default=os.path.join(tempfile.gettempdir(), "hivesink-fuzz"))
    a.add_argument("--writer", choices=sorted(set(randomfiles.WRITERS)))
    o = a.parse_args()
    global ONLY
    ONLY = o.writer
    subprocess.run(["go", "build", "-o", os.path.join(ROOT, "bin", "joinfiles"), "./test/readers/joinfiles"], cwd=ROOT, check=True)
    end = time.time() + o.seconds
    count = {"join": 0, "kill": 0, "write": 0}
    passed, failed, facts = {}, 0, 0
    for seed in range(o.first, o.first + o.seeds):
        if time.time() > end:
            break
        kind = o.only or {0: "kill", 1: "write", 2: "write"}.get(seed % 20, "join")
        work = tempfile.mkdtemp(prefix="hivesink-")
        try:
            if kind == "join":
                case = Case(seed, work)
                why = case.run()
                facts += case.facts
                if why:
                    passed[why] = passed.get(why, 0) + 1
            elif kind == "kill":
                kill(seed, work)
            else:
                import randomrecords
                randomrecords.run(seed, work)
            count[kind] += 1
        except Exception as e:
            # PyArrow reads no nested dictionaries of more than one row group.
            if isinstance(e, pa.ArrowException) and ("dictionaries cannot be combined" in str(e) or "chunked array outputs" in str(e)):
                continue
            failed += 1
            kept = f"{o.keep}/{kind}-{seed}"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(work, kept)
            with open(f"{kept}/error", "w") as f:
                f.write(traceback.format_exc())
            print(f"seed {seed} ({kind}): {type(e).__name__} {str(e)[:600]}\n  kept in {kept}", flush=True)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    print(f"fuzz: {count['join']} joins, {count['kill']} kills, {count['write']} tables written; {facts} bounds compared; {failed} failed")
    for why, n in sorted(passed.items(), key=lambda p: -p[1])[:20]:
        print(f"  {n} times: {why}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
