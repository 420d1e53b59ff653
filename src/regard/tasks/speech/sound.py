"""Sound from files: what soundfile reads, in one channel, at the rate that is wanted."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.bounds import check_file, most
from regard.errors import InputError, RegardError, missing, wrong
from regard.shapes import Float, Tensor
from regard.tasks.speech.features import converted

LOUD = 2.0**24  # of full scale: the squares of what is far louder are no numbers any more
FAINT = 1e-5  # of full scale: below the smallest step of 16 bits
LONGEST = float(most("sound", "seconds"))  # a file of hours would fill the memory first
BLOCK = most("sound", "block")
# How files of the formats that we mean begin, and what soundfile calls them; the library itself opens thirty more.
BEGINNINGS = (b"RIFF", b"RIFX", b"RF64", b"fLaC", b"OggS", b"ID3")
FORMATS = ("WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3")


class Sound(NamedTuple):
    """Samples from −1 to 1, and what was done to get them."""

    samples: Float[Tensor, " sample"]
    notes: tuple[str, ...] = ()


def read_sound(path: Path, rate: int) -> Sound:
    """A sound file as samples at `rate`, several channels averaged."""
    try:
        check_file("sound", path, most("sound", "bytes"))
        with path.open("rb") as file:
            return decoded(file, path.name, rate)
    except OSError as error:
        raise wrong("sound", f"{path} ('{error.strerror}')", "a file that can be read", "check the path") from None


def decoded(file: BufferedIOBase, name: str, rate: int, *, longest: float = LONGEST) -> Sound:
    """The same from an open file of at most so many seconds, which may lie in an archive."""
    check_beginning(file, name)
    with reading(name):
        opened = package().SoundFile(file)
    with opened:
        check_header(opened, name, longest)
        own, channels = int(opened.samplerate), int(opened.channels)
        samples = averaged(opened, name)
    notes = []
    if channels > 1:
        notes.append(f"{name}: {channels} channels, averaged")
    if own != rate:
        notes.append(f"{name}: {own} samples a second, converted to {rate}")
    check_audible(samples, name)
    mono = converted(samples, own, rate)
    check_audible(mono, name)
    return Sound(mono, tuple(notes))


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Says in one sentence what a damaged file makes of the library: it is the file that is wrong, whatever is raised.

    libsndfile's own words are an internal code; the name of the file is what helps.
    """
    try:
        yield
    except RegardError:
        raise
    except Exception as error:
        raise no_sound(name, error) from None


def averaged(opened: Any, name: str) -> Float[Tensor, " sample"]:
    """The mean of all channels, decoded some samples at a time: a header may claim more than there is."""
    frames = max(1, BLOCK // opened.channels)
    parts, left = [], int(opened.frames)
    while left > 0:
        with reading(name):
            part = torch.from_numpy(opened.read(min(frames, left), dtype="float32", always_2d=True))
        if not len(part):
            break
        parts.append(part.mean(1))
        left -= len(part)
    return torch.cat(parts) if parts else torch.zeros(0)


def no_sound(name: str, error: Exception | str) -> InputError:
    reason = " ".join((str(error).partition(": ")[2] or str(error)).split())[:100]
    fix = "convert it, for example with ffmpeg -i FILE sound.wav"
    return wrong("sound", f"{name} ({reason.rstrip('.')})", "a sound file: wav, flac, ogg or mp3", fix)


def check_beginning(file: BufferedIOBase, name: str) -> None:
    """Raises where the first bytes are of another kind of file, before the library sees them."""
    start = file.tell()
    beginning = file.read(4)
    file.seek(start)
    mpeg = len(beginning) > 1 and beginning[0] == 0xFF and beginning[1] >= 0xE0
    if not (mpeg or beginning.startswith(BEGINNINGS)):
        raise no_sound(name, "Format not recognised")


def check_header(opened: Any, name: str, longest: float) -> None:
    """Raises by what the header says, before anything is read."""
    if opened.format not in FORMATS:
        raise no_sound(name, f"which is {opened.format}")
    fix = "keep one channel at 16,000 samples a second, for example with ffmpeg -i FILE -ac 1 -ar 16000 sound.wav"
    for quantity, found in (("rate", opened.samplerate), ("channels", opened.channels)):
        if not 1 <= found <= most("sound", quantity):
            got = f"{name} of {found:,} {'samples a second' if quantity == 'rate' else quantity}"
            raise wrong("sound", got, f"1 to {most('sound', quantity):,}", fix)
    seconds = opened.frames / opened.samplerate
    if seconds > longest:
        raise wrong("sound", f"{name} of {seconds:.0f} seconds", f"at most {longest:.0f}", "cut it into sentences")
    numbers = opened.frames * opened.channels
    if numbers > most("sound", "samples"):
        got = f"{name} of {numbers:,} samples in {opened.channels} channels"
        raise wrong("sound", got, f"at most {most('sound', 'samples'):,}", fix)


def check_audible(samples: Float[Tensor, " sample"], name: str) -> None:
    """Raises where there is nothing to hear: normalizing it would make noise of it."""
    if not len(samples):
        raise wrong("sound", f"{name} without a sample", "some sound", "record it again")
    if not bool(torch.isfinite(samples).all()):
        raise wrong("sound", f"{name} with samples that are no numbers", "finite samples", "export it again")
    if float(samples.abs().max()) > LOUD:
        got = f"{name} with samples up to {float(samples.abs().max()):.3g}"
        raise wrong("sound", got, f"at most {LOUD:,.0f}, usually 1", "export it again")
    if float(samples.abs().max()) < FAINT:
        raise wrong("sound", f"{name}, which is silent", "something to hear", "check the microphone, or its channel")


def package() -> Any:
    try:
        import soundfile
    except ImportError:
        raise missing("soundfile", "audio") from None
    return soundfile
