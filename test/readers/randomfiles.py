"""Random Parquet files of PyArrow, DuckDB and Polars: types, nesting, values and
the writer's options, all drawn from one seed."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from randomvalues import pool

def optional(name):
    try:
        return __import__(name)
    except ImportError:  # it is not among the requirements
        return None


polars, datafusion, fastparquet = optional("polars"), optional("datafusion"), optional("fastparquet")
WRITERS = ["pyarrow"] * 8 + ["plain"] * 3 + ["duckdb"] * 2 + ["polars"] * bool(polars) + ["datafusion"] * 3 * bool(datafusion) + ["fastparquet"] * bool(fastparquet) + ["mixed"] * 3
MIXED = ["pyarrow", "pyarrow", "duckdb"] + ["polars"] * bool(polars) + ["datafusion"] * bool(datafusion)

CODECS = ["snappy", "zstd", "gzip", "lz4", "none", "brotli"]
LEVELS = {"zstd": 9, "gzip": 9, "brotli": 6}


class Leaf:
    """Values of one type, drawn from a pool that all files share or their own."""

    def __init__(self, rng, t, nullable=True):
        self.rng, self.type, self.nullable = rng, t, nullable or pa.types.is_null(t)
        self.share = rng.random() < 0.6
        self.size = rng.choice([1, 2, 7, 30, 300, 3000])
        self.values = None

    def pool(self):
        if self.values is None or not self.share:
            t = self.type.value_type if pa.types.is_dictionary(self.type) else self.type
            self.values = pool(self.rng, t, self.size)
        return self.values

    def array(self, n):
        t, rng = self.type, self.rng
        if pa.types.is_null(t):
            return pa.nulls(n)
        values = self.pool()
        most = len(values)
        if pa.types.is_dictionary(t):
            most = min(most, 1 << 7 if t.index_type == pa.int8() else 1 << 15)
            values = values.slice(0, most)
        ids = rng.choices(range(most), k=n)
        how = rng.random()
        if how < 0.2:
            ids.sort()
        elif how < 0.4:
            ids = [i % most for i in range(n)]
        elif how < 0.5:
            ids = [i // 100 % most for i in range(n)]
        if self.nullable:
            ids = sprinkle(rng, ids)
        ids = pa.array(ids, t.index_type if pa.types.is_dictionary(t) else pa.int32())
        if pa.types.is_dictionary(t):
            return pa.DictionaryArray.from_arrays(ids, values)
        out = values.take(ids)
        return out.cast(t) if out.type != t else out


class Struct:
    def __init__(self, rng, fields, nullable=True):
        self.rng, self.fields, self.nullable = rng, fields, nullable
        self.type = pa.struct([pa.field(name, s.type, s.nullable, metadata=m) for name, s, m in fields])

    def array(self, n):
        mask = pa.array([m is None for m in sprinkle(self.rng, [0] * n)] if self.nullable else [False] * n, pa.bool_())
        return pa.StructArray.from_arrays([s.array(n) for _, s, _ in self.fields], fields=list(self.type), mask=mask)


class List:
    def __init__(self, rng, element, kind, nullable=True):
        self.rng, self.element, self.kind, self.nullable = rng, element, kind, nullable
        f = pa.field("element", element.type, element.nullable)
        self.width = rng.choice([1, 2, 5])
        self.type = {"list": pa.list_(f), "large": pa.large_list(f), "fixed": pa.list_(f, self.width)}[kind]

    def array(self, n):
        lengths = sprinkle(self.rng, lengthsOf(self.rng, n)) if self.nullable else lengthsOf(self.rng, n)
        mask = pa.array([x is None for x in lengths], pa.bool_())
        if self.kind == "fixed":
            return pa.FixedSizeListArray.from_arrays(self.element.array(n * self.width), type=self.type, mask=mask)
        offsets, total = offsetsOf(lengths)
        make, index = (pa.LargeListArray, pa.int64()) if self.kind == "large" else (pa.ListArray, pa.int32())
        return make.from_arrays(pa.array(offsets, index), self.element.array(total), type=self.type, mask=mask)


class Map:
    distinct = False

    def __init__(self, rng, key, item, nullable=True):
        self.rng, self.key, self.item, self.nullable = rng, key, item, nullable
        self.type = pa.map_(key.type, pa.field("value", item.type, item.nullable))

    def array(self, n):
        lengths = sprinkle(self.rng, lengthsOf(self.rng, n)) if self.nullable else lengthsOf(self.rng, n)
        offsets, total = offsetsOf(lengths)
        if self.nullable:
            offsets = [None if x is None else o for x, o in zip(lengths, offsets)] + offsets[-1:]
        keys = self.key.array(total)
        if self.distinct:  # DuckDB refuses a key that comes twice
            keys = pa.array([i % 701 for i in range(total)], pa.int32()).cast(self.key.type)
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, self.item.array(total)).cast(self.type)


def lengthsOf(rng, n):
    how = rng.random()
    if how < 0.15:
        return [0] * n
    if how < 0.25:
        return [rng.choice([0, 1, 1, 40]) for _ in range(n)]
    if how < 0.3 and n < 200:
        return [700 if i == n // 2 else 0 for i in range(n)]
    return [rng.randint(0, 3) for _ in range(n)]


def offsetsOf(lengths):
    out, at = [0], 0
    for x in lengths:
        at += x or 0
        out.append(at)
    return out, at


def sprinkle(rng, values):
    """Nulls among values: none, few, half, all, in runs."""
    how = rng.random()
    n = len(values)
    if how < 0.25:
        return values
    if how < 0.5:
        return [None if rng.random() < 0.05 else v for v in values]
    if how < 0.7:
        return [None if rng.random() < 0.5 else v for v in values]
    if how < 0.8:
        return [None] * n
    run = rng.choice([3, 50, 1000])
    return [None if i // run % 2 else v for i, v in enumerate(values)]


def plainTypes(rng):
    """The types that every writer here has."""
    p = rng.choice([1, 4, 9, 10, 18, 19, 38])
    return rng.choice([pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.decimal128(p, rng.randint(0, p)),
                       pa.string(), pa.string(), pa.binary(), pa.date32(), pa.timestamp("us", "UTC")])


def duckTypes(rng):
    return rng.choice([plainTypes(rng), plainTypes(rng), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.time64("us"), pa.timestamp("us"), pa.timestamp("ns"),
                       pa.timestamp("ms"), pa.timestamp("s"), pa.dictionary(pa.int32(), pa.string())])


def polarsTypes(rng):
    return rng.choice([plainTypes(rng), plainTypes(rng), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.time64("ns"), pa.timestamp("ns"), pa.timestamp("ms"),
                       pa.duration("us"), pa.large_string(), pa.null()])


def rustTypes(rng):
    return rng.choice([plainTypes(rng), plainTypes(rng), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.time64("us"), pa.time32("ms"), pa.timestamp("ns"), pa.timestamp("ms"),
                       pa.timestamp("us"), pa.large_string(), pa.binary(5), pa.decimal256(50, 3), pa.dictionary(pa.int32(), pa.string()), pa.float16()])


def frameTypes(rng):
    return rng.choice([pa.bool_(), pa.int8(), pa.int32(), pa.int64(), pa.uint16(), pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.string(), pa.binary(), pa.timestamp("ns")])


def arrowTypes(rng):
    if rng.random() < 0.4:
        return duckTypes(rng)
    p = rng.choice([1, 2, 5, 9, 10, 18, 19, 38, 39, 57, 76])
    value = rng.choice([pa.string(), pa.string(), pa.int64(), pa.binary(), pa.float64(), pa.binary(3), pa.decimal128(7, 2)])
    zone = rng.choice([None, "UTC", "Europe/Berlin", "+05:30"])
    return rng.choice([
        pa.float16(), pa.large_string(), pa.large_binary(), pa.binary(rng.choice([1, 2, 4, 12, 16, 40])), pa.date64(), pa.time32(rng.choice(["s", "ms"])),
        pa.time64(rng.choice(["us", "ns"])), pa.timestamp(rng.choice(["s", "ms", "us", "ns"]), zone), pa.duration(rng.choice(["s", "ms", "us", "ns"])),
        pa.decimal256(p, rng.randint(0, p)), pa.decimal128(min(p, 38), rng.randint(0, min(p, 38))), pa.null(),
        pa.dictionary(rng.choice([pa.int8(), pa.int16(), pa.int32()]), value), pa.float32(), pa.float64()])


def source(rng, types, depth, nullable, kinds=("struct", "list", "large", "fixed", "map")):
    """A tree of the above."""
    if depth == 0 or rng.random() < 0.6:
        return Leaf(rng, types(rng), nullable)
    inner = lambda null=True: source(rng, types, depth - 1, null and rng.random() < 0.75, kinds)
    kind = rng.choice(kinds)
    if kind == "struct":
        return Struct(rng, [(name, inner(), fieldMeta(rng)) for name in rng.sample(FIELDS[types is plainTypes], rng.randint(1, 3))], nullable)
    if kind == "map":
        return Map(rng, Leaf(rng, rng.choice([pa.string(), pa.int32(), pa.string()]), False), inner(), nullable)
    return List(rng, inner(), kind, nullable)


# Of structs; those of a table of hivesink's are plain.
FIELDS = {True: ["a", "b", "c", "list"], False: ["a", "b", "c d", "é", "list"]}


def fieldMeta(rng):
    how = rng.random()
    if how < 0.7:
        return None
    if how < 0.9:
        return {"PARQUET:field_id": str(rng.choice([0, 1, 7, 12345]))}
    return {"comment": "x"}


NAMES = ["a", "b", "Upper", "with space", "dot.ted", "ünï", "列", "x" * 70, "element", "key", "0", 'quo"te']


class Files:
    """The files of one seed: rows of one schema, in a random number of files."""

    def __init__(self, rng, writer):
        self.rng, self.writer = rng, writer
        self.plain = writer in ("plain", "mixed")  # types that a table of hivesink's can have
        types, kinds = {"pyarrow": (arrowTypes, ("struct", "list", "large", "fixed", "map")), "plain": (plainTypes, ("struct", "list", "map")), "mixed": (plainTypes, ("struct", "list")),
                        "duckdb": (duckTypes, ("struct", "list", "map")), "polars": (polarsTypes, ("struct", "large")),
                        "datafusion": (rustTypes, ("struct", "list", "map")), "fastparquet": (frameTypes, ())}[writer]
        columns = rng.choice([1, 1, 2, 3, 5, 8])
        self.most = rng.choice([3, 50, 300, 300, 1500, 5000, 9000]) // (1 if columns < 3 else 3)
        depth = rng.choice([0, 1, 2, 3]) if kinds else 0
        if rng.random() < 0.03:  # row groups that are kept, beside such that are joined
            columns, depth, self.most = 1, 0, 90000
        names = [f"c{i}" for i in range(columns)] if self.plain or rng.random() < 0.6 else rng.sample(NAMES, columns)
        required = writer in ("pyarrow", "plain", "datafusion")
        self.sources = [(name, source(rng, types, depth, not (required and rng.random() < 0.25), kinds), fieldMeta(rng)) for name in names]
        Map.distinct = writer == "duckdb"
        self.schema = pa.schema([pa.field(name, s.type, s.nullable, metadata=m) for name, s, m in self.sources])
        self.common = {"shared": "yes"} if rng.random() < 0.5 else {}
        version = rng.choice(["1.0", "2.4", "2.6", "2.6"])
        self.fixed = dict(version=version, store_schema=rng.random() < 0.7, store_decimal_as_integer=rng.random() < 0.5,
                          use_compliant_nested_type=self.plain or rng.random() < 0.8, use_deprecated_int96_timestamps=not self.plain and rng.random() < 0.1,
                          write_time_adjusted_to_utc=rng.random() < 0.3)
        self.same = self.options() if rng.random() < 0.5 else None

    def table(self, n):
        meta = dict(self.common, **({"own": str(self.rng.random())} if self.rng.random() < 0.3 else {}))
        return pa.table([s.array(n) for _, s, _ in self.sources], schema=self.schema.with_metadata(meta or None))

    def options(self):
        """Whatever of PyArrow's options does not change the schema."""
        rng = self.rng
        codec = rng.choice(CODECS)
        o = dict(compression=codec, data_page_version=rng.choice(["1.0", "2.0"]), data_page_size=rng.choice([100, 1000, 10000, 1 << 20]),
                 write_batch_size=rng.choice([1, 10, 100, 1024, 1024]), write_statistics=rng.random() < 0.8, write_page_index=rng.random() < 0.5,
                 write_page_checksum=rng.random() < 0.5, dictionary_pagesize_limit=rng.choice([10, 1000, 1 << 20, 1 << 20]))
        if rng.random() < 0.3:
            o["max_rows_per_page"] = rng.choice([1, 10, 1000])
        if codec in LEVELS and rng.random() < 0.5:
            o["compression_level"] = rng.randint(1, LEVELS[codec])
        leaves = self.leaves()
        if rng.random() < 0.2:
            o["compression"] = {path: rng.choice(CODECS) for path, _ in leaves}
            o.pop("compression_level", None)
        how = rng.random()
        if how < 0.4:
            o["use_dictionary"] = True
        elif how < 0.5:
            o["use_dictionary"] = [path for path, _ in leaves if rng.random() < 0.5]
        else:
            o["use_dictionary"] = False
        if not o["use_dictionary"] and rng.random() < 0.8:
            o["column_encoding"] = {path: rng.choice(ENCODINGS[phys]) for path, phys in leaves}
        if rng.random() < 0.2:
            o["bloom_filter_options"] = {path: {"ndv": rng.choice([1, 100, 5000]), "fpp": 0.05} for path, phys in leaves if phys != "BOOLEAN" and rng.random() < 0.5}
        if rng.random() < 0.2 and leaves:
            o["sorting_columns"] = [pq.SortingColumn(0, descending=rng.random() < 0.5)]
        return o

    def leaves(self):
        out = pa.BufferOutputStream()
        pq.write_table(self.schema.empty_table(), out, **self.fixed)
        schema = pq.ParquetFile(pa.BufferReader(out.getvalue())).schema
        return [(schema.column(i).path, schema.column(i).physical_type) for i in range(len(schema))]

    def write(self, directory):
        rng = self.rng
        names = []
        for k in range(rng.choice([1, 2, 2, 3, 5, 12])):
            n = 0 if rng.random() < 0.08 else rng.randint(1, self.most)
            name = f"{directory}/f-{k:03d}.parquet"
            t = self.table(n)
            getattr(self, {"plain": "pyarrow", "mixed": rng.choice(MIXED)}.get(self.writer, self.writer))(t, name)
            names.append(name)
        return names

    def pyarrow(self, t, name):
        o = dict(self.fixed, **(self.same or self.options()))
        cuts = sorted(self.rng.choices(range(t.num_rows + 1), k=self.rng.choice([0, 0, 1, 3])))
        with pq.ParquetWriter(name, t.schema, **o) as w:
            for a, b in zip([0] + cuts, cuts + [t.num_rows]):
                w.write_table(t.slice(a, b - a), row_group_size=self.rng.choice([1 << 20, max(1, t.num_rows // 5), max(1, t.num_rows // 40)]))

    def polars(self, t, name):
        rng = self.rng
        polars.from_arrow(t).write_parquet(
            name, compression=rng.choice(["zstd", "snappy", "lz4", "gzip", "uncompressed", "brotli"]), statistics=rng.choice([True, False, "full"]),
            row_group_size=rng.choice([None, max(1, t.num_rows // 3)]), data_page_size=rng.choice([None, 100, 5000]))

    def fastparquet(self, t, name):
        rng = self.rng
        import pandas
        nullable = {pa.bool_(): pandas.BooleanDtype(), pa.int8(): pandas.Int8Dtype(), pa.int32(): pandas.Int32Dtype(), pa.int64(): pandas.Int64Dtype(),
                    pa.uint16(): pandas.UInt16Dtype(), pa.uint64(): pandas.UInt64Dtype()}
        frame = t.replace_schema_metadata(None).to_pandas(types_mapper=nullable.get)
        encoding = {f.name: "utf8" if pa.types.is_string(f.type) else "bytes" for f in t.schema if f.type in (pa.string(), pa.binary())}
        fastparquet.write(name, frame, compression=rng.choice(["SNAPPY", "ZSTD", "GZIP", "LZ4_RAW", "UNCOMPRESSED", "BROTLI"]), has_nulls=True, write_index=False,
                          object_encoding=encoding or "infer", row_group_offsets=rng.choice([None, max(1, t.num_rows // 3)]), stats=rng.choice([True, False]))

    def datafusion(self, t, name):
        rng = self.rng
        ctx = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
        ctx.from_arrow(t, name="t")
        o = {"compression": rng.choice(["snappy", "zstd(3)", "gzip(6)", "lz4_raw", "uncompressed", "brotli(2)"]), "writer_version": rng.choice(["1.0", "2.0"]),
             "dictionary_enabled": rng.choice(["true", "false"]), "statistics_enabled": rng.choice(["none", "chunk", "page"]), "max_row_group_size": rng.choice([100, 5000, 1 << 20]),
             "data_pagesize_limit": rng.choice([100, 10000, 1 << 20]), "write_batch_size": rng.choice([10, 1024]), "data_page_row_count_limit": rng.choice([10, 500, 20000]),
             "dictionary_page_size_limit": rng.choice([100, 1 << 20]), "column_index_truncate_length": rng.choice([1, 64]), "statistics_truncate_length": rng.choice([1, 64]),
             "bloom_filter_on_write": rng.choice(["true", "false"])}
        ctx.sql(f"COPY t TO '{name}' STORED AS PARQUET OPTIONS (" + ", ".join(f"'format.{k}' '{v}'" for k, v in o.items()) + ")").collect()

    def duckdb(self, t, name):
        rng = self.rng
        db = duckdb.connect()
        db.execute("SET threads=1")
        db.register("t", t)
        o = [f"CODEC '{rng.choice(['snappy', 'zstd', 'gzip', 'lz4_raw', 'uncompressed', 'brotli'])}'", f"PARQUET_VERSION {rng.choice(['V1', 'V2'])}"]
        if rng.random() < 0.5:
            o.append(f"ROW_GROUP_SIZE {rng.choice([2048, 4096])}")
        if rng.random() < 0.3:
            o.append(f"DICTIONARY_SIZE_LIMIT {rng.choice([1, 100, 100000])}")
        db.execute(f"COPY t TO '{name}' (FORMAT parquet, {', '.join(o)})")


ENCODINGS = {
    "BOOLEAN": ["PLAIN", "RLE"],
    "INT32": ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "INT64": ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "INT96": ["PLAIN"],
    "FLOAT": ["PLAIN", "BYTE_STREAM_SPLIT"],
    "DOUBLE": ["PLAIN", "BYTE_STREAM_SPLIT"],
    "BYTE_ARRAY": ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"],
    "FIXED_LEN_BYTE_ARRAY": ["PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"],
}
