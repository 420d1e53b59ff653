"""The cache of texts: only what it made itself is ever removed."""

import os
import time
from pathlib import Path

import pytest

from regard.tasks.data.prepared_folder import DAY, remove_old_folders


@pytest.mark.parametrize(
    ("name", "kept"),
    [(".text-1.writing", False), (".deleting-text-1", False), (".git", True), (".notes", True), ("own", True)],
)
def test_what_a_killed_process_left_goes_and_what_others_made_stays(tmp_path: Path, name: str, kept: bool) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "file").write_text("content")
    (tmp_path / "text-2").mkdir()
    long_ago = time.time() - 2 * DAY
    os.utime(tmp_path / name, (long_ago, long_ago))
    remove_old_folders(tmp_path / "text-2")
    assert (tmp_path / name / "file").exists() == kept
