"""What a Parquet file says of itself, held against its values: sizes, counts,
checksums, statistics and page index of every column chunk. It reads the footer
and the page headers by itself, and the values by PyArrow."""

import decimal
import math
import struct
import zlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

PHYSICAL = ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"]
DICTIONARY, DATA_V2 = 2, 3


class Thrift:
    """Structs of the compact protocol as dicts of their fields' numbers."""

    def __init__(self, b, at=0):
        self.b, self.at = b, at

    def uvarint(self):
        v = shift = 0
        while True:
            c = self.b[self.at]
            self.at += 1
            v |= (c & 127) << shift
            if c < 128:
                return v
            shift += 7

    def int(self):
        v = self.uvarint()
        return v >> 1 ^ -(v & 1)

    def struct(self):
        out, last = {}, 0
        while True:
            h = self.b[self.at]
            self.at += 1
            if h == 0:
                return out
            last = last + (h >> 4) if h >> 4 else self.int()
            out[last] = h & 15 == 1 if h & 15 < 3 else self.value(h & 15)

    def value(self, typ):
        if typ < 4:
            self.at += 1
            return self.b[self.at - 1] == 1 if typ < 3 else self.b[self.at - 1]
        if typ < 7:
            return self.int()
        if typ == 7:
            self.at += 8
            return struct.unpack("<d", self.b[self.at - 8:self.at])[0]
        if typ == 8:
            n = self.uvarint()
            self.at += n
            return self.b[self.at - n:self.at]
        if typ in (9, 10):
            h = self.b[self.at]
            self.at += 1
            n = h >> 4
            if n == 15:
                n = self.uvarint()
            return [self.value(h & 15) for _ in range(n)]
        assert typ == 12, typ
        return self.struct()


def leaves(a):
    """The leaf columns of an array: values, and nulls of their own level and above."""
    t = a.type
    if isinstance(t, pa.BaseExtensionType):
        a, t = a.storage, a.type.storage_type
    if pa.types.is_dictionary(t):
        yield a.dictionary_decode()
    elif pa.types.is_struct(t):
        for f in a.flatten():
            yield from leaves(f)
    elif pa.types.is_map(t):
        lo, hi = (a.offsets[0].as_py(), a.offsets[-1].as_py()) if len(a) else (0, 0)
        yield from leaves(a.keys.slice(lo, hi - lo))
        yield from leaves(a.items.slice(lo, hi - lo))
    elif pa.types.is_list(t) or pa.types.is_large_list(t) or pa.types.is_fixed_size_list(t):
        yield from leaves(a.flatten())
    else:
        yield a


def bounds(a, column):
    """The smallest and the largest of the values as numbers or bytes; None when there are none, or they have no order."""
    t, ty = a.type, pa.types
    phys = column.physical_type
    if phys == "INT96" or ty.is_null(t) or ty.is_float16(t) or phys == "BYTE_ARRAY" and ty.is_decimal(t):
        return None
    if ty.is_floating(t):
        a = a.filter(pc.invert(pc.is_nan(a)))
    elif ty.is_string(t):
        a = a.cast(pa.binary())
    elif ty.is_large_string(t):
        a = a.cast(pa.large_binary())
    elif ty.is_date32(t) or ty.is_time32(t):
        a = a.cast(pa.int32())
    elif ty.is_date64(t) or ty.is_time64(t) or ty.is_timestamp(t) or ty.is_duration(t):
        a = a.cast(pa.int64())
    mm = pc.min_max(a).as_py()
    lo, hi = mm["min"], mm["max"]
    if lo is None:
        return None
    if ty.is_decimal(t):
        with decimal.localcontext() as c:
            c.prec = 100
            return int(lo.scaleb(t.scale)), int(hi.scaleb(t.scale))
    if ty.is_date64(t):
        return lo // 86400000, hi // 86400000
    if ty.is_boolean(t):
        return int(lo), int(hi)
    return lo, hi


def said(b, column, t):
    """A bound as bounds has it."""
    phys = column.physical_type
    if phys == "BOOLEAN":
        assert len(b) == 1, b
        return b[0]
    if phys in ("INT32", "INT64"):
        assert len(b) == (4 if phys == "INT32" else 8), b
        return int.from_bytes(b, "little", signed=not pa.types.is_unsigned_integer(t))
    if phys in ("FLOAT", "DOUBLE"):
        return struct.unpack("<f" if phys == "FLOAT" else "<d", b)[0]
    if pa.types.is_decimal(t):
        return int.from_bytes(b, "big", signed=True)
    return b


class Wrong(Exception):
    pass


def check(name, most=60):
    """Raises Wrong where the file says what its values do not bear out. most: pages
    looked at of a chunk. Returns how many pages and bounds were compared."""
    with open(name, "rb") as f:
        b = f.read()
    n = struct.unpack("<I", b[-8:-4])[0]
    footer = Thrift(b, len(b) - 8 - n).struct()
    file = pq.ParquetFile(name)
    table, schema = file.read(), file.schema
    groups = footer.get(4, [])
    if footer[3] != table.num_rows or sum(g[3] for g in groups) != table.num_rows:
        raise Wrong(f"{footer[3]} rows")
    if len(schema) == 0:
        return 0, 0
    columns = [c.combine_chunks() if c.num_chunks != 1 else c.chunk(0) for c in table.columns]
    columns = [c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for c in columns]
    where = []  # of each leaf: its column and its number there
    for i, c in enumerate(columns):
        where += [(i, k) for k, _ in enumerate(leaves(c.slice(0, 0)))]
    assert len(where) == len(schema), (len(where), len(schema))
    pages = compared = 0
    first = 0
    for g, group in enumerate(groups):
        for k, chunk in enumerate(group[1]):
            at, column = where[k], schema.column(k)
            leaf = lambda a, n: list(leaves(columns[at[0]].slice(first + a, n)))[at[1]]
            try:
                p, c = check_chunk(b, chunk, group, column, leaf, most)
            except Wrong as e:
                raise Wrong(f"row group {g}, column {column.path}: {e}") from None
            pages, compared = pages + p, compared + c
        first += group[3]
    return pages, compared


def check_chunk(b, chunk, group, column, leaf, most):
    meta = chunk[3]
    rows = group[3]
    if PHYSICAL[meta[1]] != column.physical_type:
        raise Wrong("another type")
    start = min((x for x in (meta.get(11) or meta[9], meta[9]) if x > 0), default=0)
    at, end = start, start + meta[7]
    heads = []
    plain = packed = 0
    used = {}
    while at < end:
        r = Thrift(b, at)
        h = r.struct()
        if 4 in h and zlib.crc32(b[r.at:r.at + h[3]]) != h[4] & 0xffffffff:
            raise Wrong(f"the checksum of the page at {at}")
        kind = h[1]
        body = h[7] if kind == DICTIONARY else h[8] if kind == DATA_V2 else h[5]
        encoding = body[4] if kind == DATA_V2 else body[2]
        used[kind, encoding] = used.get((kind, encoding), 0) + 1
        if kind != DICTIONARY:
            heads.append((at, r.at - at + h[3], kind, body))
        plain, packed = plain + r.at - at + h[2], packed + r.at - at + h[3]
        at = r.at + h[3]
    if at != end or packed != meta[7] or plain != meta[6]:
        raise Wrong(f"pages of {packed} bytes, {plain} unpacked, the footer says {meta[7]}, {meta[6]}")
    if sum(h[3][1] for h in heads) != meta[5]:
        raise Wrong(f"{sum(h[3][1] for h in heads)} values in pages, the footer says {meta[5]}")
    if heads and heads[0][0] != meta[9]:
        raise Wrong(f"the first data page is at {heads[0][0]}, the footer says {meta[9]}")
    if not {e if e != 2 else 8 for _, e in used} <= {e if e != 2 else 8 for e in meta[2]} | {0, 8}:
        raise Wrong(f"encodings {used}, the footer says {meta[2]}")
    if 13 in meta:  # Arrow's C++ counts pages V2 as V1
        found = {}
        for kind, encoding, n in [(s[1], s[2], s[3]) for s in meta[13]] + [(k, e, -n) for (k, e), n in used.items()]:
            if kind != DICTIONARY:
                found[8 if encoding == 2 else encoding] = found.get(8 if encoding == 2 else encoding, 0) + n
        if any(found.values()):
            raise Wrong(f"encodings of pages {used}, the footer says {meta[13]}")
    compared = 0
    stats = meta.get(12, {})
    whole = leaf(0, rows)
    there = len(whole) - whole.null_count
    if 3 in stats and stats[3] != meta[5] - there:
        raise Wrong(f"{meta[5] - there} nulls, statistics say {stats[3]}")
    compared += compare("statistics", stats.get(6), stats.get(5), whole, column, exact=stats.get(8, True) and stats.get(7, True))
    if 5 not in chunk:
        return 0, compared
    index = Thrift(b, chunk[4]).struct()
    places = index[1]
    if [(p[1], p[2]) for p in places] != [h[:2] for h in heads]:
        raise Wrong(f"its pages lie at {[h[:2] for h in heads][:4]}, the offset index says {[(p[1], p[2]) for p in places][:4]}")
    says = Thrift(b, chunk[6]).struct() if 7 in chunk else None
    if says and not len(says[1]) == len(says[2]) == len(says[3]) == len(places):
        raise Wrong("the column index has another length")
    if says and says[4] in (1, 2):
        ordered(says, column, whole.type)
    step = max(1, len(places) // most)
    for i in range(0, len(places), step):
        a = places[i][3]
        z = places[i + 1][3] if i + 1 < len(places) else rows
        if not 0 <= a <= z <= rows or i == 0 and a != 0:
            raise Wrong(f"page {i} has rows {a} to {z} of {rows}")
        head = heads[i]
        if head[2] == DATA_V2 and head[3][3] != z - a:
            raise Wrong(f"page {i} has {z - a} rows in the offset index, {head[3][3]} in its header")
        page = leaf(a, z - a)
        there = len(page) - page.null_count
        nulls = head[3][1] - there
        if nulls < 0 or column.max_repetition_level == 0 and len(page) != head[3][1]:
            raise Wrong(f"page {i} has {head[3][1]} values in its header, {there} there")
        if says:
            if says[1][i] != (there == 0):
                raise Wrong(f"page {i} has {there} values, the column index says null page {says[1][i]}")
            if 5 in says and says[5][i] != nulls:
                raise Wrong(f"page {i} has {nulls} nulls, the column index says {says[5][i]}")
            if there:
                compared += compare(f"page {i} of the column index", says[2][i], says[3][i], page, column, False)
        s = head[3].get(8 if head[2] == DATA_V2 else 5, {})
        compared += compare(f"page {i}'s header", s.get(6), s.get(5), page, column, False)
        if s.get(3, 0) > 0 and s[3] != nulls:
            raise Wrong(f"page {i} has {nulls} nulls, its header says {s[3]}")
    return len(places), compared


def compare(what, lo, hi, values, column, exact):
    if lo is None or hi is None:
        return 0
    true = bounds(values, column)
    t = values.type
    if true is None:
        if len(values) == values.null_count or pa.types.is_floating(t) and not pa.types.is_float16(t):
            raise Wrong(f"{what} has bounds {lo!r} {hi!r} of no values")
        return 0
    lo, hi = said(lo, column, t), said(hi, column, t)
    if pa.types.is_floating(t) and (math.isnan(lo) or math.isnan(hi)):
        raise Wrong(f"{what} has NaN for a bound")
    if lo > true[0] or hi < true[1]:
        raise Wrong(f"{what} says {lo!r} to {hi!r}, the values are {true[0]!r} to {true[1]!r}")
    if exact and (lo, hi) != true:
        raise Wrong(f"{what} says {lo!r} to {hi!r}, exactly the values are {true[0]!r} to {true[1]!r}")
    if pa.types.is_floating(t) and (lo == 0 and math.copysign(1, lo) > 0 or hi == 0 and math.copysign(1, hi) < 0):
        raise Wrong(f"{what} says {lo!r} to {hi!r}, and leaves a zero out")
    return 1


def ordered(says, column, t):
    some = [i for i, null in enumerate(says[1]) if not null]
    for half in (2, 3):
        v = [said(says[half][i], column, t) for i in some]
        up = all(a <= b for a, b in zip(v, v[1:]))
        down = all(a >= b for a, b in zip(v, v[1:]))
        if not (up if says[4] == 1 else down):
            raise Wrong(f"the column index says order {says[4]}: {v[:8]}")
