"""Whether two tables have the same values, bit by bit, in the same order."""

import pyarrow as pa
import pyarrow.compute as pc


def same(a, b, what):
    """Two arrays have the same values, bit by bit."""
    if isinstance(a, pa.ChunkedArray):
        a, b = single(a), single(b)
    assert len(a) == len(b), f"{what}: {len(a)} values, {len(b)} now"
    assert a.null_count == b.null_count and a.is_valid().equals(b.is_valid()), f"{what}: nulls differ: {a.null_count}, {b.null_count} now"
    ty, t = pa.types, a.type
    if isinstance(t, pa.BaseExtensionType):
        return same(a.storage, b.storage, what)
    if ty.is_dictionary(t) or ty.is_dictionary(b.type):
        a, b = (x.dictionary_decode() if ty.is_dictionary(x.type) else x for x in (a, b))
        t = a.type
    if ty.is_struct(t):
        for i, f in enumerate(t):
            same(a.flatten()[i], b.flatten()[i], f"{what}.{f.name}")
    elif ty.is_map(t):
        assert lengths(a).equals(lengths(b)), f"{what}: lengths differ"
        for half in ("keys", "items"):
            same(entries(a, half), entries(b, half), f"{what}.{half}")
    elif ty.is_list(t) or ty.is_large_list(t) or ty.is_fixed_size_list(t):
        assert pc.list_value_length(a).equals(pc.list_value_length(b)), f"{what}: lengths differ"
        same(a.flatten(), b.flatten(), what + "[]")
    else:
        if ty.is_floating(t):
            bits = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[t.bit_width]
            a, b = a.view(bits), b.view(bits)
        if not a.equals(b):
            i = next(i for i in range(len(a)) if a[i] != b[i])
            raise AssertionError(f"{what}: value {i} was {str(a[i])[:99]!r}, is {str(b[i])[:99]!r}")


def lengths(m):
    return pc.subtract(m.offsets.slice(1), m.offsets.slice(0, len(m)))


def entries(m, half):
    """The keys or items of a map array, which may be a slice."""
    lo, hi = (m.offsets[0].as_py(), m.offsets[-1].as_py()) if len(m) else (0, 0)
    return getattr(m, half).slice(lo, hi - lo)


def single(c):
    c = c.combine_chunks()
    return c.chunk(0) if isinstance(c, pa.ChunkedArray) else c


def sameTables(a, b, what):
    assert a.num_rows == b.num_rows, f"{what}: {a.num_rows} rows, {b.num_rows} now"
    assert a.num_columns == b.num_columns, f"{what}: {a.num_columns} columns, {b.num_columns} now"
    for i in range(a.num_columns):
        same(a.column(i), b.column(i), f"{what}: column {a.schema.field(i).name}")


def asColumns(t, schema):
    """What different writers made of one type, as that type."""
    return pa.table([conform(single(t.column(f.name)), f.type) for f in schema], names=schema.names)


def conform(a, t):
    """The array as one of another type: widened, and null where it has nothing."""
    ty = pa.types
    if ty.is_large_list(a.type):
        a = a.cast(pa.list_(a.type.value_field))
    if ty.is_dictionary(a.type):
        a = a.dictionary_decode()
    if ty.is_struct(t):
        mask = a.is_null()
        return pa.StructArray.from_arrays([conform(a.field(f.name), f.type) for f in t], fields=list(t), mask=mask)
    if ty.is_map(t):
        offsets = pa.array([o if v else None for o, v in zip(a.offsets.to_pylist(), a.is_valid().to_pylist())] + a.offsets.to_pylist()[-1:], pa.int32())
        return pa.MapArray.from_arrays(offsets, conform(a.keys, t.key_type), conform(a.items, t.item_type))
    if ty.is_list(t):
        return pa.ListArray.from_arrays(a.offsets, conform(a.values, t.value_type), type=t, mask=a.is_null())
    return a.cast(t)
