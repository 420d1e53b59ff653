"""Captioning by command: scenes drawn here, photographs of a folder, soft and hard attention, and what can be wrong."""

import errno
import gzip
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from walking import walk

from regard.errors import InputError
from regard.tasks import import_task
from regard.tasks.captioning.config import CaptioningData
from regard.tasks.captioning.datasets import open_dataset
from regard.tasks.captioning.loss import compute_loss
from regard.tasks.captioning.metrics import compute_metrics, compute_sums
from regard.tasks.images import features as features_module
from regard.tasks.images.scene_language import caption_groups
from regard.tasks.images.scenes import ACROSS, CELL, COLORS, SHAPES, draw_scene, draw_stencil
from regard.training import DataShare

Regard = Callable[..., Any]
SMALL = {"data.scenes": 120, "held_out": 30, "model.size": 24, "hidden": 24, "width": 24, "channels": "8,12,16"}
BRIEF = SMALL | {"stop.steps": 60, "every.evaluate": 20, "every.save": 10, "every.log": 1, "budget": 128, "warmup": 5}
BRIEF |= {"rate": 0.01, "measure.goal": "loss", "stop.target": "none"}


def train_small(attention: str, **more: object) -> Any:
    values = {name: str(value) for name, value in (SMALL | more).items()}
    return import_task("captioning").configure(attention, (), values)


def test_scenes_are_learned_resumed_evaluated_told_and_drawn(regard: Regard) -> None:
    """Sixty small steps teach the grammar, not yet the scenes. Before them BLEU-1 is below 10."""
    report = walk(regard, "captioning", fields=BRIEF, cut_at=33)["scenes"]
    assert report["bleu-1"] > 20
    assert set(report) == {"items", "bleu-1", "bleu-2", "bleu-3", "bleu-4", "exact"}
    Image.fromarray(draw_scene([7]).image).resize((50, 40)).save("photo.jpg")
    told = regard("caption", "photo.jpg", "--run", "run", "--show", "words.png", "--json")
    assert told.code == 0, told.errors
    answer = json.loads(told.output)
    assert len(answer["weights"]) == len(answer["words"]) == len(answer["text"].split())
    assert [sum(row) for row in answer["weights"]] == pytest.approx([1] * len(answer["words"]), abs=1e-4)
    assert Path("words.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("attention", ["reinforce", "gumbel", "gumbel-straight", "straight-through", "none"])
def test_every_estimator_learns(attention: str) -> None:
    """Thirty steps on the same scenes: each way brings the loss down, though draws are not repeated."""
    task = import_task("captioning").build_task(train_small(attention))
    torch.manual_seed(2)
    model = task.model()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    losses = []
    for batch in list(task.epoch(0, DataShare()))[:4] * 8:
        loss = task.loss(model, batch)
        with torch.no_grad():
            losses.append(float(compute_loss(model, batch, task.config.learning).negative_log_likelihood) / loss.count)
        (loss.total / loss.count).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert sum(losses[-4:]) < 0.75 * sum(losses[:4])
    metrics = task.metrics(task.measure(model.eval(), DataShare()))
    assert metrics["loss"] < sum(losses[:4]) / 4


NUMBERS = ("a", "two", "three")
AREAS = {int(draw_stencil(shape).sum()): shape for shape in SHAPES}  # pixels that a shape covers tell which one it is


def test_a_caption_says_what_is_drawn() -> None:
    """Read back from the pixels: how many cells have each color, and how many each shape."""
    for number in range(30):
        drawn = draw_scene([3, number])
        cells = drawn.image.reshape(ACROSS, CELL, ACROSS, CELL, 3).transpose(0, 2, 1, 3, 4).reshape(-1, CELL * CELL, 3)
        middles = cells[:, CELL * (CELL // 2) + CELL // 2].astype(int)
        near = {name: np.abs(middles - np.array(color)).max(-1) <= 12 for name, color in COLORS.items()}
        words = caption_groups(drawn.groups)[0].split()
        for color in set(words) & set(COLORS):
            said = sum(NUMBERS.index(words[place - 1]) + 1 for place, word in enumerate(words) if word == color)
            assert near[color].sum() == said, drawn.groups
        covered = (np.ptp(cells, axis=-1) > 0).sum(-1)  # the ground is gray
        said_shapes: Counter[str | None] = Counter()
        for place, word in enumerate(words):
            if word in COLORS:
                said_shapes[words[place + 1].removesuffix("s")] += NUMBERS.index(words[place - 1]) + 1
        areas = Counter(AREAS.get(area) for area in covered.tolist() if area)
        assert areas == said_shapes, drawn.groups


def test_the_seed_alone_decides_a_scene_and_epochs_differ() -> None:
    album = open_dataset(CaptioningData(scenes=5))
    assert torch.equal(
        album.load_training(1).load_inputs([2]),
        open_dataset(CaptioningData(scenes=5)).load_training(1).load_inputs([2]),
    )
    assert album.load_training(0).captions != album.load_training(1).captions
    assert set(album.validation.captions) != set(next(iter(album.tests.values())).captions)


def test_bleu_is_that_of_the_definition() -> None:
    """Two of three words right with the right length: BLEU-1 is 2/3, and one of two pairs makes BLEU-2 √(2/3 · 1/2)."""
    total = compute_sums(["a red dog"], [("a red cat", "the dog is here now")])
    found = compute_metrics(total)
    assert found["bleu-1"] == pytest.approx(100)  # each word is in one of the captions
    assert compute_metrics(compute_sums(["a red dog"], [("a red cat",)]))["bleu-1"] == pytest.approx(200 / 3)
    assert compute_metrics(compute_sums(["a red dog"], [("a red cat",)]))["bleu-2"] == pytest.approx(
        100 * (2 / 3 * 1 / 2) ** 0.5
    )
    assert found["exact"] == 0
    assert compute_metrics(compute_sums(["a cat"], [("a dog", "a cat")]))["exact"] == 100


class Stub(torch.nn.Module):
    """In the place of the network: a grid of the means of 32 × 32 pixels."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.avg_pool2d(image, 32).mean(1, keepdim=True).expand(-1, features_module.HEAD, -1, -1)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six dark and six light photographs, and captions that say which is which."""
    from regard.tasks.captioning import datasets

    monkeypatch.setattr(features_module, "load_pretrained", Stub)
    monkeypatch.setattr(features_module, "hash_weights", lambda: "stub")
    monkeypatch.setattr(datasets, "load_network", Stub)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    place = tmp_path / "photos"
    (place / "images").mkdir(parents=True)
    lines = []
    for number in range(12):
        light = number % 2
        Image.fromarray(np.full((40, 50, 3), 30 + 190 * light, dtype=np.uint8)).save(place / f"images/{number}.jpg")
        split = ("train", "train", "train", "train", "dev", "test")[number // 2]
        lines += [f"{split}\t{number}.jpg\tA {('dark', 'light')[light]} photo .", f"{split}\t{number}.jpg\tPhoto ."]
    with gzip.open(place / "captions.tsv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    return place


def test_photographs_of_a_folder_are_captioned(regard: Regard, folder: Path) -> None:
    fields = {
        "pixels": 64,
        "model.size": 8,
        "hidden": 8,
        "width": 8,
        "vocabulary.minimum": 1,
        "dropout": 0,
        "stop.epochs": 2,
    }
    done = regard("train", "captioning", folder, "--folder", "run", *(f"--{k}={v}" for k, v in fields.items()))
    assert done.code == 0, done.errors
    assert json.loads(regard("evaluate", "run", "--json").output)["test"]["items"] == 2
    whole = folder.parent / "other"
    shutil.copytree(folder / "images", whole / "images")
    (whole / "captions.tsv").write_text("".join(f"{number}.jpg\tA photo .\n" for number in range(12)))
    assert json.loads(regard("evaluate", "run", whole, "--json").output)["other"]["items"] == 12
    told = regard("caption", folder / "images/10.jpg", "--run", "run")
    assert told.code == 0, told.errors
    assert set(told.output.split()) <= {"a", "dark", "light", "photo"}
    shown = regard("show", "run", "--output", "shown.png")
    assert shown.code == 0, shown.errors
    photo = shutil.copy(folder / "images/10.jpg", "elsewhere.jpg")
    shutil.rmtree(folder)
    alone = regard("caption", photo, "--run", "run")
    assert (alone.code, alone.output) == (0, told.output), alone.errors
    assert "data.images: got no folder" in regard("evaluate", "run").errors


def test_bad_photographs_and_runs_are_one_sentence(regard: Regard) -> None:
    assert regard("train", "captioning", "--folder", "run", "--stop.steps", 1, *to_flags(SMALL)).code == 0
    Path("text.jpg").write_text("no image")
    for arguments, sentence in (
        (("none.jpg", "--run", "run"), "regard: photo: got no file none.jpg, expected an image; fix: check the path"),
        (("text.jpg", "--run", "run"), "regard: photo: got text.jpg, which is not an image, expected PNG, JPEG"),
        (("text.jpg", "--run", "nowhere"), "nowhere"),
    ):
        done = regard("caption", *arguments)
        assert (done.code, done.output) == (2, "")
        assert sentence in done.errors
        assert done.errors.count("\n") == 1
    Image.fromarray(draw_scene([7]).image).save("photo.png")
    done = regard("ask", "photo.png", "what is it?", "--run", "run")
    assert "run: got run, a run of captioning, expected one of vqa; fix: name another, or make one" in done.errors


def to_flags(values: dict[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in values.items()]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        pytest.param(
            lambda f: (f / "captions.tsv.gz").unlink(), r"captions: got none in .*, expected captions\.tsv", id="none"
        ),
        pytest.param(
            lambda f: (f / "images/3.jpg").unlink(), r"images: got no 3\.jpg in .*, expected an image for", id="image"
        ),
        pytest.param(lambda f: rewrite(f, "train\t1.jpg\n"), r"captions\.tsv\.gz, line 1: got 'train", id="line"),
        pytest.param(lambda f: rewrite(f, "train\t1.jpg\t . \n"), r"got no captions for|an empty caption", id="empty"),
        pytest.param(
            lambda f: rewrite(f, "".join(f"{split}\t1.jpg\ta dog\n" for split in ("train", "dev", "test"))),
            r"captions\.tsv\.gz: got 1\.jpg for train and for validation, expected each image in one part",
            id="twice",
        ),
        pytest.param(lambda f: rewrite(f, "train\t1.jpg\ta dog\n"), r"got no captions for validation", id="split"),
        pytest.param(
            lambda f: (f / "captions.tsv.gz").write_bytes(b"train\t1.jpg\ta caf\xe9\n"),
            r"captions\.tsv\.gz: got byte 0xe9 in line 1, expected UTF-8 text",
            id="latin",
        ),
        pytest.param(
            lambda f: (f / "captions.tsv.gz").write_bytes((f / "captions.tsv.gz").read_bytes()[:50]),
            r"captions\.tsv\.gz: got a damaged gzip file",
            id="cut",
        ),
    ],
)
def test_a_folder_with_something_missing_is_one_sentence(
    folder: Path, change: Callable[[Path], None], message: str
) -> None:
    change(folder)
    with pytest.raises(InputError, match=message):
        open_dataset(CaptioningData(str(folder)))


def rewrite(folder: Path, text: str) -> None:
    with gzip.open(folder / "captions.tsv.gz", "wt") as file:
        file.write(text)


def test_no_folder_is_one_sentence() -> None:
    with pytest.raises(
        InputError, match=r"data\.images: got no folder nowhere, expected scenes, scenes-zh, or a folder"
    ):
        open_dataset(CaptioningData("nowhere"))


def test_the_files_of_the_authors_are_read_where_data_is_looked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As regard data get flickr8k unpacks them; an image on no list is left out, as the authors left out some."""
    (folder / "captions.tsv.gz").unlink()
    lines = [f"{number}.jpg#{place}\tPhoto {number} , {place} ." for number in range(12) for place in range(2)]
    (folder / "Flickr8k.token.txt").write_text("\n".join(lines) + "\n")
    for name, numbers in {"train": range(6), "dev": range(6, 8), "test": range(8, 10)}.items():
        (folder / f"Flickr_8k.{name}Images.txt").write_text("".join(f"{number}.jpg\n" for number in numbers))
    folder.rename(folder.parent / "flickr8k")
    monkeypatch.setenv("REGARD_DATA", str(folder.parent))
    album = open_dataset(CaptioningData("flickr8k", pixels=64))
    assert list(album.validation.names) == ["6.jpg", "7.jpg"]
    assert album.validation.captions[1] == ("photo 7 0", "photo 7 1")
    assert list(album.tests["test"].names) == ["8.jpg", "9.jpg"]
    (folder.parent / "flickr8k/Flickr_8k.testImages.txt").write_text("5.jpg\n")
    with pytest.raises(InputError, match=r"got 5\.jpg for train and for test, expected each image in one part"):
        open_dataset(CaptioningData("flickr8k"))


def test_a_full_disk_is_one_sentence(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room is taken before anything is computed, since a mapped file could only say so by a signal."""
    album = open_dataset(CaptioningData(str(folder), pixels=64))
    with monkeypatch.context() as full:
        full.setattr(features_module.os, "posix_fallocate", no_room)
        with pytest.raises(InputError, match=r"disk: got 'No space left on device' for 0 MB of features"):
            _ = album.validation
    cache = folder.parent / "cache"
    assert not list(cache.rglob("*.npy"))
    sparse = cache / "sparse"
    with sparse.open("wb") as file:
        file.truncate(2**20)
    features_module.reserve(sparse)
    assert sparse.stat().st_blocks * 512 >= 2**20
    assert len(album.validation.load_inputs([0, 1])) == 2


def no_room(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_chinese_captions_are_learned_and_said_by_character(regard: Regard) -> None:
    given = BRIEF | {"stop.steps": 2, "every.save": 2}
    assert regard("train", "captioning", "scenes-zh", "--folder", "run", *to_flags(given)).code == 0
    words = json.loads(Path("run/vocabulary/captions.json").read_text())["tokens"]
    assert {"红", "色", "圆", "边"} <= set(words)
    assert max(map(len, words)) == 1
    Image.fromarray(draw_scene([7]).image).save("photo.png")
    said = json.loads(regard("caption", "photo.png", "--run", "run", "--json").output)
    assert said["text"] == "".join(said["words"])


def test_captions_without_splits_are_held_out_by_the_tenth(folder: Path) -> None:
    with gzip.open(folder / "captions.tsv.gz", "wt") as file:
        file.write("".join(f"{number}.jpg\t第{number}张照片很好看。\n" for number in range(12)))
    album = open_dataset(CaptioningData(images=str(folder)))
    assert [len(album.table[part]) for part in ("train", "validation", "test")] == [10, 1, 1]
    assert album.table["train"].get("3.jpg", ("第 3 张 照 片 很 好 看",)) == ("第 3 张 照 片 很 好 看",)
