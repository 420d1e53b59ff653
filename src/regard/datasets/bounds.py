"""How much is taken of files and servers that anybody may have made: every limit, and what enforces it."""

from typing import NamedTuple


class Bound(NamedTuple):
    """A limit that is looked at before the work, or while it is done."""

    name: str
    limit: int
    unit: str
    enforced: str  # the function that refuses more


TEXT = Bound("a text file, unpacked", 2**30, "bytes", "regard.tasks.data.reading.unzipped")
LINE = Bound("a line of standard input", 2**20, "bytes", "regard.cli.reading.lines_of")
DOWNLOAD = Bound("a download whose size is not known", 2**28, "bytes", "regard.datasets.fetching.poured")
REDIRECTS = Bound("addresses that a download is sent on to", 5, "addresses", "regard.datasets.redirects.Redirects")
HEADER = Bound("digits of a number in an answer's head", 18, "digits", "regard.datasets.fetching.whole")
LISTING = Bound("the list of members of an archive", 2**24, "bytes", "regard.datasets.archives.opened")
MEMBERS = Bound("members of an archive", 100_000, "members", "regard.datasets.archives.opened")
MEMBER = Bound("an image or sound in an archive", 2**26, "bytes", "regard.datasets.archives.content")
UNPACKED = Bound("an archive, unpacked", 2**32, "bytes", "regard.datasets.archives.check_total")
NAME = Bound("the name of a member", 255, "bytes", "regard.datasets.archives.plain")
BOUNDS = (TEXT, LINE, DOWNLOAD, REDIRECTS, HEADER, LISTING, MEMBERS, MEMBER, UNPACKED, NAME)
