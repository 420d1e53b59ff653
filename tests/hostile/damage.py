"""Good files of every format, and ways to damage them."""

import io
import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import soundfile
from PIL import Image, PngImagePlugin

INTEGERS = (0, 1, 2, 127, 128, 255, 256, 32767, 32768, 65535, 2**20, 2**24, 2**31 - 1, 2**31, 2**32 - 1, 400_000_009)
TEXTS = (
    b"", b"\0", b"\xff", b"%s" * 9, b"[" * 3000, b"{" * 500, b'{"a":' * 900, b"9" * 400, b"9" * 5000, b"-1", b"1e999",
    b"NaN", b"null", b"true", b"\\ud800", b"../../etc/passwd", b"\xed\xa0\x80", b"a" * 2000, b"\n" * 50, b"'", b'"',
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**70, -(2**70), 10**400, 1e308, -1e308, 1e-320, "", "a", "a" * 3000,
    "\ud800", "\0", "九", "../x", [], [[]], [1] * 50, {}, {"a": {}}, [None], "transformer", "one two", 0.5, 3, 7,
)  # fmt: skip


def flip(content: bytearray, random: Random) -> bytearray:
    """Flip some bits of some bytes."""
    for _ in range(random.randint(1, 8)):
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    return content


def overwrite(content: bytearray, random: Random) -> bytearray:
    """Write an extreme number of one to eight bytes, more often near the beginning."""
    size, order = random.choice([(1, "<B"), (2, "<H"), (2, ">H"), (4, "<I"), (4, ">I"), (8, "<Q"), (8, ">Q")])
    near = random.choice([16, 64, 256, len(content)])
    index = random.randrange(max(1, min(near, len(content) - size + 1)))
    content[index : index + size] = struct.pack(order, random.choice(INTEGERS) % 2 ** (8 * size))
    return content


def cut(content: bytearray, random: Random) -> bytearray:
    """Keep the beginning, or all but a part of the middle."""
    start = random.randrange(len(content))
    if random.random() < 0.5:
        return content[:start]
    return content[:start] + content[random.randrange(start, len(content)) :]


def repeat(content: bytearray, random: Random) -> bytearray:
    """Repeat a part."""
    start = random.randrange(len(content))
    part = content[start : start + random.randint(1, 300)]
    index = random.randrange(len(content))
    return content[:index] + part * random.choice([1, 2, 30]) + content[index:]


def insert(content: bytearray, random: Random) -> bytearray:
    """Insert a text that is hard for parsers."""
    index = random.randrange(len(content))
    return content[:index] + random.choice(TEXTS) + content[index + random.choice([0, 0, 1, 4]) :]


WAYS: tuple[Callable[[bytearray, Random], bytearray], ...] = (flip, flip, overwrite, overwrite, cut, repeat, insert)


def damage(content: bytes, random: Random) -> bytes:
    """Return a file damaged in one to four ways."""
    damaged = bytearray(content)
    for _ in range(random.randint(1, 4)):
        if damaged:
            damaged = random.choice(WAYS)(damaged, random)
    return bytes(damaged)


def damage_json(value: Any, random: Random) -> Any:
    """Return JSON in which some values are changed, some are missing and some are new."""
    if random.random() < 0.12:
        return random.choice(VALUES)
    if isinstance(value, dict):
        found = {key: damage_json(one, random) for key, one in value.items() if random.random() > 0.04}
        return found | ({str(random.choice(VALUES))[:40]: 1} if random.random() < 0.05 else {})
    if isinstance(value, list):
        return [damage_json(one, random) for one in value for _ in range(random.choice([1] * 20 + [0, 2]))]
    return value


def to_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def make_images() -> list[bytes]:
    """Return files of all formats and modes that are read, and of some that are not."""
    noise = np.random.default_rng(1).integers(0, 256, (23, 19, 3), dtype=np.uint8)
    color = Image.fromarray(noise)
    exif, text = Image.Exif(), PngImagePlugin.PngInfo()
    exif[0x0112], exif[0x010E] = 6, "a camera"
    text.add_text("note", "x" * 99, zip=True)
    clear = color.copy().convert("RGBA")
    clear.putalpha(Image.fromarray(noise[..., 0]))
    palette, frames = color.quantize(16), {"save_all": True, "append_images": [color.rotate(90), color.rotate(180)]}
    made: list[tuple[Image.Image, str, dict[str, Any]]] = [
        (color, "PNG", {"pnginfo": text, "exif": exif}), (clear, "PNG", {}), (palette, "PNG", {"transparency": 3}),
        (Image.fromarray(noise[..., 0].astype(np.uint16) * 257), "PNG", {}), (color.convert("1"), "PNG", {}),
        (color, "PNG", frames), (color, "JPEG", {"exif": exif}), (color, "JPEG", {"progressive": True}),
        (color.convert("CMYK"), "JPEG", {}), (color, "GIF", frames), (palette, "GIF", {"transparency": 2}),
        (color, "WEBP", {"lossless": True, "exif": exif}), (clear, "WEBP", {}), (color, "WEBP", frames),
        (color, "BMP", {}), (palette, "BMP", {}), (color, "TIFF", {}), (clear, "TIFF", {"compression": "tiff_lzw"}),
        (color, "TIFF", {"compression": "jpeg"}), (palette, "TIFF", {"compression": "tiff_adobe_deflate"}),
        (color.convert("1"), "TIFF", {"compression": "group4"}), (color, "TIFF", frames),
        (color, "ICO", {}), (color, "PPM", {}), (color, "EPS", {}),
    ]  # fmt: skip
    found = []
    for image, kind, more in made:
        file = io.BytesIO()
        image.save(file, kind, **more)
        found.append(file.getvalue())
    return found


def make_sounds() -> list[bytes]:
    """Return files of all formats that are read, in some encodings each, and of two that are not."""
    wave = np.sin(np.arange(1200) / 7) / 2
    kinds = [("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "FLOAT"), ("WAV", "ULAW"), ("WAV", "MS_ADPCM"),
             ("WAV", "GSM610"), ("WAVEX", "PCM_16"), ("RF64", "PCM_16"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"),
             ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III"), ("AIFF", "PCM_16"), ("AU", "PCM_16")]  # fmt: skip
    found = []
    for kind, coding in kinds:
        for channels in (1, 2):
            if (coding, channels) == ("GSM610", 2):
                continue
            file = io.BytesIO()
            soundfile.write(file, np.stack([wave] * channels, 1), 8000, format=kind, subtype=coding)
            found.append(file.getvalue())
    return found
