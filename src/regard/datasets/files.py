"""What a data set is made of: files at the addresses of its authors, with sizes and sha256."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Extraction:
    """Which members of a zip archive are wanted, and what all of them together must be.

    A server may pack an archive anew for every download, so that the archive has no fixed sha256. `sha256` is that of
    the lines that `sha256sum` prints of the members, sorted by name; None if the authors change the content.
    """

    members: str  # a pattern of their paths
    folder: str = ""  # where they go
    count: int | None = None
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class File:
    """One download. Size and sha256 are None if the authors replace the file now and then."""

    name: str
    address: str
    size: int | None = None  # bytes
    sha256: str | None = None
    extraction: Extraction | None = None

    @property
    def has_checksum(self) -> bool:
        """Whether a known sha256 tells if a download is what the authors made."""
        return self.sha256 is not None or (self.extraction is not None and self.extraction.sha256 is not None)


@dataclass(frozen=True, slots=True)
class PublishedDataset:
    """Files under one license."""

    name: str
    about: str
    license: str
    homepage: str  # a page of the authors
    files: tuple[File, ...]
    notes: str = ""

    @property
    def size(self) -> int:
        """The bytes to download, as far as they are known."""
        return sum(file.size or 0 for file in self.files)

    @property
    def warning(self) -> str:
        """A warning about files that cannot be checked; empty if the sha256 of every file is known."""
        files = [file for file in self.files if not file.has_checksum]
        if not files:
            return ""
        way = "unencrypted" if any(file.address.startswith("http:") for file in files) else "encrypted"
        return f"no sha256 to check it by; the connection to its authors is {way}"

    @property
    def has_known_size(self) -> bool:
        """Whether the size of every file is known."""
        return all(file.size is not None for file in self.files)
