"""Unpack the wanted members of an archive: all of them or none, never outside of the target folder."""

import hashlib
import shutil
import zipfile
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from regard.datasets.archives import check_total, copy_member, get_file_name, open_archive, wrap_archive_errors
from regard.datasets.files import Extraction, File
from regard.datasets.transfer import DownloadError, compute_sha256, download_error, wrap_disk_errors
from regard.errors import InputError


def extract_archive(file: File, archive: Path, folder: Path) -> list[Path]:
    """Write the wanted members of `archive` into `folder` once all of them are checked, and return their paths.

    Folders inside an archive are ignored: of the name of a member only the last part is used.
    """
    wanted = file.extraction or Extraction("*")
    target, temporary = folder / wanted.folder, folder / f".{file.name}.unpacking"
    with wrap_disk_errors(archive):
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            temporary.mkdir(parents=True)
            written = extract_members(archive, wanted.members, temporary)
            check_members(file, wanted, written)
            target.mkdir(parents=True, exist_ok=True)
            return [path.replace(target / path.name) for path in written]
        except InputError as error:
            raise DownloadError(str(error)) from None
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def extract_members(archive: Path, pattern: str, folder: Path) -> list[Path]:
    """Write the members that match the pattern into `folder` and return their paths, sorted by name."""
    with open_archive(archive) as content, wrap_archive_errors(archive):
        found = [member for member in content.infolist() if matches_pattern(member, pattern)]
        check_total(archive, found)
        named = {get_file_name(archive, member): member for member in found}
        if len(named) != len(found):
            got = f"{len(found)} members under {len(named)} names"
            raise download_error(archive.name, got, "a name for each", "check where it is from")
        for name, member in sorted(named.items()):
            with (folder / name).open("xb") as output:
                copy_member(content, member, archive, output)
    return [folder / name for name in sorted(named)]


def matches_pattern(member: zipfile.ZipInfo, pattern: str) -> bool:
    """Return whether a member is a file that is wanted, and not one that a Mac adds."""
    parts = PurePosixPath(member.filename).parts
    return not member.is_dir() and "__MACOSX" not in parts and fnmatch(member.filename, pattern)


def check_members(file: File, wanted: Extraction, paths: list[Path]) -> None:
    """Raise unless the members are complete and unchanged."""
    if not paths or (wanted.count is not None and len(paths) != wanted.count):
        expected = f"{wanted.count or 'some'} that fit {wanted.members}"
        fix = "give another --mirror, or a folder of your own"
        raise download_error(file.name, f"{len(paths)} files", expected, fix)
    if wanted.sha256 is not None and wanted.sha256 != compute_members_sha256(paths):
        fix = "remove the archive and repeat; nothing of it was kept"
        raise download_error(
            file.name, f"contents with sha256 {compute_members_sha256(paths)}", f"{wanted.sha256}", fix
        )


def compute_members_sha256(paths: list[Path]) -> str:
    """Return the sha256 of what `sha256sum` would print of these files."""
    ordered = sorted(paths, key=lambda path: path.name)
    lines = "".join(f"{compute_sha256(path)}  {path.name}\n" for path in ordered)
    return hashlib.sha256(lines.encode()).hexdigest()
