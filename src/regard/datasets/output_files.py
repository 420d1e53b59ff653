"""Write files that a user names: the one that was there before stays until the new one is whole."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replace_output(path: Path | str) -> Iterator[Path]:
    """Yield the path to write; at the end of the block the file takes the place of `path`.

    If the block fails, as on a full disk, `path` is as it was before. If it is interrupted, what was written so far
    stays beside it as `NAME.part`. A device or a pipe, such as /dev/stdout, is written itself, and a link stays a link.
    """
    given = Path(path)
    path = Path(os.path.realpath(given))
    if not is_replaceable(path):
        yield given
        return
    temporary = path.with_name(f".regard-{os.getpid()}{path.suffix}")
    try:
        yield temporary
        sync_file(temporary)
        if path.exists():
            shutil.copymode(path, temporary)
        temporary.replace(path)
    except KeyboardInterrupt as error:
        with suppress(OSError):  # a name that is too long, or nothing written
            if temporary.stat().st_size:
                temporary.replace(f"{path}.part")
                error.add_note(f"what was written so far is in {given}.part; run the same command again for all")
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def is_replaceable(path: Path) -> bool:
    """Return whether a file can be replaced by another: it is a file that may be written, or there is none yet."""
    if path.exists():
        return path.is_file() and os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    return path.parent.is_dir()


def sync_file(path: Path) -> None:
    """Force a file to the disk: some disks say only then that they are full."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
