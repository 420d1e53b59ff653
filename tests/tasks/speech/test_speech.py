"""Speech by command: from tones, digits and folders to a picture of where the model listened."""

import math
import struct
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import soundfile
import torch
from walking import to_flags, walk

from regard.errors import InputError
from regard.tasks import import_task
from regard.tasks.data.vocabulary import TokenVocabulary
from regard.tasks.speech.folder import read_folder
from regard.tasks.speech.metrics import edit_distance
from regard.tasks.speech.model import build_speech_model
from regard.tasks.speech.predictor import SpeechPredictor
from regard.tasks.speech.sound import read_sound
from regard.tasks.speech.spoken_digits import DigitRecording, SpokenDigits
from regard.tasks.speech.tones import Tones
from regard.training import DataShare

Regard = Callable[..., Any]
TINY = {
    "hop": 20,
    "filters": 24,
    "listener.layers": 2,
    "listener.hidden": 32,
    "listener.cell": "gru",
    "speller.cell": "gru",
    "speller.hidden": 48,
    "data.size": 200,
    "held-out": 40,
    "learning.budget": 600,
    "optimizer.rate": 0.01,
    "stop.steps": 110,
    "every.evaluate": 55,
    "stop.target": "none",
    "every.log": 1,
}
RATE = 8000


def make_hum(pitch: float, seconds: float = 0.3, rate: int = RATE) -> np.ndarray:
    times = np.arange(round(seconds * rate)) / rate
    return (0.4 * np.sin(2 * math.pi * pitch * times)).astype(np.float32)


def test_tones_are_heard_and_a_cut_off_run_ends_with_the_same_bits(regard: Regard) -> None:
    report = walk(regard, "speech", fields=TINY, cut_at=58)["test"]
    assert report["error"] < 25
    assert report["items"] == 40
    soundfile.write("other.wav", np.stack([make_hum(300, 0.5, 22050), make_hum(300, 0.5, 22050)], axis=1), 22050)
    done = regard("transcribe", "other.wav", "--run", "run", "--show", "heard.png")
    assert done.code == 0, done.errors
    assert "note: other.wav: 2 channels, averaged\n" in done.output
    assert "note: other.wav: 22050 samples a second, converted to 8000\n" in done.output
    assert Path("heard.png").read_bytes().startswith(b"\x89PNG")


def train_briefly(regard: Regard, preset: str) -> Any:
    fields = TINY | {"stop.steps": 2, "every.evaluate": 2, "data.size": 20, "held-out": 3}
    return regard("train", "speech", "--preset", preset, "--folder", preset, *to_flags(fields))


@pytest.mark.parametrize("preset", ["plain", "monotonic", "no-attention"])
def test_every_preset_is_trained_and_asked(regard: Regard, preset: str) -> None:
    assert train_briefly(regard, preset).code == 0
    shown = regard("show", preset, "--output", "map.svg")
    if preset == "no-attention":
        assert shown.code == 2
        assert "show: got a model without attention, expected one that looks at the sound; fix: " in shown.errors
    else:
        assert shown.code == 0, shown.errors


def test_what_cannot_be_heard_is_one_sentence(regard: Regard) -> None:
    assert train_briefly(regard, "location").code == 0
    Path("text.wav").write_text("this is no sound")
    soundfile.write("empty.wav", np.zeros(0, np.float32), RATE)
    soundfile.write("silent.wav", np.zeros(4000, np.float32), RATE)
    soundfile.write("nan.wav", np.full(4000, np.nan, np.float32), RATE, subtype="FLOAT")
    soundfile.write("long.wav", make_hum(300, 61), RATE)
    expected = {
        "text.wav": "sound: got text.wav (Format not recognised), expected a sound file: wav, flac, ogg or mp3; fix: ",
        "empty.wav": "sound: got empty.wav without a sample, expected some sound; fix: record it again",
        "silent.wav": "sound: got silent.wav, which is silent, expected something to hear; fix: check the microphone",
        "nan.wav": "sound: got nan.wav with samples that are not numbers, expected finite samples; fix: export it",
        "long.wav": "sound: got 61.0 seconds, expected at most 60.0 seconds, as in training; fix: cut it into",
        "none.wav": "sound: got none.wav ('No such file or directory'), expected a file that can be read; fix: check",
    }
    for name, sentence in expected.items():
        done = regard("transcribe", name, "--run", "location")
        assert (done.code, done.output) == (2, ""), done
        assert done.errors.startswith(f"regard: {sentence}")
        assert done.errors.count("\n") == 1


def test_held_out_clips_that_are_too_long_are_errors_not_left_out() -> None:
    fields = {"learning.limit": 40, "data.size": 20, "data.held_out": 12, "features.hop": 20, "listener.hidden": 8}
    config = import_task("speech").configure(None, (), fields)
    task = import_task("speech").build_task(config)
    clips = task.dataset.validation
    long = [clip for clip in clips if config.features.count_frames(len(clip.samples)) > 40]
    assert 0 < len(long) < 12
    note = f"{len(long)} of 12 clips are longer than 40 frames: they count as wrong"
    assert f"validation: {note}" in task.notes
    model = task.model().eval()
    with torch.no_grad():
        sums = task.measure(model, DataShare())
    assert (sums["clips"], sums["symbols"]) == (12, sum(len(clip.text) for clip in clips))
    assert sums["symbol errors"] >= sum(len(clip.text) for clip in long)
    predictor = SpeechPredictor(config, task.vocabulary, model)
    report = predictor.evaluate_clips(clips)
    assert (report.items, report.notes[-1]) == (12, note)
    assert dict(predictor.evaluate_clips(long).metrics) == {"error": 100, "words": 100, "exact": 0}


def test_the_header_says_what_is_too_much_before_it_is_read(tmp_path: Path) -> None:
    """Seven minutes in eight channels: a file with holes, whose samples would take 600 MB."""
    size = 300_000_000
    shape = struct.pack("<IHHIIHH", 16, 1, 8, 44100, 44100 * 16, 16, 16)
    with (tmp_path / "wide.wav").open("wb") as file:
        file.write(b"RIFF" + struct.pack("<I", 36 + size) + b"WAVEfmt " + shape + b"data" + struct.pack("<I", size))
        file.truncate(44 + size)
    with pytest.raises(InputError, match=r"sound: got wide.wav of 150,000,000 samples in 8 channels, expected at most"):
        read_sound(tmp_path / "wide.wav", RATE)


def write_folder(place: Path, count: int) -> None:
    place.mkdir()
    for number in range(count):
        soundfile.write(place / f"{number}.wav", make_hum(400 if number % 2 else 900), RATE)


def test_a_folder_has_its_texts_in_a_table_or_beside(tmp_path: Path) -> None:
    write_folder(tmp_path / "a", 11)
    (tmp_path / "a" / "transcripts.tsv").write_text("".join(f"{n}.wav\tsays {n}\n" for n in range(10)))
    (tmp_path / "a" / "10.txt").write_text("says\n10\n")
    sounds = read_folder(tmp_path / "a", RATE)
    clips = [*sounds.train, *sounds.validation, *sounds.tests["test"]]
    assert {(clip.name, clip.text) for clip in clips} == {(f"{n}.wav", f"says {n}") for n in range(11)}
    assert (len(sounds.train), len(sounds.validation), len(sounds.tests["test"])) == (9, 1, 1)
    assert all(len(clip.samples) == 2400 for clip in clips)
    assert sounds.notes == ()
    (tmp_path / "a" / "10.wav").unlink()
    (tmp_path / "a" / "9.wav").unlink()
    assert read_folder(tmp_path / "a", RATE).notes == ("transcripts without a sound file: 1, such as that of 9.wav",)


def test_all_of_another_folder_is_evaluated(tmp_path: Path) -> None:
    for name in ("own", "other"):
        write_folder(tmp_path / name, 12)
        for number in range(12):
            (tmp_path / name / f"{number}.txt").write_text(str(number))
    config = import_task("speech").configure(None, (str(tmp_path / "own"),), {})
    predictor = SpeechPredictor(config, TokenVocabulary((), "character"), build_speech_model(config, symbols=5))
    found = {data: predictor.load_sets(data, "test") for data in (None, str(tmp_path / "own"), str(tmp_path / "other"))}
    assert [{name: len(clips) for name, clips in sets.items()} for sets in found.values()] == [
        {"test": 1},
        {"test": 1},
        {"other": 12},
    ]


def test_a_folder_may_say_what_is_held_out(tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        write_folder(tmp_path / split, 2)
        (tmp_path / split / "metadata.csv").write_text(f"0|{split}\n1|{split}\n")
        for number in range(2):
            (tmp_path / split / f"{number}.wav").rename(tmp_path / split / f"{split}{number}.wav")
            (tmp_path / split / f"{split}{number}.txt").write_text(split)
    sounds = read_folder(tmp_path, RATE)
    assert [clip.text for clip in sounds.validation] == ["dev", "dev"]
    assert [clip.text for clip in sounds.tests["test"]] == ["test", "test"]


def test_missing_transcripts_are_named(regard: Regard, tmp_path: Path) -> None:
    write_folder(tmp_path / "a", 5)
    (tmp_path / "a" / "transcripts.tsv").write_text("0.wav\tzero\n")
    done = regard("train", "speech", "a", "--folder", "run")
    assert done.code == 2
    assert done.errors == (
        "regard: transcripts: got none for 1.wav and 3 more, expected one for each sound file; fix: write 1.txt, or "
        "transcripts.tsv with a file and its text in each line\n"
    )
    assert not Path("run").exists()


def make_recordings() -> list[DigitRecording]:
    """So made that a recording says in its samples which one it is."""
    return [
        DigitRecording(str(digit), speaker, take, torch.full((50,), 1.0 + digit + 10 * take + 1000 * place))
        for place, speaker in enumerate(["ann", "bob"])
        for digit in range(10)
        for take in range(10)
    ]


def make_digits(left_out: str = "") -> SpokenDigits:
    return SpokenDigits(make_recordings(), rate=100, join=3, left_out=left_out, seed=1)


def test_no_recording_is_in_two_splits() -> None:
    data = make_digits()
    parts = [data.training_recordings, data.validation_recordings, data.test_recordings]
    assert [len(part) for part in parts] == [40, 60, 100]
    names = [{one[:3] for one in part} for part in parts]
    assert len(set.union(*names)) == 200
    assert {one.take for one in data.test_recordings} == {0, 1, 2, 3, 4}


def test_a_row_has_one_speaker_and_each_recording_once() -> None:
    rows = list(make_digits().draw_rows(make_digits().test_recordings, Random(1)))
    assert sum(len(row.text) for row in rows) == 100
    assert all(1 <= len(row.text) <= 3 for row in rows)
    assert len("".join(row.text for row in rows if row.name.startswith("ann"))) == 50


def test_a_speaker_that_is_left_out_is_never_heard() -> None:
    data = make_digits("bob")
    assert {one.speaker for one in (*data.training_recordings, *data.validation_recordings)} == {"ann"}
    assert len(data.test_recordings) == 100
    assert {one.speaker for one in data.test_recordings} == {"bob"}
    with pytest.raises(InputError, match="left_out: got eve, expected one of ann, bob; fix: write --left-out ann"):
        make_digits("eve")


def test_epochs_differ_and_repeat() -> None:
    tones = Tones(RATE, size=5, held_out=5, seed=1)
    first, second = tones.load_training(0), tones.load_training(1)
    assert [clip.text for clip in first] != [clip.text for clip in second]
    assert all(torch.equal(a.samples, b.samples) for a, b in zip(first, tones.load_training(0), strict=True))
    trained = {clip.text for epoch in range(20) for clip in tones.load_training(epoch)}
    assert not trained & {clip.text for clip in (*tones.validation, *tones.tests["test"])}


def test_the_distance_is_the_fewest_changes() -> None:
    assert [edit_distance(*pair) for pair in (("", "abc"), ("abc", ""), ("abc", "abc"), ("abc", "axc"))] == [3, 3, 0, 1]
    assert edit_distance(["one", "two"], ["two"]) == 1


def test_a_wrong_name_of_a_preset_is_one_sentence() -> None:
    with pytest.raises(InputError, match="preset: got locaton, expected one of location, plain, monotonic, no-att"):
        import_task("speech").configure("locaton", (), {})
