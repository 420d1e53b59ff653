"""What is wanted of an archive, onto the disk: only under names of our own making, and only whole."""

import hashlib
import shutil
import zipfile
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from regard.datasets.archives import check_total, copy_member, get_file_name, open_archive, wrap_archive_errors
from regard.datasets.files import Extraction, File
from regard.datasets.transfer import DownloadError, wrap_disk_errors
from regard.errors import InputError, format_message


def extract_archive(file: File, archive: Path, folder: Path) -> list[Path]:
    """Writes the wanted members of `archive` into `folder`, checks them together, and returns their paths.

    Paths inside an archive are not followed: a member goes to the folder under the last part of its name.
    """
    wanted = file.extraction or Extraction("*")
    place = folder / wanted.folder if wanted.folder else folder
    fresh = folder / f".{file.name}.unpacking"
    with wrap_disk_errors(archive):
        shutil.rmtree(fresh, ignore_errors=True)
        try:
            fresh.mkdir(parents=True)
            written = extract_members(archive, wanted.members, fresh)
            check_members(file, wanted, written)
            place.mkdir(parents=True, exist_ok=True)
            return [path.replace(place / path.name) for path in written]
        except InputError as error:
            raise DownloadError(str(error)) from None
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def extract_members(archive: Path, pattern: str, folder: Path) -> list[Path]:
    """The members that fit the pattern, in the order of their names."""
    with open_archive(archive) as content, wrap_archive_errors(archive):
        found = [member for member in content.infolist() if matches_pattern(member, pattern)]
        check_total(archive, found)
        named = {get_file_name(archive, member): member for member in found}
        if len(named) != len(found):
            got = f"{len(found)} members under {len(named)} names"
            raise DownloadError(format_message(archive.name, got, "a name for each", "check where it is from"))
        for name, member in sorted(named.items()):
            with (folder / name).open("xb") as output:
                copy_member(content, member, archive, output)
    return [folder / name for name in sorted(named)]


def matches_pattern(member: zipfile.ZipInfo, pattern: str) -> bool:
    inside = PurePosixPath(member.filename)
    return not member.is_dir() and "__MACOSX" not in inside.parts and fnmatch(member.filename, pattern)


def check_members(file: File, wanted: Extraction, paths: list[Path]) -> None:
    """Raises unless these are the members that were wanted, all of them and unchanged."""
    if not paths or (wanted.count is not None and len(paths) != wanted.count):
        expected = f"{wanted.count or 'some'} that fit {wanted.members}"
        fix = "give another --mirror, or a folder of your own"
        raise DownloadError(format_message(file.name, f"{len(paths)} files", expected, fix))
    if wanted.sha256 is not None and wanted.sha256 != compute_members_sha256(paths):
        fix = "remove the archive and repeat; nothing of it was kept"
        raise DownloadError(
            format_message(file.name, f"contents with sha256 {compute_members_sha256(paths)}", f"{wanted.sha256}", fix)
        )


def compute_members_sha256(paths: list[Path]) -> str:
    """The sha256 of what `sha256sum` would write of these files."""
    lines = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        with path.open("rb") as content:
            total = hashlib.file_digest(content, "sha256").hexdigest()
        lines.update(f"{total}  {path.name}\n".encode())
    return lines.hexdigest()
