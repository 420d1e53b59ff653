"""Every file that may be given as a photograph is opened, or answered with one sentence."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from regard.errors import InputError
from regard.tasks.images import ImageFiles, as_tensor, compute_grids, decode_images, open_photo, resize_to_square
from regard.tasks.images import features as features_module

NOISE = np.random.default_rng(5).integers(0, 256, (13, 17, 3), dtype=np.uint8)


def encode_image(image: Image.Image, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def make_claiming_png(width: int, height: int) -> bytes:
    """Return a PNG of a few bytes that claims so many pixels."""
    chunks = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0), b"IDAT" + zlib.compress(bytes(99))
    parts = [struct.pack(">I", len(one) - 4) + one + struct.pack(">I", zlib.crc32(one)) for one in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"no image at all", r"a\.png, which is not an image, expected PNG, JPEG", id="text"),
        pytest.param(b"", r"a\.png, which is not an image", id="empty"),
        pytest.param(encode_image(Image.fromarray(NOISE))[:300], r"a\.png, which is damaged or cut short", id="cut"),
        pytest.param(encode_image(Image.fromarray(NOISE), "JPEG")[:400], "damaged or cut short", id="cut-jpeg"),
        pytest.param(
            make_claiming_png(10_001, 10_000), r"10001 × 10000 pixels, expected at most 100,000,000", id="huge"
        ),
        pytest.param(
            make_claiming_png(60_000, 60_000), r"expected at most 100,000,000 pixels; fix: reduce it", id="bomb"
        ),
    ],
)
def test_what_is_no_photograph_is_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(content)
    with pytest.raises(InputError, match=message):
        open_photo(tmp_path / "a.png")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"photo: got no file .*/none\.png, expected an image; fix: check the path"):
        open_photo(tmp_path / "none.png")


def test_transparency_is_white_and_cameras_may_be_turned() -> None:
    clear = Image.new("RGBA", (3, 2), (255, 0, 0, 0))
    assert open_photo(encode_image(clear)).getpixel((0, 0)) == (255, 255, 255)
    turned, file = Image.fromarray(NOISE), io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was held upright
    turned.save(file, "PNG", exif=exif)
    assert open_photo(file.getvalue()).size == (13, 17)


def test_pixels_keep_their_places() -> None:
    tensor = as_tensor(open_photo(encode_image(Image.fromarray(NOISE))))
    assert tensor.shape == (3, 13, 17)
    assert torch.equal(tensor[2, 5, 11], torch.tensor(NOISE[5, 11, 2] / 255, dtype=torch.float32))
    assert resize_to_square(Image.fromarray(NOISE), 7).size == (7, 7)


@pytest.fixture
def pictures(tmp_path: Path) -> ImageFiles:
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(5):
        Image.fromarray(np.roll(NOISE, number, axis=0)).save(folder / f"{number}.png")
    return ImageFiles(folder)


def test_images_are_decoded_once(pictures: ImageFiles, tmp_path: Path) -> None:
    names = ["3.png", "0.png"]
    first = decode_images(pictures, names, 13, cache=tmp_path)
    for name in names:
        path = pictures.path / name
        path.write_bytes(b"x" * path.stat().st_size)  # nobody opens it again
    assert np.array_equal(decode_images(pictures, names, 13, cache=tmp_path), first)
    assert not np.array_equal(first[0], first[1])


def test_other_images_of_the_same_names_are_decoded_anew(pictures: ImageFiles, tmp_path: Path) -> None:
    first = decode_images(pictures, ["0.png"], 13, cache=tmp_path)
    Image.fromarray(np.full_like(NOISE, 7)).save(pictures.path / "0.png")
    assert not np.array_equal(decode_images(pictures, ["0.png"], 13, cache=tmp_path), first)


def test_a_note_without_its_file_is_not_believed(
    pictures: ImageFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(features_module, "load_pretrained", torch.nn.Identity)
    monkeypatch.setattr(features_module, "hash_weights", lambda: "stub")
    monkeypatch.setattr(ImageFiles, "load_pixels", interrupt)
    name = features_module.compute_cache_key(pictures, ["0.png"], 32)
    (tmp_path / f"{name}.json").write_text('{"done": 1}')
    for _ in range(2):  # the second finds the empty file that the first has left
        with pytest.raises(KeyboardInterrupt):
            compute_grids(pictures, ["0.png"], 32, cache=tmp_path)


def test_features_go_on_where_they_were_stopped(
    pictures: ImageFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stub(torch.nn.Module):
        """A grid that tells images apart, in the place of a network that takes seconds to load."""

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return image.mean((1, 2, 3))[:, None, None, None].expand(-1, features_module.HEAD, 1, 1)

    seen: list[str] = []
    original = ImageFiles.load_pixels

    def interrupt_fourth(self: ImageFiles, name: str, pixels: int) -> torch.Tensor:
        if len(seen) == 3:
            seen.append("stop")
            raise KeyboardInterrupt
        seen.append(name)
        return original(self, name, pixels)

    monkeypatch.setattr(features_module, "load_pretrained", Stub)
    monkeypatch.setattr(features_module, "hash_weights", lambda: "stub")
    monkeypatch.setattr(features_module, "BATCH_SIZE", 2)
    monkeypatch.setattr(ImageFiles, "load_pixels", interrupt_fourth)
    names = [f"{number}.png" for number in range(5)]
    with pytest.raises(KeyboardInterrupt):
        compute_grids(pictures, names, 32, cache=tmp_path)
    grids = compute_grids(pictures, names, 32, cache=tmp_path)
    assert seen == ["0.png", "1.png", "2.png", "stop", "2.png", "3.png", "4.png"]
    expected = [float(original(pictures, name, 32).mean()) for name in names]
    assert torch.allclose(grids[[4, 1]][:, 0, 0], torch.tensor([expected[4], expected[1]]), atol=1e-3)
    with pytest.raises(InputError, match="pixels: got 40, expected a multiple of 32; fix: use 32"):
        compute_grids(pictures, names, 40, cache=tmp_path)


def test_a_missing_image_is_named(pictures: ImageFiles) -> None:
    with pytest.raises(InputError, match=r"images: got no 9\.png in .*, expected an image for every caption"):
        pictures.read("9.png")
