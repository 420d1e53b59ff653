"""Check, decode and clean text: the same way for training data and for what users ask later."""

import re

from regard.errors import wrong

MARK = "\ufeff"  # the byte-order mark: some editors begin a file with it
EDGES = re.compile(rf"\A[\s{MARK}]+|[\s{MARK}]+\Z")
BLANKS = re.compile(r"[ \t]+")
HALVES = re.compile("[\ud800-\udfff]")


def clean(text: str, name: str = "text") -> str:
    """Return a sentence without blanks or a byte-order mark around it; blanks and tabs inside become one blank.

    >>> clean("\\ufeffone\\ttwo  three \\r")
    'one two three'
    """
    check_text(text, name)
    # Most lines of a file are clean: patterns would take ten times as long to find that out.
    if text != text.strip() or MARK in (text[:1], text[-1:]):
        text = EDGES.sub("", text)
    return BLANKS.sub(" ", text) if "\t" in text or "  " in text else text


def check_text(text: str, name: str) -> None:
    """Raise if a text has half of a character: Python gives arguments that are not UTF-8 in this form."""
    half = None if text.isascii() else HALVES.search(text)
    if half is not None:
        got = f"half a character (U+{ord(half[0]):04X}) at position {half.start() + 1}"
        raise wrong(name, got, "UTF-8 text", "type it in a terminal whose encoding is UTF-8")


def decode_text(content: bytes, name: str, first: int = 1) -> str:
    """Return UTF-8 text without a byte-order mark; raise with the line of the first bad byte, counted from `first`."""
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
    """Return a text or the message of an error on one line of bounded length.

    >>> shorten("a\\n" * 60, 10)
    'a a a a a …'
    """
    line = " ".join(str(value).split()) or type(value).__name__
    return line if len(line) <= most else f"{line[:most]}…"
