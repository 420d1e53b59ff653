"""Damaged, foreign and future folders: one sentence each, and never a wrong start."""

import json
from pathlib import Path

import pytest
from toy_training import Net, events_of

from regard.errors import InputError
from regard.training import checkpoints, restore, unpack


@pytest.fixture
def run(tmp_path: Path) -> Path:
    events_of(tmp_path / "run", training__stop__steps=6)
    return tmp_path / "run"


def message(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        events_of(folder, resume=True, training__stop__steps=9)
    return str(caught.value)


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "state.json"])
def test_one_changed_byte_is_found(run: Path, name: str) -> None:
    path = checkpoints(run)[-1]
    content = bytearray((path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (path / name).write_bytes(content)
    assert message(run) == (
        f"checkpoint: got {path} with a {name} that is not the one written (its sha256 differs), "
        "expected a whole checkpoint; fix: remove that folder to go on from 000000003"
    )


def test_the_one_before_serves_when_the_damaged_is_removed(run: Path) -> None:
    path = checkpoints(run)[-1]
    (path / "weights.safetensors").unlink()
    assert "with no weights.safetensors, expected a whole checkpoint" in message(run)
    for file in path.iterdir():
        file.unlink()
    assert "with no readable manifest.json" in message(run)
    path.rmdir()
    assert events_of(run, resume=True, training__stop__steps=6)[0].step == 3


def test_a_half_written_checkpoint_is_not_one(run: Path) -> None:
    path = checkpoints(run)[-1]
    path.rename(path.with_name(".saving-000000006"))
    assert events_of(run, resume=True, training__stop__steps=6)[0].step == 3
    assert not list((run / "checkpoints").glob(".saving-*"))


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    expected = f"run: got {tmp_path}, which is no run folder, expected a folder that regard train made"
    assert message(tmp_path) == expected + "; fix: check the path"


def test_a_run_of_another_version(run: Path) -> None:
    (run / "versions.json").write_text(json.dumps({"format": 2, "regard": "9.9"}))
    assert message(run) == (
        f"run: got {run} of format 2, expected format 1; fix: use regard 9.9, which made it, or start a new run"
    )


def test_a_checkpoint_of_another_version(run: Path) -> None:
    path = checkpoints(run)[-1]
    listed = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(listed | {"format": 7}))
    assert message(run).startswith(f"checkpoint: got {path} of format 7, expected format 1; fix: use the version")


def test_a_new_run_does_not_lie_on_top_of_an_old_one(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        events_of(run)
    assert str(caught.value) == (
        f"folder: got {run}, which holds a run at step 6, expected a new folder; "
        f"fix: regard resume {run}, or give another folder"
    )
    with pytest.raises(InputError, match=r"which holds other files, expected a new folder; fix: give another"):
        events_of(tmp_path)


def test_a_model_that_cannot_be_built_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dropout probability"):
        events_of(tmp_path / "run", model__dropout=2.0)
    assert not (tmp_path / "run").exists()


def test_weights_of_another_model(run: Path, tmp_path: Path) -> None:
    tensors = unpack(run / "weights.safetensors")
    model = Net(0.0)
    restore(model, tensors, run)
    assert model.out.weight is model.embedding.weight
    for change, problem in (
        ({"out.bias": tensors["out.bias"][:5]}, "out.bias of shape (5,) instead of (11,)"),
        ({"extra": tensors["seen"]}, "an unknown extra"),
    ):
        with pytest.raises(InputError) as caught:
            restore(model, tensors | change, run)
        assert str(caught.value) == (
            f"weights: got {run} with {problem}, expected the weights of this model; "
            "fix: use the config.toml of the run that wrote them"
        )
    (tmp_path / "text.safetensors").write_text("not tensors")
    with pytest.raises(InputError, match=r"^weights: got .*text.safetensors \(.*\), expected a whole safetens"):
        unpack(tmp_path / "text.safetensors")


def test_a_file_with_code_in_it_is_refused(tmp_path: Path) -> None:
    import pickle

    (tmp_path / "weights.safetensors").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(InputError, match="expected a whole safetensors file"):
        unpack(tmp_path / "weights.safetensors")
