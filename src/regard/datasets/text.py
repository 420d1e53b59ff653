"""Text as every task reads it: one way to clean it, for what is learned from and for what is asked later."""

import re

from regard.errors import wrong

MARK = "\ufeff"  # the byte-order mark: some editors begin a file with it
EDGES = re.compile(rf"\A[\s{MARK}]+|[\s{MARK}]+\Z")
BLANKS = re.compile(r"[ \t]+")
HALVES = re.compile("[\ud800-\udfff]")


def clean(text: str, name: str = "text") -> str:
    """A sentence without blanks, tabs or a byte-order mark around it; runs of blanks and tabs inside are one blank.

    >>> clean("\\ufeffone\\ttwo  three \\r")
    'one two three'
    """
    check_text(text, name)
    return BLANKS.sub(" ", EDGES.sub("", text))


def check_text(text: str, name: str) -> None:
    """Raises where a text has half of a character: so the command line gives us bytes that are no UTF-8."""
    half = HALVES.search(text)
    if half is not None:
        got = f"half a character (U+{ord(half[0]):04X}) at place {half.start() + 1}"
        raise wrong(name, got, "UTF-8 text", "type it in a terminal whose encoding is UTF-8")


def decode_text(content: bytes, name: str, first: int = 1) -> str:
    """UTF-8 text, without a byte-order mark; or a sentence on what it is instead, and where, from line `first` on."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise wrong(name, "UTF-16 text", "UTF-8 text", "convert it, for example with iconv -f utf-16 -t utf-8")
    place = content.find(b"\0")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        place = error.start if place < 0 else min(place, error.start)
    if place < 0:
        return text.removeprefix(MARK)
    fix = "convert it, for example with iconv -f latin1 -t utf-8"
    if not content[place]:
        fix = "give a text file, or convert it, for example with iconv -f utf-16 -t utf-8"
    line = content.count(b"\n", 0, place) + first
    raise wrong(name, f"byte 0x{content[place]:02x} in line {line}", "UTF-8 text", fix)


def shorten(value: object, most: int = 100) -> str:
    """What a text or an error says, on one line that is not too long for a sentence.

    >>> shorten("a\\n" * 60, 10)
    'a a a a a …'
    """
    said = " ".join(str(value).split()) or type(value).__name__
    return said if len(said) <= most else f"{said[:most]}…"
