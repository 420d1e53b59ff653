"""Zip archives that anybody may have packed: looked at before they are opened, read no further than they promised."""

import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from regard.bounds import most
from regard.datasets.cleaning import in_short
from regard.errors import InputError, RegardError, wrong

LISTING = most("archive", "listing")
MEMBER = most("archive", "member")
MEMBERS = most("archive", "members")
NAME = most("archive", "name")
UNPACKED = most("archive", "unpacked")

END, END64, LOCATOR = (b"PK\5\6", 22), (b"PK\6\6", 56), (b"PK\6\7", 20)  # of the list of members, and their lengths
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that can be unpacked a bounded piece at a time
ENCRYPTED = 0x1
DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, NotImplementedError, struct.error,
          OverflowError, KeyError, IndexError)  # fmt: skip


@contextmanager
def reading(path: Path, fix: str = "remove it and fetch it again") -> Iterator[None]:
    """Puts whatever a damaged archive raises in one sentence."""
    try:
        yield
    except RegardError:
        raise
    except DAMAGE as error:
        raise wrong(path.name, f"a damaged archive ({in_short(error)})", "a whole zip", fix) from None


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Puts what the disk refuses in one sentence, where nothing is written."""
    try:
        yield
    except OSError as error:
        raise wrong(path.name, f"'{error.strerror or error}'", "a zip that can be read", "check the path") from None


def opened(path: Path) -> zipfile.ZipFile:
    """An archive whose list of members is no longer than is allowed, and has none that is no plain file."""
    if not path.is_file():
        raise wrong(path.name, f"no file {path}", "a zip", "check the path")
    with reading(path), readable(path):
        if listing(path) > LISTING:
            raise too_much(path, f"a list of members of {listing(path):,} bytes", LISTING, "bytes")
        archive = zipfile.ZipFile(path)
        if len(archive.infolist()) > MEMBERS:
            archive.close()
            raise too_much(path, f"{len(archive.infolist()):,} members", MEMBERS, "members")
        return archive


def listing(path: Path) -> int:
    """The bytes that the list of members takes, which are read at once: as the end of the file says it."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 2**16 - END[1]))
        tail = file.read()
        place = tail.rfind(END[0])
        if place < 0 or len(tail) - place < END[1]:
            return 0  # no zip: whoever opens it says so
        found = int(struct.unpack_from("<L", tail, place + 12)[0])
        before = place - LOCATOR[1]
        if before >= 0 and tail[before : before + 4] == LOCATOR[0]:
            file.seek(min(size, struct.unpack_from("<Q", tail, before + 8)[0]))
            larger = file.read(END64[1])
            if len(larger) == END64[1] and larger.startswith(END64[0]):
                found = max(found, int(struct.unpack_from("<Q", larger, 40)[0]))
    return found


def check_member(path: Path, member: zipfile.ZipInfo, most: int) -> None:
    """Raises where a member is locked, packed by a method without bound, no plain file, or too large."""
    kind = stat.S_IFMT(member.external_attr >> 16)
    if member.flag_bits & ENCRYPTED:
        raise wrong(path.name, f"{member.filename!r}, which is encrypted", "no password", "unpack and pack it again")
    if member.compress_type not in METHODS:
        got = f"{member.filename!r}, packed by method {member.compress_type}"
        raise wrong(path.name, got, "deflated or stored members", "unpack and pack it again")
    if kind not in (0, stat.S_IFREG):
        raise wrong(path.name, f"{member.filename!r}, a link or a device", "plain files", "check where it is from")
    if member.file_size > most:
        raise too_much(path, f"{member.file_size:,} bytes of {member.filename!r}", most, "bytes")


def content(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    """One member whole, such as an image or a sound."""
    with reading(path), readable(path):
        member = archive.getinfo(name)
        check_member(path, member, MEMBER)
        with archive.open(member) as source:
            found = source.read(MEMBER)
        check_length(member, len(found))
        return found


def whole(path: Path) -> bytes:
    """A file of a folder, within the bounds of a member of an archive."""
    if not path.is_file():
        raise wrong(path.name, "no plain file", "an image or a sound", "check where it is from")
    if path.stat().st_size > MEMBER:
        raise too_much(path, f"{path.stat().st_size:,} bytes", MEMBER, "bytes")
    return path.read_bytes()


def copied(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, output: BinaryIO) -> None:
    """One member onto the disk; no more comes out of it than it promised."""
    check_member(path, member, UNPACKED)
    with archive.open(member) as source:
        shutil.copyfileobj(source, output)
    check_length(member, output.tell())


def check_length(member: zipfile.ZipInfo, length: int) -> None:
    """Raises where a member is shorter than it promised; longer ones are cut there, and have another sum."""
    if length != member.file_size:
        raise zipfile.BadZipFile(f"{length} bytes of {member.filename!r} in the place of {member.file_size}")


def check_total(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Raises where all of these would take more than is allowed, or than there is room for."""
    total = sum(member.file_size for member in members)
    if total > UNPACKED:
        raise too_much(path, f"{total:,} bytes, unpacked", UNPACKED, "bytes")
    if total > shutil.disk_usage(path.parent).free:
        fix = "free some space and repeat; what was loaded is kept"
        raise wrong("disk", f"no space left for {total:,} bytes", f"room in {path.parent}", fix)


def plain(path: Path, member: zipfile.ZipInfo) -> str:
    """The last part of a member's name, where that is the name of a file and nothing else."""
    name = PurePosixPath(member.filename).name
    odd = name.startswith(".") or not name.isprintable() or any(sign in name for sign in "/\\:")
    if not name or odd or len(name.encode("utf-8", "surrogatepass")) > NAME:
        raise wrong(path.name, f"a member named {member.filename[:60]!r}", "names of files", "check where it is from")
    return name


def too_much(path: Path, got: str, most: int, unit: str) -> InputError:
    return wrong(path.name, got, f"at most {most:,} {unit}", "check where it is from")
