"""What is wanted of an archive, onto the disk: only under names of our own making, and only whole."""

import hashlib
import shutil
import zipfile
import zlib
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from regard.datasets.fetching import FetchError, storing
from regard.datasets.files import File, Unpacking
from regard.errors import sentence

MOST = 4 * 2**30  # bytes: an archive that unpacks to more is none of ours


def unpack(file: File, archive: Path, folder: Path) -> list[Path]:
    """Writes the wanted members of `archive` into `folder`, checks them together, and returns their paths.

    Paths inside an archive are not followed: a member goes to the folder under the last part of its name.
    """
    wanted = file.unpacking or Unpacking("*")
    place = folder / wanted.folder if wanted.folder else folder
    fresh = folder / f".{file.name}.unpacking"
    with storing(archive):
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            fresh.mkdir(parents=True)
            written = extracted(archive, wanted.members, fresh)
            check(file, wanted, written)
            place.mkdir(parents=True, exist_ok=True)
            return [path.replace(place / path.name) for path in written]
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            fix = "remove it and repeat"
            raise FetchError(sentence(archive.name, f"a damaged archive ({error})", "a whole zip", fix)) from None
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def extracted(archive: Path, pattern: str, folder: Path) -> list[Path]:
    """The members that fit the pattern, in the order of their names."""
    with zipfile.ZipFile(archive) as opened:
        found = [member for member in opened.infolist() if fits(member, pattern)]
        if sum(member.file_size for member in found) > MOST:
            raise FetchError(sentence(archive.name, "gigabytes", f"at most {MOST} bytes", "check where it is from"))
        paths = []
        for member in sorted(found, key=lambda member: PurePosixPath(member.filename).name):
            path = folder / PurePosixPath(member.filename).name
            with opened.open(member) as source, path.open("xb") as output:
                shutil.copyfileobj(source, output)
            paths.append(path)
    return paths


def fits(member: zipfile.ZipInfo, pattern: str) -> bool:
    inside = PurePosixPath(member.filename)
    return not member.is_dir() and "__MACOSX" not in inside.parts and fnmatch(member.filename, pattern)


def check(file: File, wanted: Unpacking, paths: list[Path]) -> None:
    """Raises unless these are the members that were wanted, all of them and unchanged."""
    if not paths or (wanted.count is not None and len(paths) != wanted.count):
        expected = f"{wanted.count or 'some'} that fit {wanted.members}"
        fix = "give another --mirror, or a folder of your own"
        raise FetchError(sentence(file.name, f"{len(paths)} files", expected, fix))
    if wanted.sha256 not in (None, digest(paths)):
        fix = "remove the archive and repeat; nothing of it was kept"
        raise FetchError(sentence(file.name, f"contents with sha256 {digest(paths)}", f"{wanted.sha256}", fix))


def digest(paths: list[Path]) -> str:
    """The sha256 of what `sha256sum` would write of these files."""
    lines = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        lines.update(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n".encode())
    return lines.hexdigest()
