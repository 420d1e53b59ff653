"""Read zip archives that may be hostile: they are checked before they are opened, and read no further than they say."""

import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from regard.datasets.bounds import get_bound
from regard.datasets.text import shorten
from regard.errors import InputError, RegardError, wrong

LISTING = get_bound("archive", "listing")
MEMBER = get_bound("archive", "member")
MEMBERS = get_bound("archive", "members")
NAME = get_bound("archive", "name")
UNPACKED = get_bound("archive", "unpacked")

END, END64, LOCATOR = (b"PK\5\6", 22), (b"PK\6\6", 56), (b"PK\6\7", 20)  # records of a zip and their lengths
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # can be unpacked in pieces of bounded size
ENCRYPTED = 0x1
ARCHIVE_ERRORS = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError, NotImplementedError, struct.error,
          OverflowError, KeyError, IndexError)  # fmt: skip


@contextmanager
def wrap_archive_errors(path: Path, fix: str = "remove it and fetch it again") -> Iterator[None]:
    """Turn whatever a damaged archive raises into one sentence."""
    try:
        yield
    except RegardError:
        raise
    except ARCHIVE_ERRORS as error:
        raise wrong(path.name, f"a damaged archive ({shorten(error)})", "a whole zip", fix) from None


@contextmanager
def wrap_read_errors(path: Path) -> Iterator[None]:
    """Turn an error of the disk while reading into one sentence."""
    try:
        yield
    except OSError as error:
        raise wrong(path.name, f"'{error.strerror or error}'", "a zip that can be read", "check the path") from None


def open_archive(path: Path) -> zipfile.ZipFile:
    """Return an archive whose list of members is within the bounds; `check_member` checks each member."""
    if not path.is_file():
        raise wrong(path.name, f"no file {path}", "a zip", "check the path")
    with wrap_archive_errors(path), wrap_read_errors(path):
        size = read_listing_size(path)
        if size > LISTING:
            raise too_large_error(path, f"a list of members of {size:,} bytes", LISTING, "bytes")
        archive = zipfile.ZipFile(path)
        if len(archive.infolist()) > MEMBERS:
            archive.close()
            raise too_large_error(path, f"{len(archive.infolist()):,} members", MEMBERS, "members")
        return archive


def read_listing_size(path: Path) -> int:
    """Return the bytes of the list of members as the end of the file gives them: zipfile reads them at once."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 2**16 - END[1]))
        tail = file.read()
        end = tail.rfind(END[0])
        if end < 0 or len(tail) - end < END[1]:
            return 0  # not a zip: zipfile raises when it is opened
        listed = int(struct.unpack_from("<L", tail, end + 12)[0])
        before = end - LOCATOR[1]
        if before >= 0 and tail[before : before + 4] == LOCATOR[0]:
            file.seek(min(size, struct.unpack_from("<Q", tail, before + 8)[0]))
            larger = file.read(END64[1])
            if len(larger) == END64[1] and larger.startswith(END64[0]):
                listed = max(listed, int(struct.unpack_from("<Q", larger, 40)[0]))
    return listed


def check_member(path: Path, member: zipfile.ZipInfo, most: int) -> None:
    """Raise if a member is encrypted, packed by another method, not a plain file, or too large."""
    kind = stat.S_IFMT(member.external_attr >> 16)
    if member.flag_bits & ENCRYPTED:
        raise wrong(path.name, f"{member.filename!r}, which is encrypted", "no password", "unpack and pack it again")
    if member.compress_type not in METHODS:
        got = f"{member.filename!r}, packed by method {member.compress_type}"
        raise wrong(path.name, got, "deflated or stored members", "unpack and pack it again")
    if kind not in (0, stat.S_IFREG):
        raise wrong(path.name, f"{member.filename!r}, a link or a device", "plain files", "check where it is from")
    if member.file_size > most:
        raise too_large_error(path, f"{member.file_size:,} bytes of {member.filename!r}", most, "bytes")


def read_member(archive: zipfile.ZipFile, name: str, path: Path) -> bytes:
    """Return the content of one member, such as an image or a sound."""
    with wrap_archive_errors(path), wrap_read_errors(path):
        member = archive.getinfo(name)
        check_member(path, member, MEMBER)
        with archive.open(member) as source:
            content = source.read(MEMBER)
        check_length(member, len(content))
        return content


def read_plain_file(path: Path) -> bytes:
    """Return the content of a file in a folder, within the bounds of a member of an archive."""
    if not path.is_file():
        raise wrong(path.name, "something that is not a plain file", "an image or a sound", "check where it is from")
    if path.stat().st_size > MEMBER:
        raise too_large_error(path, f"{path.stat().st_size:,} bytes", MEMBER, "bytes")
    return path.read_bytes()


def copy_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path, output: BinaryIO) -> None:
    """Write one member to the disk; zipfile stops at the size that the list gives."""
    check_member(path, member, UNPACKED)
    with archive.open(member) as source:
        shutil.copyfileobj(source, output)
    check_length(member, output.tell())


def check_length(member: zipfile.ZipInfo, length: int) -> None:
    """Raise if a member is shorter than listed; a longer one is cut there and fails zipfile's checksum."""
    if length != member.file_size:
        raise zipfile.BadZipFile(f"{length} bytes of {member.filename!r} in the place of {member.file_size}")


def check_total(path: Path, members: list[zipfile.ZipInfo]) -> None:
    """Raise if the members together are larger than allowed, or than the free space of the disk."""
    total = sum(member.file_size for member in members)
    if total > UNPACKED:
        raise too_large_error(path, f"{total:,} bytes, unpacked", UNPACKED, "bytes")
    if total > shutil.disk_usage(path.parent).free:
        fix = "free some space and repeat; what was loaded is kept"
        raise wrong("disk", f"no space left for {total:,} bytes", f"room in {path.parent}", fix)


def get_file_name(path: Path, member: zipfile.ZipInfo) -> str:
    """Return the last part of a member's name; raise if it is not a plain file name."""
    name = PurePosixPath(member.filename).name
    odd = name.startswith(".") or not name.isprintable() or any(sign in name for sign in "/\\:")
    if not name or odd or len(name.encode("utf-8", "surrogatepass")) > NAME:
        raise wrong(path.name, f"a member named {member.filename[:60]!r}", "names of files", "check where it is from")
    return name


def too_large_error(path: Path, got: str, most: int, unit: str) -> InputError:
    """Return the error of something in an archive that is larger than allowed."""
    return wrong(path.name, got, f"at most {most:,} {unit}", "check where it is from")
