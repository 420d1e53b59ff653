"""Photographs from files that anybody may have made: each thing that can be wrong with one is one sentence."""

import io
import struct
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from regard.errors import missing, wrong
from regard.shapes import Float, Tensor

if TYPE_CHECKING:
    from PIL.Image import Image

MOST = 100_000_000  # pixels: a file of some kilobytes may claim any number
SHOWN = 640  # pixels of a side: what a page has room for
FORMATS = "PNG, JPEG, GIF, WebP, BMP or TIFF"


def open_photo(source: Path | bytes, name: str | None = None, *, most: int = MOST) -> "Image":
    """A photograph of at most so many pixels, upright and in RGB, whatever the file has; what is clear is white."""
    image_kind = pillow()
    name = name or str(source)
    with warnings.catch_warnings():
        # Pillow warns of large files; we refuse them by a limit of our own, and before they are decoded.
        warnings.simplefilter("ignore")
        try:
            with image_kind.open(io.BytesIO(source) if isinstance(source, bytes) else source) as image:
                check_size(image.size, name, most)
                return in_color(image)
        except (FileNotFoundError, IsADirectoryError):
            raise wrong("photo", f"no file {name}", "an image", "check the path") from None
        except image_kind.DecompressionBombError:
            raise huge(f"{name}, more than {MOST:,} pixels", most) from None
        except image_kind.UnidentifiedImageError:
            raise wrong("photo", f"{name}, which is no image", FORMATS, "check the file, or convert it") from None
        except (OSError, SyntaxError, EOFError, struct.error, IndexError) as error:
            got = f"{name}, which is damaged or cut short ({error})"
            raise wrong("photo", got, "a whole image", "copy it again from where it came") from None


def pillow() -> Any:
    """PIL.Image, with the package's two errors at hand."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise missing("pillow", "vision") from None
    Image.UnidentifiedImageError = UnidentifiedImageError  # type: ignore[attr-defined]
    return Image


def check_size(size: tuple[int, int], name: str, most: int = MOST) -> None:
    """Raises before so many pixels are decoded that memory would end."""
    width, height = size
    if width * height > most:
        raise huge(f"{name} of {width} × {height} pixels", most)


def huge(got: str, most: int) -> Exception:
    return wrong("photo", got, f"at most {most:,} pixels", "reduce it first")


def in_color(image: "Image") -> "Image":
    """Upright as the camera says, on white where it is transparent, in RGB."""
    from PIL import Image, ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        image = Image.alpha_composite(white, image)
    return image.convert("RGB")


def squeezed(image: "Image", pixels: int) -> "Image":
    """A square of so many pixels, whatever the shape was: nothing is cut off, so that everything can be looked at."""
    from PIL import Image

    return image if image.size == (pixels, pixels) else image.resize((pixels, pixels), Image.Resampling.BICUBIC)


def reduced(image: "Image", most: int = SHOWN) -> np.ndarray:
    """Its pixels for a page, of its own shape, the longer side at most so long."""
    small = image.copy()
    small.thumbnail((most, most))
    return np.asarray(small)


def as_tensor(image: "Image") -> Float[Tensor, "3 height width"]:
    """Colors first, from 0 to 1."""
    return torch.from_numpy(np.array(image)).permute(2, 0, 1).float().div_(255)
