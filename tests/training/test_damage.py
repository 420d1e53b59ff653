"""Damaged, foreign and future folders: one sentence each, and never a wrong start."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from toy_training import Net, Toy, collect_events, make_toy_config, read_contents

from regard.errors import InputError, RegardError
from regard.training import Noted, Started, find_checkpoints, read_safetensors, restore_weights, train
from regard.training.checkpoint import describe_file


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    collect_events(folder, training__stop__steps=6)
    return folder


@pytest.fixture
def run(tmp_path: Path, whole_run: Path) -> Path:
    return Path(shutil.copytree(whole_run, tmp_path / "run"))


def read_message(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        collect_events(folder, resume=True, training__stop__steps=9)
    return str(caught.value)


def resume(folder: Path) -> tuple[int, list[str]]:
    """Resume a run; return the step at which it starts, and its notes."""
    events = collect_events(folder, resume=True, training__stop__steps=6)
    assert isinstance(events[0], Started)
    return events[0].step, [event.text for event in events if isinstance(event, Noted)]


def spoil(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors", "state.json"])
def test_one_changed_byte_is_found_and_the_one_before_serves(run: Path, whole_run: Path, name: str) -> None:
    path = find_checkpoints(run)[-1]
    spoil(path / name)
    step, notes = resume(run)
    assert step == 3
    assert notes == [
        f"left out {path} with a {name} that is not the one written (its sha256 differs); it is now damaged-000000006"
    ]
    assert read_contents(run) == read_contents(whole_run)
    assert resume(run) == (6, [])


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("which", [0, -1])
def test_half_a_folder_is_left_out_wherever_it_is(run: Path, whole_run: Path, count: int, which: int) -> None:
    """What a kill while deleting left under the name of a checkpoint, until deleting began with the name."""
    for file in sorted(find_checkpoints(run)[which].iterdir())[:count]:
        file.unlink()
    step, notes = resume(run)
    assert step == (6 if which == 0 else 3)
    assert len(notes) == 1
    assert notes[0].startswith("left out ")
    assert read_contents(run) == read_contents(whole_run) or which == 0  # the older one cannot come back


def test_where_no_checkpoint_is_whole_the_newest_is_told(run: Path) -> None:
    for path in find_checkpoints(run):
        (path / "weights.safetensors").unlink()
    path = find_checkpoints(run)[-1]
    assert read_message(run) == (
        f"checkpoint: got {path} with no weights.safetensors, expected a whole checkpoint; "
        "fix: restore that folder from a copy, or start a new run"
    )
    assert len(find_checkpoints(run)) == 2


def test_a_run_does_not_go_on_from_weights_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    collect_events(run, training__stop__steps=12, training__keep=3)
    assert not (find_checkpoints(run)[0] / "optimizer.safetensors").exists()
    for path in find_checkpoints(run)[-2:]:
        spoil(path / "optimizer.safetensors")
    assert "optimizer.safetensors that is not the one written" in read_message(run)


@pytest.mark.parametrize("field", ["progress", "metrics_bytes", "due", "window", "step"])
def test_a_state_without_its_fields_is_damage(run: Path, whole_run: Path, field: str) -> None:
    path = find_checkpoints(run)[-1]
    state = json.loads((path / "state.json").read_text())
    if field == "step":
        state["progress"]["step"] = "six"
    else:
        (state if field in state else state["progress"]).pop(field)
    (path / "state.json").write_text(json.dumps(state))
    listed = json.loads((path / "manifest.json").read_text())
    listed["files"]["state.json"] = describe_file(path / "state.json")
    (path / "manifest.json").write_text(json.dumps(listed))
    step, notes = resume(run)
    assert step == 3
    assert "with a state.json wh" in notes[0] or f"with a state.json without {field}" in notes[0]
    assert read_contents(run) == read_contents(whole_run)


@pytest.mark.parametrize("name", ["manifest.json", "state.json"])
@pytest.mark.parametrize("content", ["[" * 100_000, "null", "[]", "", "\udcff", '{"format": 1, "files": 3}'])
def test_json_that_is_none_is_damage(run: Path, name: str, content: str) -> None:
    (find_checkpoints(run)[-1] / name).write_bytes(content.encode("utf-8", "surrogateescape"))
    assert resume(run)[0] == 3


def test_a_pipe_for_a_file_is_damage_and_nobody_waits_for_it(run: Path) -> None:
    path = find_checkpoints(run)[-1] / "manifest.json"
    path.unlink()
    os.mkfifo(path)
    assert resume(run)[0] == 3


@pytest.mark.parametrize("name", ["versions.json", "metrics.jsonl", "command.txt", ".lock"])
def test_a_pipe_in_the_run_folder_is_one_sentence(run: Path, name: str) -> None:
    (run / name).unlink(missing_ok=True)
    os.mkfifo(run / name)
    with pytest.raises(RegardError) as caught:
        collect_events(run, resume=True, training__stop__steps=9)
    assert ", expected " in str(caught.value)
    assert "; fix: " in str(caught.value)


@pytest.mark.parametrize("content", ["[" * 100_000, "{" * 100_000, "null", "{}", "9" * 5000, " " * 2**25])
def test_a_versions_file_that_is_none_is_one_sentence(run: Path, content: str) -> None:
    (run / "versions.json").write_text(content)
    assert read_message(run).startswith(
        f"run: got {run}, which is not a run folder, expected a folder that regard train made"
    )


@pytest.mark.parametrize("make", [Path.touch, os.mkfifo])
def test_a_run_folder_that_is_a_file_is_one_sentence(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "run")
    assert read_message(tmp_path / "run").startswith("run: got ")
    with pytest.raises(InputError, match=r"^folder: got .*/run, which is a file, expected a new folder; fix: "):
        collect_events(tmp_path / "run")


def test_a_half_written_checkpoint_is_not_one(run: Path) -> None:
    path = find_checkpoints(run)[-1]
    path.rename(path.with_name(".saving-000000006"))
    (run / "checkpoints" / ".deleting-000000001").mkdir()
    assert collect_events(run, resume=True, training__stop__steps=6)[0].step == 3
    assert not list((run / "checkpoints").glob(".*"))


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    expected = f"run: got {tmp_path}, which is not a run folder, expected a folder that regard train made"
    assert read_message(tmp_path) == expected + "; fix: check the path, or make a run with regard train"


def test_a_run_of_another_version(run: Path) -> None:
    (run / "versions.json").write_text(json.dumps({"format": 2, "regard": "9.9"}))
    assert read_message(run) == (
        f"run: got {run} of format 2, expected format 1; fix: use regard 9.9, which made it, or start a new run"
    )


def test_a_checkpoint_of_another_version(run: Path) -> None:
    path = find_checkpoints(run)[-1]
    listed = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps(listed | {"format": 7}))
    assert read_message(run).startswith(f"checkpoint: got {path} of format 7, expected format 1; fix: use the version")


def test_a_new_run_does_not_lie_on_top_of_an_old_one(run: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        collect_events(run)
    assert str(caught.value) == (
        f"folder: got {run}, which holds a run at step 6, expected a new folder; "
        f"fix: regard resume {run}, or give another folder"
    )
    with pytest.raises(InputError, match=r"which holds other files, expected a new folder; fix: give another"):
        collect_events(tmp_path)


@pytest.mark.parametrize("size", [10**9, 10**12, 10**19])
def test_a_size_beyond_the_memory_is_one_sentence_and_leaves_no_folder(tmp_path: Path, size: int) -> None:
    class VastTask(Toy):
        def model(self) -> torch.nn.Module:
            return torch.nn.Linear(size, 1000)

    config = make_toy_config(tmp_path / "run")
    with pytest.raises(InputError, match=r"^model: got one that needs .*, expected at most .* GiB; fix: make its"):
        list(train(VastTask(config), config))
    assert not (tmp_path / "run").exists()


def test_a_model_that_cannot_be_built_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dropout probability"):
        collect_events(tmp_path / "run", model__dropout=2.0)
    assert not (tmp_path / "run").exists()


def test_weights_of_another_model(run: Path, tmp_path: Path) -> None:
    tensors = read_safetensors(run / "weights.safetensors")
    model = Net(0.0)
    restore_weights(model, tensors, run)
    assert model.out.weight is model.embedding.weight
    for change, problem in (
        ({"out.bias": tensors["out.bias"][:5]}, "out.bias of shape (5,) instead of (11,)"),
        ({"extra": tensors["seen"]}, "an unknown extra"),
    ):
        with pytest.raises(InputError) as caught:
            restore_weights(model, tensors | change, run)
        assert str(caught.value) == (
            f"weights: got {run} with {problem}, expected the weights of this model; "
            "fix: use the config.toml of the run that wrote them"
        )
    (tmp_path / "text.safetensors").write_text("not tensors")
    with pytest.raises(InputError, match=r"^weights: got .*text.safetensors \(.*\), expected a whole safetens"):
        read_safetensors(tmp_path / "text.safetensors")


def test_a_file_with_code_in_it_is_refused(tmp_path: Path) -> None:
    import pickle

    (tmp_path / "weights.safetensors").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(InputError, match="expected a whole safetensors file"):
        read_safetensors(tmp_path / "weights.safetensors")


@pytest.mark.parametrize("name", ["weights.safetensors", "optimizer.safetensors"])
def test_a_checkpoint_that_changes_after_it_was_read_changes_nothing(tmp_path: Path, name: str) -> None:
    run, direct = tmp_path / "run", tmp_path / "direct"
    collect_events(run, training__stop__steps=24, training__keep=1)
    config = make_toy_config(run, training__stop__steps=32, training__keep=1)
    events = train(Toy(config), config, resume=run)
    assert isinstance(next(events), Started)
    with (find_checkpoints(run)[-1] / name).open("r+b") as file:
        file.seek(-256, os.SEEK_END)
        file.write(bytes(256))
    assert len(list(events)) > 1
    collect_events(direct, training__stop__steps=32, training__keep=1)
    assert read_contents(run) == read_contents(direct)
