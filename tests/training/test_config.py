"""A configuration is changed by files and flags, and what is wrong with them is said in one sentence."""

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.datasets.bounds import get_bound
from regard.errors import InputError
from regard.training import Optimizer, Schedule, StopCriteria, Training, configure, to_toml
from regard.training.config import compare_configs, find_nearest_field


@dataclass(frozen=True)
class Encoder:
    layers: int = 2
    kind: Literal["gru", "lstm"] = "gru"


@dataclass(frozen=True)
class Model:
    encoder: Encoder = field(default_factory=Encoder)
    heads: int = 8
    dropout: float = 0.1
    tied: bool = True
    widths: tuple[int, ...] = (3, 5)
    note: str | None = None


@dataclass(frozen=True)
class Config:
    model: Model = field(default_factory=Model)
    training: Training = field(default_factory=Training)


def read_message(overrides: dict[str, object]) -> str:
    with pytest.raises(InputError) as caught:
        configure(Config(), None, overrides)
    return str(caught.value)


def test_flags_win_over_the_file_and_the_file_over_the_preset(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[model]\nheads = 4\ndropout = 0\n[model.encoder]\nkind = 'lstm'\n")
    config = configure(Config(), file, {"model.heads": "2", "model.widths": "7, 11", "model.tied": "false"})
    encoder = Encoder(kind="lstm")
    assert config.model == Model(encoder, heads=2, dropout=0.0, tied=False, widths=(7, 11))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "model.head",
            "model.head: got 8, expected one of dropout, encoder, heads, note, tied, widths; fix: write model.heads",
        ),
        ("modle.heads", "modle.heads: got 8, expected one of model, training; fix: write model.heads"),
        (
            "training.rate",
            "training.rate: got 8, expected one of device, every, folder, keep, optimizer, parallel, schedule, "
            "seed, stop, threads; fix: write training.optimizer.rate",
        ),
        (
            "model.encoder",
            "model.encoder: got 8, expected a table of kind, layers; fix: write model.encoder.kind",
        ),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(name: str, expected: str) -> None:
    assert read_message({name: 8}) == expected


def test_of_two_tables_with_the_same_word_the_one_spelt_most_like_it_is_meant() -> None:
    @dataclass(frozen=True)
    class SizedConfig:
        size: int = 1

    @dataclass(frozen=True)
    class Both:
        data: SizedConfig = SizedConfig()
        model: SizedConfig = SizedConfig()

    assert find_nearest_field(Both(), "modle.size") == "model.size"
    assert find_nearest_field(Both(), "dat.size") == "data.size"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("model.heads", "eight", "model.heads: got 'eight', expected a whole number; fix: write a value such as 8"),
        ("model.heads", 2.5, "model.heads: got 2.5, expected a whole number; fix: write a value such as 8"),
        ("model.heads", True, "model.heads: got True, expected a whole number; fix: write a value such as 8"),
        ("model.tied", "yes", "model.tied: got 'yes', expected true or false; fix: write a value such as True"),
        (
            "model.encoder.kind",
            "rnn",
            "model.encoder.kind: got 'rnn', expected one of gru, lstm; fix: write a value such as gru",
        ),
        (
            "training.optimizer.rate",
            "-1",
            "training.optimizer.rate: got -1.0, expected a number above 0; fix: give rate a value above 0",
        ),
        (
            "training.optimizer.rate",
            "nan",
            "training.optimizer.rate: got 'nan', expected a number; fix: write a value such as 0.001",
        ),
        (
            "training.optimizer.beta2",
            "1",
            "training.optimizer.beta2: got 1.0, expected a share from 0 to below 1; fix: use 0.9, or 0.98",
        ),
        (
            "training.optimizer.decay",
            "-1",
            "training.optimizer.decay: got -1.0, expected 0 or more; fix: give decay a value of 0 or more",
        ),
        (
            "training.schedule.floor",
            "2",
            "training.schedule.floor: got 2.0, expected a share from 0 to 1; fix: use 0 to end at nothing",
        ),
        (
            "training.stop.epochs",
            "none",
            "training.stop.stop: got neither steps nor epochs, expected one of them; "
            "fix: set stop.steps or stop.epochs",
        ),
    ],
)
def test_a_wrong_value_is_named_shown_and_mended(name: str, value: object, expected: str) -> None:
    assert read_message({name: value}) == expected


def test_a_broken_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^config: got no file .*/none.toml, expected a TOML file; fix: "):
        configure(Config(), tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[model\n")
    with pytest.raises(InputError, match=r"^config: got .*bad.toml \(.*line 1.*\), expected a TOML file; fix: "):
        configure(Config(), tmp_path / "bad.toml")


LARGEST = get_bound("run folder", "number")
numbers = st.integers(-LARGEST, LARGEST)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
configs = st.builds(
    Config,
    st.builds(
        Model,
        st.builds(Encoder, st.integers(0, get_bound("run folder", "layers")), st.sampled_from(["gru", "lstm"])),
        heads=numbers,
        dropout=st.floats(-LARGEST, LARGEST),
        tied=st.booleans(),
        widths=st.lists(numbers, max_size=3).map(tuple),
        note=st.none() | texts.filter(lambda text: text != "none"),
    ),
    st.builds(
        Training,
        folder=st.builds(Path, texts.filter(lambda text: "\0" not in text)),
        optimizer=st.builds(Optimizer, rate=st.floats(1e-9, 1.0), clip=st.none() | st.floats(1e-3, 1e3)),
        schedule=st.builds(Schedule, st.sampled_from(["cosine", "constant"])),
        stop=st.builds(StopCriteria, steps=st.integers(1), patience=st.none() | st.integers(1)),
    ),
)


@given(configs)
def test_what_is_written_reads_back_the_same_over_any_defaults(config: Config) -> None:
    text = to_toml(config)
    other = replace(Config(), training=Training(stop=StopCriteria(epochs=3, target=0.5)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "config.toml"
        file.write_bytes(text.encode())
        assert configure(other, file) == config


def test_differences_have_dotted_names() -> None:
    assert compare_configs(Config(), Config(Model(heads=2))) == {"model.heads": (8, 2)}
