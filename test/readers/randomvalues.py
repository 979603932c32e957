"""Random values of each type, extremes and repeats among them."""

import decimal
import string

import pyarrow as pa

decimal.getcontext().prec = 100


def viewed(values, raw, t):
    return pa.array(values, raw).view(t)


def integers(rng, lo, hi, k):
    how = rng.random()
    if how < 0.3:
        return [rng.choice([lo, hi, 0, 1, max(lo, -1), lo + 1, hi - 1, rng.randint(lo, hi)]) for _ in range(k)]
    if how < 0.5:
        return [rng.randint(lo, hi) for _ in range(k)]
    if how < 0.7:
        return [rng.randint(max(lo, -9), min(hi, 9)) for _ in range(k)]
    at, step = rng.randint(lo // 2, hi // 2), rng.choice([1, 7, 1000])
    return [(at + i * step - lo) % (hi - lo + 1) + lo for i in range(k)]


def floats(rng, bits, k):
    exponent = {16: 0x7c00, 32: 0x7f800000, 64: 0x7ff0000000000000}[bits]
    sign = 1 << bits - 1
    special = [0, sign, exponent, sign | exponent, exponent | 1, exponent | exponent >> 1, sign | exponent | 5, 1, sign | 1, exponent - 1, sign | exponent - 1]
    how = rng.random()
    if how < 0.3:
        return [rng.choice(special) for _ in range(k)]
    if how < 0.4:
        return [exponent | exponent >> 1] * k
    if how < 0.6:
        return [rng.getrandbits(bits) for _ in range(k)]
    plain = [rng.randrange(exponent) | rng.choice([0, sign]) for _ in range(k)]
    return [rng.choice([0, sign]) if rng.random() < 0.1 else v for v in plain]


def texts(rng, k):
    how = rng.random()
    if how < 0.25:
        return [f"value {i}" for i in range(k)]
    if how < 0.4:
        return ["".join(rng.choices(string.ascii_letters + "äß€\U0001f600\0\U0010ffff\ud7ff", k=rng.randint(0, 12))) for _ in range(k)]
    if how < 0.55:  # prefixes in common, longer than what an index keeps
        p = rng.choice(["a", "ü", "\U0010ffff", "x\U0010ffff"]) * rng.choice([30, 63, 64, 65, 260])
        return [p + str(rng.randrange(100)) for _ in range(k)]
    if how < 0.65:
        return [""] * k
    if how < 0.7:
        return ["y" * rng.choice([0, 1, 256, 257, 5000, 70000]) + str(i) for i in range(min(k, 20))]
    return [str(rng.getrandbits(64)) for _ in range(k)]


def blobs(rng, k):
    how = rng.random()
    if how < 0.3:
        return [rng.randbytes(rng.randint(0, 9)) for _ in range(k)]
    if how < 0.6:
        return [b"\xff" * rng.choice([0, 1, 63, 64, 65, 300]) + rng.randbytes(rng.randint(0, 2)) for _ in range(k)]
    if how < 0.7:
        return [b"\0" * rng.randint(0, 70) for _ in range(k)]
    return [t.encode(errors="surrogatepass")[: rng.randint(0, 80)] for t in texts(rng, k)]


def pool(rng, t, k):
    """An array of k values, or fewer."""
    ty = pa.types
    if ty.is_boolean(t):
        return pa.array([True, False] if k > 1 else [rng.random() < 0.5])
    if ty.is_floating(t):
        raw = {16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}[t.bit_width]
        return viewed(floats(rng, t.bit_width, k), raw, t)
    if ty.is_integer(t):
        signed = ty.is_signed_integer(t)
        lo, hi = (-(1 << t.bit_width - 1), (1 << t.bit_width - 1) - 1) if signed else (0, (1 << t.bit_width) - 1)
        return pa.array(integers(rng, lo, hi, k), t)
    if ty.is_decimal(t):
        most = 10**t.precision - 1
        return pa.array([decimal.Decimal(v).scaleb(-t.scale) for v in integers(rng, -most, most, k)], t)
    if ty.is_date32(t):
        return viewed(integers(rng, -700000, 2900000, k), pa.int32(), t)
    if ty.is_date64(t):
        return viewed([v * 86400000 for v in integers(rng, -700000, 2900000, k)], pa.int64(), t)
    if ty.is_time(t):
        most = 86400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[t.unit] - 1
        return viewed(integers(rng, 0, most, k), pa.int32() if t.bit_width == 32 else pa.int64(), t)
    if ty.is_timestamp(t):
        unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[t.unit]
        lo, hi = (-(2**63) // 10**3 * 10**3 + 10**3, 2**63 // 10**3 * 10**3 - 10**3) if t.unit == "ns" else (-62135596800 * unit, 253402300799 * unit)
        return viewed([v // 1000 * 1000 if t.unit == "ns" else v for v in integers(rng, lo, hi, k)], pa.int64(), t)
    if ty.is_duration(t):
        return viewed(integers(rng, -(2**50), 2**50, k), pa.int64(), t)
    if ty.is_fixed_size_binary(t):
        return pa.array([rng.choice([b"\0", b"\xff", b"\x7f", rng.randbytes(1)]) * (t.byte_width - 1) + rng.randbytes(min(1, t.byte_width)) for _ in range(k)], t)
    if ty.is_binary(t) or ty.is_large_binary(t):
        return pa.array(blobs(rng, k), t)
    return pa.array(texts(rng, k), t)
