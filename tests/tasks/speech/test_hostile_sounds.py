"""Sounds whose headers claim anything: each is decoded within its bounds, or answered with one sentence before work."""

import io
import math
import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

from regard.datasets.bounds import get_bound
from regard.errors import InputError
from regard.tasks.speech import features, sound
from regard.tasks.speech.features import resample
from regard.tasks.speech.sound import decode_sound, read_sound

RATE = 8000


def make_wav(
    rate: int = RATE, channels: int = 1, bits: int = 16, claimed: int | None = None, data: bytes = b""
) -> bytes:
    """Return a wav file with a header of one's choice."""
    data = data or (np.sin(np.arange(50)) * 9000).astype("<i2").tobytes()
    align = channels * bits // 8
    head = struct.pack("<HHIIHH", 1, channels, rate, min(rate * align, 2**32 - 1), align, bits)
    size = len(data) if claimed is None else claimed
    body = b"WAVEfmt " + struct.pack("<I", len(head)) + head + b"data" + struct.pack("<I", size) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def write_sound(kind: str, **more: object) -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.sin(np.arange(9000) / 9) / 2, RATE, format=kind, **more)
    return file.getvalue()


@pytest.mark.parametrize("rate", [400_000_009, 192_001, 2**31 - 1, 10**6 + 3])
def test_a_rate_that_nobody_records_at_is_refused_before_any_work(rate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound, "resample", lambda *_: pytest.fail("it was converted"))  # which would take 22 GB
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=rf"sound: got a of {rate:,} samples a second, expected 1 to 192,000; fix"):
            decode_sound(io.BytesIO(make_wav(rate)), "a", RATE)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_channels_and_samples_are_counted_before_any_work() -> None:
    with pytest.raises(InputError, match="sound: got a of 33 channels, expected 1 to 32; fix: keep one channel"):
        decode_sound(io.BytesIO(make_wav(channels=33, data=bytes(6600))), "a", RATE)
    long = write_sound("FLAC")
    with pytest.raises(InputError, match=r"sound: got a of 1 seconds, expected at most 1; fix: cut it into sentences"):
        decode_sound(io.BytesIO(long), "a", RATE, longest=0.9)


def test_samples_of_all_channels_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = sound.get_bound
    monkeypatch.setattr(sound, "get_bound", lambda kind, name: 60 if name == "samples" else bound(kind, name))
    with pytest.raises(InputError, match="sound: got a of 100 samples in 2 channels, expected at most 60; fix"):
        decode_sound(io.BytesIO(make_wav(channels=2, data=bytes(200))), "a", RATE)


@pytest.mark.parametrize("rate", [7999, 191_999, 11_025, 1, 3])
def test_no_rate_takes_more_memory_than_its_samples(rate: int) -> None:
    """Rates without a common divisor are converted too; the padding is at most one second."""
    decoded = decode_sound(io.BytesIO(make_wav(rate)), "a", RATE, longest=60.0)
    assert abs(len(decoded.samples) - 50 * RATE / rate) <= 1


@pytest.mark.parametrize("kind", ["AIFF", "AU", "CAF", "W64", "NIST", "SVX", "IRCAM"])
def test_formats_that_nobody_asked_for_are_not_opened(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = write_sound(kind)
    monkeypatch.setattr(soundfile, "SoundFile", None)
    with pytest.raises(InputError, match=r"sound: got a \(Format not recognised\), expected a sound file: wav, flac"):
        decode_sound(io.BytesIO(content), "a", RATE)


@pytest.mark.parametrize(("kind", "more"), [("WAV", {}), ("FLAC", {}), ("OGG", {}), ("MP3", {}), ("RF64", {})])
def test_formats_that_are_meant_are_opened(kind: str, more: dict[str, object]) -> None:
    assert len(decode_sound(io.BytesIO(write_sound(kind, **more)), "a", RATE).samples) >= 9000


def test_a_flac_that_does_not_say_how_long_it_is_is_one_sentence() -> None:
    """A program that writes flac to a pipe cannot go back to its header."""
    content = bytearray(write_sound("FLAC"))
    content[21] &= 0xF0
    content[22:26] = bytes(4)
    message = r"^sound: got a, which does not say how long it is, expected a length; fix: convert it, .* sound\.wav$"
    with pytest.raises(InputError, match=message):
        decode_sound(io.BytesIO(bytes(content)), "a", RATE)


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3"])
def test_a_file_that_is_cut_short_is_decoded_or_refused(kind: str) -> None:
    content = write_sound(kind)
    for cut in range(0, len(content), max(1, len(content) // 23)):
        try:
            decode_sound(io.BytesIO(content[:cut]), "a", RATE)
        except InputError as error:
            said = str(error)
            assert "\n" not in said
            assert said.startswith("sound: got a")


def test_a_fifo_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.wav")
    with pytest.raises(InputError, match=r"sound: got .*a\.wav, which is not a plain file, expected a file; fix: copy"):
        read_sound(tmp_path / "a.wav", RATE)
    with (tmp_path / "b.wav").open("wb") as sparse:
        sparse.truncate(get_bound("sound", "bytes") + 1)
    with pytest.raises(InputError, match=r"sound: got .*b\.wav of 536,870,913 bytes, expected at most 536,870,912"):
        read_sound(tmp_path / "b.wav", RATE)


@pytest.mark.parametrize(("rate", "wanted"), [(44100, 8000), (8000, 16000), (8001, 8000)])
def test_blocks_are_the_whole(rate: int, wanted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    times = torch.arange(3 * rate, dtype=torch.float64) / rate
    ends = torch.sin(math.pi * times / 3).square()  # nothing begins or ends at once: that is the only difference
    sound = (torch.sin(2 * math.pi * 440 * times) + torch.sin(2 * math.pi * 3000 * times)) * ends
    whole = resample(sound, rate, wanted)
    monkeypatch.setattr(features, "BLOCK", 7919)
    assert torch.allclose(resample(sound, rate, wanted), whole, atol=1e-5)


def test_converting_takes_memory_of_blocks() -> None:
    """The Fourier transform of the whole would take several times the sound."""
    sizes: list[int] = []
    stretched = features.stretch

    def note_size(samples: torch.Tensor, before: int, after: int) -> torch.Tensor:
        sizes.append(before)
        return stretched(samples, before, after)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(features, "stretch", note_size)
        resample(torch.ones(3 * features.BLOCK), 16000, 8000)
    assert len(sizes) == 3
    assert max(sizes) <= features.BLOCK + 2 * features.MARGIN + 2


def test_samples_whose_squares_are_no_numbers_are_refused() -> None:
    file = io.BytesIO()
    soundfile.write(file, np.full(900, 1e30, np.float32), RATE, format="WAV", subtype="FLOAT")
    with pytest.raises(InputError, match=r"sound: got a with samples up to 1e\+30, expected at most 16,777,216"):
        decode_sound(io.BytesIO(file.getvalue()), "a", RATE)
    times = np.arange(900) / 9
    file = io.BytesIO()
    soundfile.write(file, (np.sin(times) * 1e7).astype(np.float32), RATE, format="WAV", subtype="FLOAT")
    frames = features.log_mel(
        decode_sound(io.BytesIO(file.getvalue()), "a", RATE).samples, features.SpectrogramConfig()
    )
    assert bool(torch.isfinite(frames).all())


def test_a_search_without_a_number_is_one_sentence() -> None:
    from regard.models.search import take_best

    with pytest.raises(InputError, match="model: got scores that are not finite, expected finite numbers; fix: check"):
        take_best([[]])
