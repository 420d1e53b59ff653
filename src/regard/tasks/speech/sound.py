"""Sound from files: what soundfile reads, in one channel, at the rate that is wanted."""

from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch

from regard.errors import InputError, missing, wrong
from regard.shapes import Float, Tensor
from regard.tasks.speech.features import converted

FAINT = 1e-5  # of full scale: below the smallest step of 16 bits
LONGEST = 600.0  # seconds: a file of hours would fill the memory before anything could be said about it
MOST = 2**26  # numbers of all channels, 256 MB: ten minutes in stereo at 48 kHz; silence of gigabytes is a small FLAC


class Sound(NamedTuple):
    """Samples from −1 to 1, and what was done to get them."""

    samples: Float[Tensor, " sample"]
    notes: tuple[str, ...] = ()


def read_sound(path: Path, rate: int) -> Sound:
    """A sound file as samples at `rate`, several channels averaged."""
    try:
        with path.open("rb") as file:
            return decoded(file, path.name, rate)
    except OSError as error:
        raise wrong("sound", f"{path} ('{error.strerror}')", "a file that can be read", "check the path") from None


def decoded(file: BinaryIO, name: str, rate: int, *, longest: float = LONGEST) -> Sound:
    """The same from an open file of at most so many seconds, which may lie in an archive."""
    try:
        with package().SoundFile(file) as opened:
            check_length(opened, name, longest)
            samples = torch.from_numpy(opened.read(dtype="float32", always_2d=True))
            own = int(opened.samplerate)
    except RuntimeError as error:
        # libsndfile's own words are an internal code; the name of the file is what helps.
        raise no_sound(name, error) from None
    notes = []
    if samples.shape[1] > 1:
        notes.append(f"{name}: {samples.shape[1]} channels, averaged")
    if own != rate:
        notes.append(f"{name}: {own} samples a second, converted to {rate}")
    mono = converted(samples.mean(1), own, rate)
    check_audible(mono, name)
    return Sound(mono, tuple(notes))


def no_sound(name: str, error: Exception) -> InputError:
    reason = str(error).partition(": ")[2] or str(error)
    fix = "convert it, for example with ffmpeg -i FILE sound.wav"
    return wrong("sound", f"{name} ({reason.strip().rstrip('.')})", "a sound file: wav, flac, ogg or mp3", fix)


def check_length(opened: Any, name: str, longest: float) -> None:
    """Raises by what the header says, before anything is read."""
    seconds = opened.frames / opened.samplerate
    if seconds > longest:
        fix = "cut it into sentences"
        raise wrong("sound", f"{name} of {seconds:.0f} seconds", f"at most {longest:.0f}", fix)
    numbers = opened.frames * opened.channels
    if numbers > MOST:
        got = f"{name} of {numbers:,} samples in {opened.channels} channels"
        fix = "keep one channel at 16,000 samples a second, for example with ffmpeg -i FILE -ac 1 -ar 16000 sound.wav"
        raise wrong("sound", got, f"at most {MOST:,}", fix)


def check_audible(samples: Float[Tensor, " sample"], name: str) -> None:
    """Raises where there is nothing to hear: normalizing it would make noise of it."""
    if not len(samples):
        raise wrong("sound", f"{name} without a sample", "some sound", "record it again")
    if not bool(torch.isfinite(samples).all()):
        raise wrong("sound", f"{name} with samples that are no numbers", "finite samples", "export it again")
    if float(samples.abs().max()) < FAINT:
        raise wrong("sound", f"{name}, which is silent", "something to hear", "check the microphone, or its channel")


def package() -> Any:
    try:
        import soundfile
    except ImportError:
        raise missing("soundfile", "audio") from None
    return soundfile
