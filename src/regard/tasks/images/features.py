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

from regard.bounds import parse_json
from regard.datasets.archives import content, opened, whole
from regard.errors import InputError, wrong
from regard.numerics.native.cache import folder as cache_folder
from regard.shapes import Float, Tensor
from regard.tasks.images.efficientnet import HEAD, SHRINKING, pretrained, weights_name
from regard.tasks.images.photos import as_tensor, open_photo, squeezed
from regard.training.storage import locked

TOGETHER = 32  # images at once; the work that is lost when it is stopped
ENDINGS = (".jpg", ".jpeg", ".png")


@dataclass(frozen=True)
class Pictures:
    """Images by name, in a folder or in a zip."""

    place: Path

    @cached_property
    def archive(self) -> zipfile.ZipFile | None:
        """The zip, if it is one."""
        if self.place.is_dir():
            return None
        try:
            return opened(self.place)
        except InputError as error:
            got, fix = f"{self.place}, which cannot be read ({error})", "check the path, or copy it again"
            raise wrong("images", got, "a folder or a zip of images", fix) from None

    @cached_property
    def members(self) -> dict[str, str]:
        """Where each image is, by its own name."""
        if self.archive is None:
            found = [str(path.relative_to(self.place)) for path in sorted(self.place.rglob("*"))]
        else:
            found = self.archive.namelist()
        return {name.rpartition("/")[2]: name for name in found if name.lower().endswith(ENDINGS)}

    def read(self, name: str) -> bytes:
        """The file of an image."""
        if name not in self.members:
            fix = "bring the image back, or take its captions out"
            raise wrong("images", f"no {name} in {self.place}", "an image for every caption", fix)
        try:
            if self.archive is not None:
                return content(self.archive, self.members[name], self.place)
            return whole(self.place / self.members[name])
        except (OSError, InputError) as error:
            raise wrong("images", f"{name} in {self.place} ({error})", "a whole file", "copy it again") from None

    def sums(self, names: Sequence[str]) -> list[str]:
        """A short name for the file of each image: those that are alike have the same."""
        if self.archive is None:
            return [f"{zlib.crc32(content := self.read(name)):08x} {len(content)}" for name in names]
        entries = [self.archive.getinfo(self.members[name]) for name in names]
        return [f"{entry.CRC:08x} {entry.file_size}" for entry in entries]

    def pixels(self, name: str, pixels: int) -> Float[Tensor, "3 pixels pixels"]:
        """An image, squeezed to a square."""
        return as_tensor(squeezed(open_photo(self.read(name), name), pixels))


@dataclass(frozen=True)
class Grids:
    """Features of images by their numbers: a row of `channels` numbers for each region, from the top left on."""

    table: np.ndarray

    def __getitem__(self, numbers: Sequence[int]) -> Float[Tensor, "batch region channels"]:
        return torch.from_numpy(np.asarray(self.table[np.asarray(numbers)])).float()


def grids_of(pictures: Pictures, names: Sequence[str], pixels: int, *, cache: Path | None = None) -> Grids:
    """The grids of these images at this size. What an earlier call has computed is not computed again."""
    if pixels < SHRINKING or pixels % SHRINKING:
        raise wrong("pixels", pixels, f"a multiple of {SHRINKING}", f"use {max(1, pixels // SHRINKING) * SHRINKING}")
    file = (cache or cache_folder() / "features") / f"{identity(pictures, names, pixels)}.npy"
    shape = len(names), (pixels // SHRINKING) ** 2, HEAD
    if not is_complete(file, len(names)):
        file.parent.mkdir(parents=True, exist_ok=True)
        with locked(file.with_suffix(".lock")):
            if not is_complete(file, len(names)):
                fill(file, shape, pictures, names, pixels)
    return Grids(np.lib.format.open_memmap(file, mode="r"))


def identity(pictures: Pictures, names: Sequence[str], pixels: int) -> str:
    """One name for all that the features depend on: the network, the size, and the images."""
    facts = f"{weights_name()} {pixels}\n{facts_of(pictures, names)}"
    return f"grids-{pixels}-{hashlib.blake2b(facts.encode(), digest_size=8).hexdigest()}"


def facts_of(pictures: Pictures, names: Sequence[str]) -> str:
    """Each image with its length, or in a zip with its sum: others are other images."""
    lines = []
    for name in names:
        place, archive, fact = pictures.members.get(name, ""), pictures.archive, 0
        if place:
            fact = (pictures.place / place).stat().st_size if archive is None else archive.getinfo(place).CRC
        lines.append(f"{name} {fact}\n")
    return "".join(lines)


def fill(file: Path, shape: tuple[int, int, int], pictures: Pictures, names: Sequence[str], pixels: int) -> None:
    """Computes what is missing in the file, and writes down after each group how far it has come."""
    done = finished(file) if file.is_file() else 0
    mode = "r+" if done else "w+"
    if not done:
        note_of(file).unlink(missing_ok=True)  # it would be taken for one of the empty file that comes now
    with storing(file, shape):
        table = np.lib.format.open_memmap(file, mode=mode, dtype=np.float16, shape=None if done else shape)
        reserve(file)
    network = pretrained()
    for start in groups(done, len(names)):
        images = torch.stack([pictures.pixels(name, pixels) for name in names[start : start + TOGETHER]])
        with torch.inference_mode():
            grid = network(images).flatten(2).transpose(1, 2)
        table[start : start + len(images)] = grid.half().numpy()
        table.flush()
        note_of(file).write_text(json.dumps({"done": start + len(images)}), encoding="utf-8")


@contextmanager
def storing(file: Path, shape: tuple[int, int, int]) -> Iterator[None]:
    """Puts a disk without room in one sentence, and gives back what was taken of it for nothing."""
    try:
        yield
    except OSError as error:
        if not finished(file):
            file.unlink(missing_ok=True)
        got = f"'{error.strerror}' for {2 * math.prod(shape) / 1e6:,.0f} MB of features"
        fix = "free some space, or set REGARD_CACHE to a folder on another disk"
        raise wrong("disk", got, f"room in {file.parent}", fix) from None


def reserve(file: Path) -> None:
    """Takes the room now: a mapped file with holes, written to on a full disk, ends the process with a signal."""
    if not hasattr(os, "posix_fallocate"):
        return
    with file.open("r+b") as opened:
        try:
            os.posix_fallocate(opened.fileno(), 0, file.stat().st_size)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # some systems of files cannot
                raise


def groups(done: int, images: int) -> Iterator[int]:
    """The first image of each group that is still to be computed, with a bar where somebody watches."""
    starts = range(done, images, TOGETHER)
    console = Console(stderr=True)
    if not console.is_terminal:
        console.print(f"computing features of {images - done} images", markup=False)
    return iter(track(starts, "features", console=console, transient=True, disable=not console.is_terminal))


def note_of(file: Path) -> Path:
    return file.with_suffix(".json")


def finished(file: Path) -> int:
    """How many images the file has."""
    try:
        return int(parse_json(note_of(file).read_text(encoding="utf-8"))["done"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def is_complete(file: Path, images: int) -> bool:
    return file.is_file() and finished(file) == images


def decoded(pictures: Pictures, names: Sequence[str], pixels: int, *, cache: Path | None = None) -> np.ndarray:
    """All of these images as bytes `(image, height, width, 3)`: opened once, then read from one file."""
    facts = f"{pictures.place} {pixels}\n{facts_of(pictures, names)}"
    digest = hashlib.blake2b(facts.encode(), digest_size=8).hexdigest()
    file = (cache or cache_folder() / "features") / f"pixels-{pixels}-{digest}.npy"
    if not file.is_file():
        opened = (open_photo(pictures.read(name), name) for name in names)
        table = np.stack([np.asarray(squeezed(image, pixels)) for image in opened])
        file.parent.mkdir(parents=True, exist_ok=True)
        # Under a name of its own until it is whole: two processes may do this at once.
        own = file.with_suffix(f".{os.getpid()}.npy")
        np.save(own, table)
        own.replace(file)
    return np.asarray(np.load(file, mmap_mode="r"))
