"""Recordings keep order, names and labels; what goes through a file comes back the same."""

from pathlib import Path

import numpy as np
import pytest
import torch

from regard import InputError, Recording
from regard.inspect.recording import DenseMap, TokenLabels
from tests.inspect.recording.made import L, S, make_every_kind, weights

QUERIES, KEYS = [f"q{n}" for n in range(L)], [f"k{n}" for n in range(S)]


def make_recording() -> Recording:
    recording = Recording(make_every_kind(), metadata={"model": "tiny", "loss": 1.5, "deep": [{"a": None}]})
    recording.label(QUERIES, ["看", *KEYS[1:]], sites="w*")
    recording.notes.append("nothing was lost")
    return recording


def check_same(one: Recording, other: Recording) -> None:
    assert list(one) == list(other)
    assert one.labels == other.labels
    assert one.metadata == other.metadata
    assert one.notes == other.notes
    for name, seen in one.items():
        assert dict(seen.header()) == dict(other[name].header())
        for (part, tensor), (other_part, read) in zip(
            seen.tensors().items(), other[name].tensors().items(), strict=True
        ):
            assert part == other_part
            assert torch.equal(tensor, read)
            assert tensor.dtype == read.dtype


def test_a_file_gives_back_what_it_got(tmp_path: Path) -> None:
    make_recording().save(tmp_path / "all.regard")
    check_same(make_recording(), Recording.load(tmp_path / "all.regard"))
    assert [path.name for path in tmp_path.iterdir()] == ["all.regard"]


def test_an_empty_recording_has_a_file_too(tmp_path: Path) -> None:
    Recording().save(tmp_path / "empty")
    assert len(Recording.load(tmp_path / "empty")) == 0


def test_arrays_become_recordings_in_one_line() -> None:
    recording = Recording.from_weights(
        {"a": np.eye(2), "b": [[1, 0], [0, 1]], "c": torch.eye(2, requires_grad=True)[None]}
    )
    assert {seen.shape for seen in recording.values()} == {(1, 2, 2)}
    assert recording["a"].dense().dtype == torch.float64
    assert not recording.labels
    one_axis = Recording.from_weights({"a": np.eye(2)}, keys=["x", "y"])
    assert one_axis.labels["a"] == TokenLabels(("0", "1"), ("x", "y"))


@pytest.mark.usefixtures("as_installed")
def test_bad_arrays_and_labels_are_named() -> None:
    with pytest.raises(InputError, match=r"^weights: got a float32 tensor of shape \(2,\), expected floats \(heads"):
        Recording.from_weights({"a": [0.5, 0.5]})
    with pytest.raises(TypeError, match=r"^a: got a list, expected numbers in rows of one length; fix: "):
        Recording.from_weights({"a": [[0.5], [0.5, 0.5]]})
    with pytest.raises(InputError, match=r"^keys of a: got 1 labels, expected 2; fix: give one for each position$"):
        Recording.from_weights({"a": np.eye(2)}, keys=["x"])
    with pytest.raises(KeyError, match=r"^site: got 'b', expected one of 1 names; fix: try 'a'$"):
        Recording.from_weights({"a": np.eye(2)})["b"]


def test_calls_are_numbered_and_chosen_by_glob() -> None:
    recording = Recording()
    names = [recording.add("decoder.0.source", DenseMap(weights(n))) for n in range(3)] + [
        recording.add("encoder.0", DenseMap(weights(3)))
    ]
    assert names == ["decoder.0.source", "decoder.0.source#2", "decoder.0.source#3", "encoder.0"]
    assert list(recording.select("decoder.*.source")) == names[:3]
    assert list(recording.select("*#2")) == names[1:2]


def test_merging_keeps_both() -> None:
    one = Recording.from_weights({"a": np.eye(2)}, keys=["x", "y"], metadata={"run": 1, "only": 0})
    other = Recording.from_weights(
        {"a": np.ones((2, 3)) / 3, "b": np.eye(2)}, keys=None, metadata={"run": 2, "more": 3}
    )
    other.label(None, ["p", "q", "r"], sites="a")
    both = one.merge(other)
    assert list(both) == ["a", "a#2", "b"]
    assert both.labels["a"].keys == ("x", "y")
    assert both.labels["a#2"].keys == ("p", "q", "r")
    assert both.metadata == {"run": 1, "only": 0, "more": 3}
    assert list(one) == ["a"]


def test_comparing_two_checkpoints() -> None:
    one = Recording.from_weights({"a": np.eye(2), "gone": np.eye(2)}, keys=["x", "y"])
    other = Recording.from_weights({"a": np.full((2, 2), 0.5), "new": np.eye(2)})
    change = one.compare(other)
    assert list(change) == ["a"]
    assert change["a"].tile().tolist() == [[-0.5, 0.5], [0.5, -0.5]]
    assert change.labels["a"].keys == ("x", "y")
    assert change.notes == [f"{name} is in one of the two recordings only" for name in ("gone", "new")]
    with pytest.raises(InputError, match=r"^other: got sites b, expected some of a, gone; fix: record the same model"):
        one.compare(Recording.from_weights({"b": np.eye(2)}))


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^metadata: got something else \(Out of range float values"):
        Recording.from_weights({"a": np.eye(2)}, metadata={"loss": float("nan")}).save(tmp_path / "a")
    with pytest.raises(InputError, match=r"^path: got .*No such file or directory.*, expected a file that can be"):
        Recording.from_weights({"a": np.eye(2)}).save(tmp_path / "no" / "a")
