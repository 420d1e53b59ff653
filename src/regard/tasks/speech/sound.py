"""Sound from files: what soundfile reads, in one channel, at the rate that is wanted."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.algebra.shapes import Float, Tensor
from regard.datasets.bounds import check_file, get_bound
from regard.errors import InputError, RegardError, import_package, wrong
from regard.tasks.speech.features import resample

LOUD = 2.0**24  # of full scale: the squares of far louder samples would overflow
FAINT = 1e-5  # of full scale: below the smallest step of 16 bits
LONGEST = float(get_bound("sound", "seconds"))  # a file of hours would fill the memory first
BLOCK = get_bound("sound", "block")
UNKNOWN = 2**63 - 1  # samples, as libsndfile says it
# How files of the formats that we mean begin, and what soundfile calls them; the library itself opens thirty more.
BEGINNINGS = (b"RIFF", b"RIFX", b"RF64", b"fLaC", b"OggS", b"ID3")
FORMATS = ("WAV", "WAVEX", "RF64", "FLAC", "OGG", "MP3")


class SoundSamples(NamedTuple):
    """Samples from −1 to 1, and what was done to get them."""

    samples: Float[Tensor, " sample"]
    notes: tuple[str, ...] = ()


def read_sound(path: Path, rate: int) -> SoundSamples:
    """Read a sound file as samples at `rate`, with the mean of its channels."""
    try:
        check_file("sound", path, get_bound("sound", "bytes"))
        with path.open("rb") as file:
            return decode_sound(file, path.name, rate)
    except OSError as error:
        raise wrong("sound", f"{path} ('{error.strerror}')", "a file that can be read", "check the path") from None


def decode_sound(file: BufferedIOBase, name: str, rate: int, *, longest: float = LONGEST) -> SoundSamples:
    """Read an open sound file of at most `longest` seconds, which may lie in an archive."""
    check_beginning(file, name)
    with catch_damage(name):
        opened = import_package("soundfile", "audio").SoundFile(file)
    with opened:
        check_header(opened, name, longest)
        own, channels = int(opened.samplerate), int(opened.channels)
        samples = read_mono(opened, name)
    notes = []
    if channels > 1:
        notes.append(f"{name}: {channels} channels, averaged")
    if own != rate:
        notes.append(f"{name}: {own} samples a second, converted to {rate}")
    check_audible(samples, name)
    mono = resample(samples, own, rate)
    check_audible(mono, name)
    return SoundSamples(mono, tuple(notes))


@contextmanager
def catch_damage(name: str) -> Iterator[None]:
    """Raise one sentence about a damaged file, whatever the library raises: the file is what is wrong.

    libsndfile's own words are an internal code; the name of the file is what helps.
    """
    try:
        yield
    except RegardError:
        raise
    except Exception as error:
        raise no_sound_error(name, error) from None


def read_mono(opened: Any, name: str) -> Float[Tensor, " sample"]:
    """Return the mean of all channels, decoded some samples at a time: a header may claim more than there is."""
    frames = max(1, BLOCK // opened.channels)
    parts, left = [], int(opened.frames)
    while left > 0:
        with catch_damage(name):
            part = torch.from_numpy(opened.read(min(frames, left), dtype="float32", always_2d=True))
        if not len(part):
            break
        parts.append(part.mean(1))
        left -= len(part)
    return torch.cat(parts) if parts else torch.zeros(0)


def no_sound_error(name: str, error: Exception | str) -> InputError:
    """Return the error for a file that is not a sound."""
    reason = " ".join((str(error).partition(": ")[2] or str(error)).split())[:100]
    fix = "convert it, for example with ffmpeg -i FILE sound.wav"
    return wrong("sound", f"{name} ({reason.rstrip('.')})", "a sound file: wav, flac, ogg or mp3", fix)


def check_beginning(file: BufferedIOBase, name: str) -> None:
    """Raise if the first bytes are of another kind of file, before the library sees them."""
    start = file.tell()
    beginning = file.read(4)
    file.seek(start)
    mpeg = len(beginning) > 1 and beginning[0] == 0xFF and beginning[1] >= 0xE0
    if not (mpeg or beginning.startswith(BEGINNINGS)):
        raise no_sound_error(name, "Format not recognised")


def check_header(opened: Any, name: str, longest: float) -> None:
    """Raise by what the header says, before anything is read."""
    if opened.format not in FORMATS:
        raise no_sound_error(name, f"which is {opened.format}")
    fix = "keep one channel at 16,000 samples a second, for example with ffmpeg -i FILE -ac 1 -ar 16000 sound.wav"
    for quantity, found in (("rate", opened.samplerate), ("channels", opened.channels)):
        if not 1 <= found <= get_bound("sound", quantity):
            got = f"{name} of {found:,} samples a second" if quantity == "rate" else f"{name} of {found:,} channels"
            raise wrong("sound", got, f"1 to {get_bound('sound', quantity):,}", fix)
    if opened.frames >= UNKNOWN:
        got = f"{name}, which does not say how long it is"
        raise wrong("sound", got, "a length", "convert it, for example with ffmpeg -i FILE sound.wav")
    seconds = opened.frames / opened.samplerate
    if seconds > longest:
        raise wrong("sound", f"{name} of {seconds:.0f} seconds", f"at most {longest:.0f}", "cut it into sentences")
    numbers = opened.frames * opened.channels
    if numbers > get_bound("sound", "samples"):
        got = f"{name} of {numbers:,} samples in {opened.channels} channels"
        raise wrong("sound", got, f"at most {get_bound('sound', 'samples'):,}", fix)


def check_audible(samples: Float[Tensor, " sample"], name: str) -> None:
    """Raise if a sound is silent or has samples that are not finite."""
    if not len(samples):
        raise wrong("sound", f"{name} without a sample", "some sound", "record it again")
    if not bool(torch.isfinite(samples).all()):
        raise wrong("sound", f"{name} with samples that are not numbers", "finite samples", "export it again")
    if float(samples.abs().max()) > LOUD:
        got = f"{name} with samples up to {float(samples.abs().max()):.3g}"
        raise wrong("sound", got, f"at most {LOUD:,.0f}, usually 1", "export it again")
    if float(samples.abs().max()) < FAINT:
        raise wrong("sound", f"{name}, which is silent", "something to hear", "check the microphone, or its channel")
