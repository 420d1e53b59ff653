"""Photographs from files that may be hostile: each thing that can be wrong with one is one sentence."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regard.algebra.shapes import Float, Tensor
from regard.datasets.bounds import check_file, get_bound
from regard.errors import RegardError, import_package, wrong

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS = get_bound("image", "pixels")  # a file of some kilobytes may claim any number
MAX_SIDE = get_bound("image", "side")
MAX_BYTES = get_bound("image", "bytes")
PAGE_SIDE = 640  # pixels of a side: what a page has room for
KINDS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")  # Pillow knows fifty more; one of them runs another program
FORMATS = "PNG, JPEG, GIF, WebP, BMP or TIFF"
TILES = (322, 323)  # the tags of a TIFF that say how wide and long a tile is
STRIP = 256  # rows that are put on white at once


def open_photo(source: Path | bytes, name: str | None = None, *, most: int = MAX_PIXELS) -> "Image":
    """Open a photograph of at most so many pixels, upright and in RGB; transparent parts become white."""
    image_kind = import_pillow()
    name = name or ("the image" if isinstance(source, bytes) else str(source))
    with explain_photo_errors(image_kind, name, most):
        if not isinstance(source, bytes):
            check_file("photo", source, MAX_BYTES, name)
        with image_kind.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=KINDS) as image:
            check_size(image.size, name, most)
            check_tiles(image, name)
            return convert_to_rgb(image)


@contextmanager
def explain_photo_errors(image_kind: Any, name: str, most: int) -> Iterator[None]:
    """Raise one sentence about the file, whatever the library raises: the file is what is wrong."""
    with warnings.catch_warnings():
        # Pillow warns of large files; we refuse them by a limit of our own, and before they are decoded.
        warnings.simplefilter("ignore")
        try:
            yield
        except RegardError:
            raise
        except (FileNotFoundError, IsADirectoryError):
            raise wrong("photo", f"no file {name}", "an image", "check the path") from None
        except image_kind.DecompressionBombError:
            raise too_large_error(f"{name}, more than {MAX_PIXELS:,} pixels", most) from None
        except image_kind.UnidentifiedImageError:
            raise wrong("photo", f"{name}, which is not an image", FORMATS, "check the file, or convert it") from None
        except Exception as error:
            reason = " ".join(str(error).split())[:100] or type(error).__name__
            got = f"{name}, which is damaged or cut short ({reason})"
            raise wrong("photo", got, "a whole image", "copy it again from where it came") from None


def import_pillow() -> Any:
    """Return PIL.Image."""
    return import_package("PIL.Image", "vision", package="pillow")


def check_size(size: tuple[int, int], name: str, most: int = MAX_PIXELS) -> None:
    """Raise before so many pixels are decoded that memory would run out."""
    width, height = size
    if width * height > most:
        raise too_large_error(f"{name} of {width} × {height} pixels", most)
    if max(size) > MAX_SIDE:  # each row has its price too, and so has a row of millions
        got = f"{name} of {width} × {height} pixels"
        raise wrong("photo", got, f"sides of at most {MAX_SIDE:,}", "cut it into parts, or reduce it first")


def check_tiles(image: "Image", name: str) -> None:
    """Raise if a TIFF has tiles that are far larger than itself: each is decoded whole."""
    tags = getattr(image, "tag_v2", {})
    sides = [tags.get(tag, 0) for tag in TILES]
    if any(not isinstance(side, int) or side > MAX_SIDE for side in sides) or sides[0] * sides[1] > MAX_PIXELS:
        raise wrong("photo", f"{name} with tiles of {sides[0]} × {sides[1]}", "smaller ones", "convert it to PNG")


def too_large_error(got: str, most: int) -> Exception:
    """Return the error for an image of too many pixels."""
    return wrong("photo", got, f"at most {most:,} pixels", "reduce it first")


def convert_to_rgb(image: "Image") -> "Image":
    """Return an image in RGB, upright as the camera says, and white if transparent."""
    from PIL import ImageOps

    image.load()
    ImageOps.exif_transpose(image, in_place=True)
    if image.mode.startswith("I;16"):
        image = image.convert("I").point(lambda value: value / 256).convert("L")  # Pillow would cut off at 255
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        return paste_on_white(image if image.mode == "RGBA" else image.convert("RGBA"))
    return image if type(image).__name__ == "Image" and image.mode == "RGB" else image.convert("RGB")


def paste_on_white(image: "Image") -> "Image":
    """Paste an image on white, some rows at a time to save memory."""
    from PIL import Image

    found = Image.new("RGB", image.size, "white")
    for top in range(0, image.height, STRIP):
        strip = image.crop((0, top, image.width, min(image.height, top + STRIP)))
        white = Image.new("RGBA", strip.size, "white")
        found.paste(Image.alpha_composite(white, strip).convert("RGB"), (0, top))
    return found


def resize_to_square(image: "Image", pixels: int) -> "Image":
    """Return a square of so many pixels, whatever the shape was; nothing is cut off, so that all can be attended to."""
    from PIL import Image

    return image if image.size == (pixels, pixels) else image.resize((pixels, pixels), Image.Resampling.BICUBIC)


def make_thumbnail(image: "Image") -> np.ndarray:
    """Return the pixels of a smaller image for a page, of the same shape."""
    small = image.copy()
    small.thumbnail((PAGE_SIDE, PAGE_SIDE))
    return np.asarray(small)


def as_tensor(image: "Image") -> Float[Tensor, "3 height width"]:
    """Return a tensor with colors first, from 0 to 1."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div_(255)
