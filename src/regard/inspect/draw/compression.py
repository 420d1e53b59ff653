"""Pack numbers into short text, for pages that hold their data; `web/static/tables.js` unpacks them."""

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float32, UInt8

EXACT = 23  # bits behind the point of a float32
STEPS = (EXACT, 15, 11, 7)
TOO_MUCH = 1.2  # of a budget, by what one table takes


def pack(numbers: Float32[np.ndarray, "..."], bits: int = EXACT) -> str:
    """Return the bytes of the numbers, all first bytes first, deflated in base64: similar bytes compress best."""
    planes = round_bits(numbers, bits).astype("<f4").view(np.uint8).reshape(-1, 4).T
    return base64.b64encode(zlib.compress(planes.tobytes(), 6)).decode()


def unpack(text: str) -> Float32[np.ndarray, " number"]:
    """Return the numbers that were packed.

    >>> unpack(pack(np.array([0.25, -1.0], dtype=np.float32))).tolist()
    [0.25, -1.0]
    """
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view("<f4").ravel()


def round_bits(numbers: Float32[np.ndarray, "..."], bits: int) -> Float32[np.ndarray, "..."]:
    """Return numbers rounded to `bits` bits behind the point: a relative error of at most 2 to the −(bits + 1).

    >>> round_bits(np.array([0.1, 0.0, 1.0], dtype=np.float32), 7).tolist()
    [0.10009765625, 0.0, 1.0]
    """
    if bits >= EXACT:
        return np.ascontiguousarray(numbers)
    left = EXACT - bits
    whole = np.ascontiguousarray(numbers).view(np.uint32).astype(np.uint64) + (1 << (left - 1))
    return (whole >> left << left).astype(np.uint32).view(np.float32)


def pack_within(tables: Sequence[Float32[np.ndarray, "..."]], budget: int) -> tuple[list[str], int]:
    """Return all tables packed, with as many bits as the budget of bytes allows, and the number of bits."""
    texts: list[str] = []
    sample = max(tables, key=lambda table: table.size)
    share = sum(table.size for table in tables) / sample.size
    for bits in STEPS:
        if bits > STEPS[-1] and share > 2 and len(pack(sample, bits)) * share > TOO_MUCH * budget:
            continue  # one of many tables tells enough
        texts = [pack(table, bits) for table in tables]
        if sum(map(len, texts)) <= budget:
            return texts, bits
    return texts, STEPS[-1]


def encode_png(pixels: UInt8[np.ndarray, "height width 3"]) -> str:
    """Return a picture as a data URL of a PNG."""
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)  # each begins with the number of its filter: none
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    file = b"\x89PNG\r\n\x1a\n" + b"".join(encode_png_chunk(*part) for part in parts)
    return f"data:image/png;base64,{base64.b64encode(file).decode()}"


def encode_png_chunk(name: bytes, data: bytes) -> bytes:
    """Return a part of a PNG: its length, name, data and checksum."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
