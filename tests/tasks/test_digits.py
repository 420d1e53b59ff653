"""Digits by command: read in a few glimpses, from scikit-learn or from idx files."""

import gzip
import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from walking import to_flags, walk

from regard.models import count_parameters
from regard.tasks import import_task
from regard.tasks.data.canvas import place_on_canvas
from regard.tasks.data.gray_images import FILES, load_digit_images, read_idx_folder
from regard.tasks.digits.config import KINDS, DigitsData, DigitsModel
from regard.tasks.digits.folder import convert_photo, read_image_folder
from regard.tasks.digits.model import build_classifier
from regard.tasks.digits.task import load_splits
from regard.tasks.images import open_photo
from regard.tasks.images.jitter import jitter
from regard.tasks.loading import load as load_run

Regard = Callable[..., Any]
BRIEF = {"stop.epochs": 6, "every.log": 5, "every.save": 10, "jitter": 0, "batch": 16, "data.training": 400, "steps": 2}


def test_digits_are_read_after_a_few_epochs(regard: Regard) -> None:
    """Guessing is 10 %, 150 small steps bring four times that; the default of the command takes 1,200 larger ones."""
    assert walk(regard, "digits", fields=BRIEF, cut_at=33, item=("7",))["test"]["accuracy"] > 40


def test_a_picture_of_ones_own_is_read_whichever_of_ink_and_paper_is_lighter(regard: Regard) -> None:
    picture = load_digit_images(1).test[0][3]
    pixels = (255 * picture).round().byte().numpy()
    for name, shown in (("chalk.png", pixels), ("ink.png", 255 - pixels)):
        Image.fromarray(shown).save(name)
        assert torch.allclose(convert_photo(open_photo(Path(name)), 8), picture, atol=1 / 255)
    assert convert_photo(open_photo(Path("ink.png")), 28).shape == (28, 28)
    assert regard("train", "digits", "--folder", "run", *to_flags(BRIEF | {"stop.steps": 1})).code == 0
    done = regard("predict", "run", "ink.png", "--json", "--show", "seen.png")
    assert (done.code, done.errors) == (0, "")
    said = json.loads(done.output)
    assert said["picture"] == "ink.png"
    assert said["class"] == max(range(10), key=said["probabilities"].__getitem__)
    assert Path("seen.png").read_bytes().startswith(b"\x89PNG")
    refused = regard("predict", "run", "none.png")
    assert refused == (2, "", "regard: photo: got no file none.png, expected an image; fix: check the path\n")


def test_folders_named_for_digits_are_read_trained_on_and_predicted(regard: Regard, tmp_path: Path) -> None:
    pictures, classes = load_digit_images(1).test
    for number in range(40):
        folder = tmp_path / "own" / str(int(classes[number]))
        folder.mkdir(parents=True, exist_ok=True)
        pixels = (255 * (1 - pictures[number])).round().byte().numpy()
        Image.fromarray(pixels).save(folder / f"{number}.png")
        (folder / "notes.txt").write_text("not an image")
    found = read_image_folder(tmp_path / "own")
    assert (len(found.training[0]), len(found.test[0])) == (36, 4)
    assert found.training[0].shape[1:] == (28, 28)
    assert sorted(torch.cat([found.training[1], found.test[1]]).tolist()) == sorted(classes[:40].tolist())
    done = regard("train", "digits", str(tmp_path / "own"), "--folder", "run", "--stop.steps", "2")
    assert (done.code, done.errors) == (0, "")
    assert json.loads(regard("evaluate", "run", str(tmp_path / "own"), "--json").output)["test"]["items"] == 4
    assert f"{count_parameters(load_run('run').predictor.model):,} parameters" in regard("evaluate", "run").output
    shutil.copytree(tmp_path / "own", tmp_path / "others")
    assert json.loads(regard("evaluate", "run", str(tmp_path / "others"), "--json").output)["others"]["items"] == 40
    (tmp_path / "empty" / "7").mkdir(parents=True)
    refused = regard("train", "digits", str(tmp_path / "empty"), "--folder", "none")
    assert refused.errors == (
        "regard: data: got 0 images in the folders 0 to 9, expected at least 5; "
        "fix: put images such as empty/7/photo.png there\n"
    )


@pytest.mark.parametrize("side", [8, 28])
def test_all_kinds_have_about_as_many_parameters_as_the_plain_net(side: int) -> None:
    from regard.tasks.digits.config import PRESETS, configure_for_files
    from regard.tasks.digits.model import build_classifier

    configs = {kind: PRESETS[kind] if side == 8 else configure_for_files(PRESETS[kind]) for kind in KINDS}
    counts = {kind: count_parameters(build_classifier(config.model, side)) for kind, config in configs.items()}
    assert counts["plain"] == side * side * 128 + 128 + 128 * 64 + 64 + 650
    assert all(0.85 * counts["plain"] <= count <= counts["plain"] for count in counts.values()), counts


@pytest.mark.parametrize("score", ["own", "dot", "cosine", "learned-gaussian"])
@pytest.mark.parametrize("kind", ["gated", "pooling", "additive-pooling"])
def test_any_score_can_look(kind: str, score: str) -> None:
    learned = import_task("digits").build_task(import_task("digits").configure(kind, (), {"model.score": score}))
    seen = learned.model()(torch.rand(3, 8, 8))
    assert seen.weights.shape[:2] == (3, 3 if kind == "gated" else 1)
    assert seen.weights.shape[-2:] == (4, 4)
    assert torch.allclose(seen.weights.sum((-1, -2)), torch.ones(()), atol=1e-5)


def test_jitter_moves_pictures_and_none_leaves_them() -> None:
    pictures = torch.rand(5, 1, 8, 8)
    assert torch.equal(jitter(pictures, 0.0), pictures)
    moved = jitter(pictures, 0.1)
    assert moved.shape == pictures.shape
    assert not torch.allclose(moved[0], pictures[0])


def write_idx(folder: Path, *, zipped: bool = False, images: int = 40) -> None:
    """Four idx files with pictures of which class n has n rows of light."""
    for number, (pictures, classes) in enumerate(FILES.values()):
        labels = np.arange(images + number, dtype=np.uint8) % 10
        pixels = (np.arange(12)[None, :, None] < labels[:, None, None] + 1).astype(np.uint8) * 255
        pixels = np.broadcast_to(pixels, (len(labels), 12, 12))
        for name, array in ((pictures, pixels), (classes, labels)):
            content = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()
            path = folder / (f"{name}.gz" if zipped else name)
            path.write_bytes(gzip.compress(content) if zipped else content)


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_idx_files_are_read(tmp_path: Path, zipped: bool) -> None:
    write_idx(tmp_path, zipped=zipped)
    (pictures, classes), (_, test_classes) = read_idx_folder(tmp_path)
    assert pictures.shape == (40, 12, 12)
    assert len(test_classes) == 41
    assert torch.equal((pictures[:, :, 0].sum(1) - 1).long(), classes)


@pytest.mark.parametrize("place", [".", "home"])
def test_files_train_through_the_command(regard: Regard, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_DATA", "home")  # where regard data get puts them
    (Path(place) / "set").mkdir(parents=True)
    write_idx(Path(place) / "set")
    few = ("--channels", "4,4", "--data.validation", 10, "--stop.steps", 2, "--hidden", 8, "--folder", "run")
    assert regard("train", "digits", "set", *few).code == 0
    assert '"items": 41' in regard("evaluate", "run", "--json").output


def test_bad_files_are_one_sentence_each(regard: Regard) -> None:
    def check_refused(sentence: str) -> None:
        done = regard("train", "digits", "set", "--folder", "run")
        assert (done.code, done.errors.count("\n")) == (2, 1)
        assert sentence in done.errors, done.errors

    Path("set").mkdir()
    check_refused("data: got no train-images-idx3-ubyte or train-images-idx3-ubyte.gz in ")
    write_idx(Path("set"))
    images, labels = (Path("set") / name for name in FILES["training"])
    whole = images.read_bytes()
    images.write_bytes(whole[:-5])
    check_refused("expected 5760, as its head says; fix: fetch it again")
    images.write_bytes(labels.read_bytes())
    check_refused("got train-images-idx3-ubyte, which does not begin as one, expected an idx file of 3 axes")
    images.write_bytes(whole)
    content = labels.read_bytes()
    labels.write_bytes(content[:7] + bytes((39,)) + content[8:-1])
    check_refused("data: got 40 pictures in train-images-idx3-ubyte and 39 classes in train-labels-idx1-ubyte")
    labels.unlink()
    Path("set/train-labels-idx1-ubyte.gz").write_bytes(b"\x1f\x8bnot a gzip")
    check_refused("(Unknown compression method), expected a whole gzip file; fix: fetch it again")


def test_the_split_is_the_same_whenever_it_is_asked_for() -> None:
    assert torch.equal(load_digit_images(3).test[0], load_digit_images(3).test[0])
    assert len(load_digit_images(3).training[1]) + len(load_digit_images(3).test[1]) == 1797


def test_pictures_lie_somewhere_on_a_canvas_among_pieces_of_others() -> None:
    pictures = 0.2 + 0.8 * torch.rand(7, 11, 11, generator=torch.Generator().manual_seed(1))
    alone, again, among = (place_on_canvas(pictures, 23, pieces, 5) for pieces in (0, 0, 3))
    assert alone.shape == (7, 23, 23)
    assert torch.equal(alone, again)
    assert torch.allclose(alone.sum((1, 2)), pictures.sum((1, 2)))
    assert len({tuple(canvas.nonzero()[0].tolist()) for canvas in alone}) > 3
    for canvas, picture in zip(alone, pictures, strict=True):
        row, column = canvas.nonzero().amin(0).tolist()
        assert torch.equal(canvas[row : row + 11, column : column + 11], picture)
    assert bool(((among > 0).sum((1, 2)) >= (alone > 0).sum((1, 2))).all())
    assert int((among > 0).sum()) > int((alone > 0).sum())


def test_canvases_are_new_in_each_epoch_and_never_too_small() -> None:
    sets = load_splits(DigitsData(canvas=20, clutter=2))
    first, second = (sets.load_training(epoch)[0] for epoch in range(2))
    assert first.shape[1:] == sets.tests["test"][0].shape[1:] == (20, 20)
    assert not torch.equal(first, second)
    with pytest.raises(ValueError, match=r"data\.canvas: got 7, expected at least 8, the side of the pictures"):
        load_splits(DigitsData(canvas=7))


def test_gate_and_memory_are_removed_with_the_same_parameters() -> None:
    pictures, counts, gates = torch.rand(3, 8, 8), set(), {}
    for gate, memory in ((True, True), (False, True), (True, False)):
        torch.manual_seed(2)
        model = build_classifier(DigitsModel(gate=gate, memory=memory), 8)
        counts.add(sum(each.numel() for each in model.parameters()))
        seen = model(pictures)
        gates[gate, memory] = seen.gates
        glimpses = model.heads(model.places(pictures)).glimpses
        last, kept = glimpses[-1], glimpses[-1].gate[..., None] * glimpses[-1].attended.output.squeeze(-2)
        assert torch.allclose(last.state.memory, kept, atol=1e-6) is not memory
    assert len(counts) == 1
    assert bool((gates[False, True] == 1).all())
    assert bool((gates[True, True] < 1).all())
