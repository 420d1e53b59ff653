"""Grids of features for many images: computed once, kept in a memory-mapped file, continued where it was stopped."""

import errno
import hashlib
import json
import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import track

from regard.algebra.shapes import Float, Tensor
from regard.compute.kernels.native.cache import find_folder as cache_folder
from regard.datasets.archives import open_archive, read_member, read_plain_file
from regard.datasets.bounds import parse_json
from regard.errors import InputError, wrong
from regard.tasks.images.efficientnet import HEAD, OUTPUT_STRIDE, hash_weights, load_pretrained
from regard.tasks.images.photos import as_tensor, open_photo, resize_to_square
from regard.training.storage import lock_file

BATCH_SIZE = 32  # images at once; the work that is lost when it is stopped
ENDINGS = (".jpg", ".jpeg", ".png")


@dataclass(frozen=True)
class ImageFiles:
    """Images by name, in a folder or in a zip."""

    path: Path

    @cached_property
    def archive(self) -> zipfile.ZipFile | None:
        """The zip, if it is one."""
        if self.path.is_dir():
            return None
        try:
            return open_archive(self.path)
        except InputError as error:
            got, fix = f"{self.path}, which cannot be read ({error})", "check the path, or copy it again"
            raise wrong("images", got, "a folder or a zip of images", fix) from None

    @cached_property
    def members(self) -> dict[str, str]:
        """Where each image is, by its own name."""
        if self.archive is None:
            found = [str(path.relative_to(self.path)) for path in sorted(self.path.rglob("*"))]
        else:
            found = self.archive.namelist()
        return {name.rpartition("/")[2]: name for name in found if name.lower().endswith(ENDINGS)}

    def read(self, name: str) -> bytes:
        """Return the content of the file of an image."""
        if name not in self.members:
            fix = "bring the image back, or take its captions out"
            raise wrong("images", f"no {name} in {self.path}", "an image for every caption", fix)
        try:
            if self.archive is not None:
                return read_member(self.archive, self.members[name], self.path)
            return read_plain_file(self.path / self.members[name])
        except (OSError, InputError) as error:
            raise wrong("images", f"{name} in {self.path} ({error})", "a whole file", "copy it again") from None

    def compute_checksums(self, names: Sequence[str]) -> list[str]:
        """Return a checksum and the size of each image file, by which equal ones are found."""
        if self.archive is None:
            return [f"{zlib.crc32(content := self.read(name)):08x} {len(content)}" for name in names]
        entries = [self.archive.getinfo(self.members[name]) for name in names]
        return [f"{entry.CRC:08x} {entry.file_size}" for entry in entries]

    def load_pixels(self, name: str, pixels: int) -> Float[Tensor, "3 pixels pixels"]:
        """Return the pixels of an image, resized to a square."""
        return as_tensor(resize_to_square(open_photo(self.read(name), name), pixels))


@dataclass(frozen=True)
class FeatureGrids:
    """Features of images by their numbers: a row of `channels` numbers for each region, from the top left on."""

    table: np.ndarray

    def __getitem__(self, numbers: Sequence[int]) -> Float[Tensor, "batch region channels"]:
        return torch.from_numpy(np.asarray(self.table[np.asarray(numbers)])).float()


def compute_grids(
    pictures: ImageFiles, names: Sequence[str], pixels: int, *, cache: Path | None = None
) -> FeatureGrids:
    """Return the feature grids of these images at this size, from the cache as far as they are there."""
    if pixels < OUTPUT_STRIDE or pixels % OUTPUT_STRIDE:
        fix = f"use {max(1, pixels // OUTPUT_STRIDE) * OUTPUT_STRIDE}"
        raise wrong("pixels", pixels, f"a multiple of {OUTPUT_STRIDE}", fix)
    file = (cache or cache_folder() / "features") / f"{compute_cache_key(pictures, names, pixels)}.npy"
    shape = len(names), (pixels // OUTPUT_STRIDE) ** 2, HEAD
    if not is_complete(file, len(names)):
        file.parent.mkdir(parents=True, exist_ok=True)
        with lock_file(file.with_suffix(".lock")):
            if not is_complete(file, len(names)):
                fill_cache(file, shape, pictures, names, pixels)
    return FeatureGrids(np.lib.format.open_memmap(file, mode="r"))


def compute_cache_key(pictures: ImageFiles, names: Sequence[str], pixels: int) -> str:
    """Return a hash of all that the features depend on: the network, the size, and the images."""
    facts = f"{hash_weights()} {pixels}\n{describe_files(pictures, names)}"
    return f"grids-{pixels}-{hashlib.blake2b(facts.encode(), digest_size=8).hexdigest()}"


def describe_files(pictures: ImageFiles, names: Sequence[str]) -> str:
    """Return a line for each image, with its file size, or in a zip with its checksum."""
    lines = []
    for name in names:
        place, archive, fact = pictures.members.get(name, ""), pictures.archive, 0
        if place:
            fact = (pictures.path / place).stat().st_size if archive is None else archive.getinfo(place).CRC
        lines.append(f"{name} {fact}\n")
    return "".join(lines)


def fill_cache(
    file: Path, shape: tuple[int, int, int], pictures: ImageFiles, names: Sequence[str], pixels: int
) -> None:
    """Compute what is missing in the file, and note after each group how far it has come."""
    done = count_finished(file) if file.is_file() else 0
    mode = "r+" if done else "w+"
    if not done:
        get_progress_file(file).unlink(missing_ok=True)  # otherwise it would count for the empty file that is made now
    with explain_full_disk(file, shape):
        table = np.lib.format.open_memmap(file, mode=mode, dtype=np.float16, shape=None if done else shape)
        reserve(file)
    network = load_pretrained()
    for start in iterate_batches(done, len(names)):
        images = torch.stack([pictures.load_pixels(name, pixels) for name in names[start : start + BATCH_SIZE]])
        with torch.inference_mode():
            grid = network(images).flatten(2).transpose(1, 2)
        table[start : start + len(images)] = grid.half().numpy()
        table.flush()
        get_progress_file(file).write_text(json.dumps({"done": start + len(images)}), encoding="utf-8")


@contextmanager
def explain_full_disk(file: Path, shape: tuple[int, int, int]) -> Iterator[None]:
    """Raise one sentence if the disk is full, and free what was reserved in vain."""
    try:
        yield
    except OSError as error:
        if not count_finished(file):
            file.unlink(missing_ok=True)
        got = f"'{error.strerror}' for {2 * math.prod(shape) / 1e6:,.0f} MB of features"
        fix = "free some space, or set REGARD_CACHE to a folder on another disk"
        raise wrong("disk", got, f"room in {file.parent}", fix) from None


def reserve(file: Path) -> None:
    """Reserve the room now: a mapped file with holes, written to on a full disk, ends the process with a signal."""
    if not hasattr(os, "posix_fallocate"):
        return
    with file.open("r+b") as opened:
        try:
            os.posix_fallocate(opened.fileno(), 0, file.stat().st_size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # some file systems do not support it
                raise


def iterate_batches(done: int, images: int) -> Iterator[int]:
    """Yield the first image of each batch that is still to be computed, with a progress bar in a terminal."""
    starts = range(done, images, BATCH_SIZE)
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"computing features of {images - done} images", markup=False)
    return iter(track(starts, "features", console=console, transient=True, disable=not console.is_terminal))


def get_progress_file(file: Path) -> Path:
    """Return the file that counts the finished images of `file`."""
    return file.with_suffix(".json")


def count_finished(file: Path) -> int:
    """Return how many images of the file are finished."""
    try:
        return int(parse_json(get_progress_file(file).read_text(encoding="utf-8"))["done"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def is_complete(file: Path, images: int) -> bool:
    """Return whether all images of the file are finished."""
    return file.is_file() and count_finished(file) == images


def decode_images(pictures: ImageFiles, names: Sequence[str], pixels: int, *, cache: Path | None = None) -> np.ndarray:
    """Return the pixels of these images `(image, height, width, 3)`: decoded once, then read from one file."""
    facts = f"{pictures.path} {pixels}\n{describe_files(pictures, names)}"
    digest = hashlib.blake2b(facts.encode(), digest_size=8).hexdigest()
    file = (cache or cache_folder() / "features") / f"pixels-{pixels}-{digest}.npy"
    if not file.is_file():
        opened = (open_photo(pictures.read(name), name) for name in names)
        table = np.stack([np.asarray(resize_to_square(image, pixels)) for image in opened])
        file.parent.mkdir(parents=True, exist_ok=True)
        # Under a name of its own until it is whole: two processes may do this at once.
        own = file.with_suffix(f".{os.getpid()}.npy")
        np.save(own, table)
        own.replace(file)
    return np.asarray(np.load(file, mmap_mode="r"))
