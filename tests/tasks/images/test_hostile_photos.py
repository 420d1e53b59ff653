"""Image files that mean harm: only the formats that we mean are opened, sizes are checked first, errors are ours."""

import io
import os
import struct
import zlib
from pathlib import Path
from random import Random

import numpy as np
import pytest
from PIL import EpsImagePlugin, Image, PngImagePlugin

from regard.errors import InputError
from regard.tasks.images import open_photo
from regard.tasks.images.photos import FORMATS

NOISE = np.random.default_rng(5).integers(0, 256, (13, 17, 3), dtype=np.uint8)
MEANT = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
EPS = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n(touched) print\nshowpage\n%%EOF\n"


def encode_image(image: Image.Image, kind: str = "PNG", **more: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **more)
    return file.getvalue()


def make_png(width: int, height: int, *more: bytes) -> bytes:
    """Return a PNG of a few bytes that claims so many pixels, with chunks of one's choice."""
    head = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = (head, *more, b"IDAT" + zlib.compress(bytes(99)), b"IEND")
    parts = [struct.pack(">I", len(one) - 4) + one + struct.pack(">I", zlib.crc32(one)) for one in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def read_refusal(content: bytes) -> str:
    with pytest.raises(InputError) as raised:
        open_photo(content, "a")
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("kind", ["EPS", "ICO", "ICNS", "TGA", "PPM", "PCX", "SGI", "JPEG2000", "AVIF", "DDS", "PDF"])
def test_formats_that_nobody_asked_for_are_not_opened(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*arguments: object, **more: object) -> None:
        pytest.fail("a program was run")

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", run)
    content = EPS if kind == "EPS" else encode_image(Image.fromarray(NOISE).resize((32, 32)), kind)
    assert read_refusal(content) == (
        f"photo: got a, which is not an image, expected {FORMATS}; fix: check the file, or convert it"
    )


@pytest.mark.parametrize("kind", MEANT)
def test_formats_that_are_meant_are_opened(kind: str) -> None:
    assert open_photo(encode_image(Image.fromarray(NOISE), kind)).size == (17, 13)


@pytest.mark.parametrize("size", [(33_000_000, 1), (1, 33_000_000), (32_769, 2)])
def test_sides_are_bounded_as_well_as_pixels(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image.core, "new", lambda *_: pytest.fail("pixels were made"))
    message = f"photo: got a of {size[0]} × {size[1]} pixels, expected sides of at most 32,768; fix: cut it into parts"
    assert read_refusal(make_png(*size)).startswith(message)


def test_a_large_text_in_a_small_image_is_one_sentence() -> None:
    text = b"zTXtnote\0\0" + zlib.compress(b"x" * (PngImagePlugin.MAX_TEXT_CHUNK + 1))
    said = read_refusal(make_png(3, 3, text))
    assert said.startswith("photo: got a, which is damaged or cut short (Decompressed data too large")


def test_tiles_of_a_tiff_are_bounded() -> None:
    file = io.BytesIO(encode_image(Image.fromarray(NOISE), "TIFF"))
    content = set_tile_side(file.getvalue(), 2**20)
    assert "tiles of 1048576 × 1048576, expected smaller ones" in read_refusal(content)


def set_tile_side(content: bytes, side: int) -> bytes:
    """Return a TIFF whose tags claim tiles of so many pixels, in the place of two tags that are not needed."""
    (start,) = struct.unpack("<I", content[4:8])
    (count,) = struct.unpack("<H", content[start : start + 2])
    entries = [content[start + 2 + 12 * n : start + 14 + 12 * n] for n in range(count)]
    kept = [entry for entry in entries if struct.unpack("<H", entry[:2])[0] not in (273, 278, 279)]
    own = [struct.pack("<HHII", tag, 4, 1, value) for tag, value in ((322, side), (323, side), (324, 8), (325, 99))]
    table = sorted((*kept, *own), key=lambda entry: struct.unpack("<H", entry[:2]))
    place = len(content) + len(content) % 2
    directory = struct.pack("<H", len(table)) + b"".join(table) + bytes(4)
    return (content[:4] + struct.pack("<I", place) + content[8:]).ljust(place, b"\0") + directory


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.png")
    with pytest.raises(InputError, match=r"photo: got .*a\.png, which is not a plain file, expected a file; fix: copy"):
        open_photo(tmp_path / "a.png")


@pytest.mark.parametrize("kind", MEANT)
def test_damaged_files_are_opened_or_refused(kind: str) -> None:
    content, random = encode_image(Image.fromarray(NOISE), kind), Random(kind)
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(random.randint(1, 6)):
            damaged[random.randrange(len(damaged))] = random.randrange(256)
        try:
            open_photo(bytes(damaged[: random.randint(1, 2 * len(damaged))]), "a")
        except InputError as error:
            said = str(error)
            assert said.startswith("photo: got a")
            assert "\n" not in said


def test_what_cameras_and_programs_write_is_opened() -> None:
    frames = [Image.fromarray(np.roll(NOISE, n, 0)) for n in range(3)]
    gif = open_photo(encode_image(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    assert (gif.mode, gif.size) == ("RGB", (17, 13))
    webp = open_photo(encode_image(frames[0], "WEBP", save_all=True, append_images=frames[1:], lossless=True))
    assert np.array_equal(np.asarray(webp), NOISE)
    cmyk = open_photo(encode_image(Image.fromarray(NOISE).convert("CMYK"), "TIFF"))
    assert np.abs(np.asarray(cmyk).astype(int) - NOISE).max() <= 1
    assert open_photo(encode_image(Image.fromarray(NOISE).convert("CMYK"), "JPEG")).mode == "RGB"
    palette = Image.fromarray(np.array([[0, 1]], np.uint8), "L").convert("P")
    palette.putpalette([10, 20, 30, 40, 50, 60])
    clear = open_photo(encode_image(palette, "PNG", transparency=0))
    assert np.asarray(clear).tolist() == [[[255, 255, 255], [40, 50, 60]]]


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bits_are_gray_and_not_white(kind: str) -> None:
    ramp = (np.arange(256) * 257).astype(np.uint16).reshape(16, 16)
    gray = np.asarray(open_photo(encode_image(Image.fromarray(ramp), kind)))[..., 0]
    assert np.abs(gray.ravel().astype(int) - np.arange(256)).max() <= 1


def test_what_is_clear_is_as_on_a_white_page() -> None:
    pixels = np.random.default_rng(7).integers(0, 256, (600, 3, 4), dtype=np.uint8)
    image = Image.fromarray(pixels)
    expected = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    assert np.array_equal(np.asarray(open_photo(encode_image(image))), np.asarray(expected))


def test_bytes_without_a_name_are_not_quoted() -> None:
    with pytest.raises(InputError, match=r"^photo: got the image, which is not an image, expected"):
        open_photo(bytes(2**20))
