"""Questions about images by command: three ways to look, and what can be wrong."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from walking import to_flags, walk

from regard.errors import InputError
from regard.tasks import import_task
from regard.tasks.images.scene_language import CHINESE, ENGLISH, SceneLanguage, draw_questions
from regard.tasks.images.scenes import ShapeGroup, draw_scene
from regard.tasks.vqa.config import VqaData
from regard.tasks.vqa.model import VqaBatch
from regard.tasks.vqa.source import open_questions
from regard.training import DataShare

Regard = Callable[..., Any]
SMALL = {"pixels": 8, "held_out": 4, "size": 16, "heads": 2, "channels": "8,8", "learning.images": 4}
COLORS = {"red": (220, 30, 30), "blue": (30, 30, 220)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Images of one bright spot, and questions about its color: laid out as easy-VQA is."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    random = np.random.default_rng(3)
    for part, count in (("train", 28), ("test", 10)):
        place, rows = tmp_path / "spots" / part, []
        (place / "images").mkdir(parents=True)
        for number in range(count):
            color = list(COLORS)[number % 2]
            image = np.full((8, 8, 3), 240, dtype=np.uint8)
            row, column = random.integers(0, 5, 2)
            image[row : row + 3, column : column + 3] = COLORS[color]
            Image.fromarray(image).save(place / f"images/{number}.png")
            rows += [["What color is it?", color, number], ["Is it red?", "yes" if color == "red" else "no", number]]
        (place / "questions.json").write_text(json.dumps(rows))
    return tmp_path / "spots"


@pytest.mark.parametrize("kind", ["stacked", "co-attention", "transformer"])
def test_questions_are_learned_resumed_evaluated_answered_and_drawn(regard: Regard, folder: Path, kind: str) -> None:
    fields = SMALL | {
        "stop.epochs": 12,
        "stop.target": "none",
        "warmup": 5,
        "rate": 0.01,
        "every.log": 1,
        "every.save": 10,
    }
    asked = (str(folder / "test/images/0.png"), "what color is it?")
    report = walk(regard, "vqa", folder, fields=fields, cut_at=33, item=asked, more=("--preset", kind))["test"]
    assert report["accuracy"] >= 95
    assert {"yes/no", "other"} < set(report)
    for number, (color, right) in enumerate((("red", "yes"), ("blue", "no"))):
        photo = folder / f"test/images/{number}.png"
        assert regard("ask", photo, "what color is it?", "--run", "run").output.strip() == color
        assert regard("ask", photo, "is it red?", "--run", "run", "--show", "look.png").output.startswith(right)
    assert Path("look.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["stacked", "co-attention", "transformer", "none"])
def test_padding_and_neighbors_change_no_answer(kind: str, folder: Path) -> None:
    values = {name: str(value) for name, value in SMALL.items()}
    task = import_task("vqa").build_task(import_task("vqa").configure(kind, (str(folder),), values))
    torch.manual_seed(1)
    model = task.model().eval()
    batch = next(iter(task.epoch(0, DataShare())))
    together = model(batch)
    assert torch.allclose(together.weights.sum(-1), torch.ones(()), atol=1e-5)
    for number in range(len(batch.answers)):
        length, owner = int(batch.lengths[number]), int(batch.image_indices[number])
        alone = VqaBatch(
            batch.images[owner : owner + 1],
            batch.questions[number : number + 1, :length],
            batch.lengths[number : number + 1],
            torch.tensor([0]),
            batch.answers[number : number + 1],
        )
        found = model(alone)
        assert torch.allclose(found.scores[0], together.scores[number], atol=1e-5)
        assert torch.allclose(found.weights[0], together.weights[number], atol=1e-5)


def test_yes_and_no_are_counted_apart(folder: Path) -> None:
    task = import_task("vqa").build_task(
        import_task("vqa").configure(None, (str(folder),), {k: str(v) for k, v in SMALL.items()})
    )

    class AlwaysYes(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = torch.nn.Parameter(torch.ones(1))

        def forward(self, batch: VqaBatch) -> Any:
            scores = torch.zeros(len(batch.answers), len(task.answers))
            scores[:, task.answers.index("yes")] = 5.0
            return type("Answered", (), {"scores": scores})

    metrics = task.metrics(task.count_correct(AlwaysYes(), task.dataset.test, DataShare()))
    assert (metrics["yes/no"], metrics["other"], metrics["accuracy"]) == (50, 0, 25)


def test_easy_vqa_is_there_in_its_package(tmp_path: Path) -> None:
    pytest.importorskip("easy_vqa")
    shown = open_questions(VqaData(pixels=2, most=100, cache=tmp_path))
    assert (len(shown.training.names), len(shown.validation.names), len(shown.test.names)) == (100, 400, 1000)
    assert len(shown.test.questions) == 9673
    assert sum(one.answer in ("yes", "no") for one in shown.test.questions) == 7136


def test_what_cannot_be_asked_is_one_sentence(regard: Regard, folder: Path) -> None:
    fields = [f"--{name}={value}" for name, value in (SMALL | {"stop.steps": 1}).items()]
    assert regard("train", "vqa", folder, "--folder", "run", *fields).code == 0
    photo = folder / "test/images/0.png"
    for question, sentence in (
        ("is it purple?", "question: got the unknown 'purple', expected words that it was taught: color, is, it, red"),
        ("is it " * 30, "question: got 60 words, expected at most 40; fix: ask in fewer words"),
        ("?", "question: got no words, expected a question; fix: write it in quotes behind the image"),
    ):
        done = regard("ask", photo, question, "--run", "run")
        assert (done.code, done.output) == (2, "")
        assert sentence in done.errors
        assert done.errors.count("\n") == 1
    done = regard("predict", "run", photo)
    assert (done.code, "question: got none, expected an image and a question" in done.errors) == (2, True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        pytest.param("questions.json", None, "questions: got no file .*, expected a list of", id="missing"),
        pytest.param("questions.json", "[[1]]", "which cannot be read .*, expected a list of", id="shape"),
        pytest.param("questions.json", "[]", "questions: got none in .*; fix: write some questions", id="none"),
        pytest.param("images/5.png", None, r"images: got no 5\.png in .*, expected an image for every", id="image"),
    ],
)
def test_a_folder_with_something_missing_is_one_sentence(
    folder: Path, name: str, content: str | None, message: str
) -> None:
    path = folder / "train" / name
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(InputError, match=message):
        open_questions(VqaData(str(folder), pixels=8, held_out=4))


@pytest.mark.parametrize(
    ("name", "question"), [("scenes", "how many circles are there?"), ("scenes-zh", "一共有几个圆？")]
)
def test_scenes_are_asked_about_in_two_languages(regard: Regard, name: str, question: str) -> None:
    given = SMALL | {"data.scenes": 30, "pixels": 32, "stop.steps": 2, "every.log": 1}
    done = regard("train", "vqa", name, "--folder", "run", *to_flags(given))
    assert done.code == 0, done.errors
    Image.fromarray(draw_scene([1]).image).save("scene.png")
    said = json.loads(regard("ask", "scene.png", question, "--run", "run", "--json").output)
    assert said["answer"] in json.loads(Path("run/answers.json").read_text())
    if name == "scenes-zh":
        assert "the unknown '天'" in regard("ask", "scene.png", "有几天？", "--run", "run").errors


@pytest.mark.parametrize("language", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_answers_about_scenes_are_those_of_the_groups(language: SceneLanguage) -> None:
    groups = (ShapeGroup(2, "red", "circle", "left"), ShapeGroup(3, "blue", "circle", "right"))
    asked = [pair for seed in range(20) for pair in draw_questions(groups, np.random.default_rng(seed), language)]
    number = language.ask_number.format(shape=language.shapes["circle"])
    assert {answer for text, answer in asked if text == number} == {language.numbers[4]}
    color = language.ask_color.format(shape=language.shapes["circle"])
    assert color not in {text for text, _ in asked}  # which of the two is meant?
    shape = language.ask_shape.format(color=language.colors["red"])
    assert (shape, language.shapes["circle"]) in asked
    assert {answer for _, answer in asked} >= set(language.presence)


def test_few_images_are_moved_at_random_and_many_are_not(folder: Path) -> None:
    definition = import_task("vqa")

    def find_jitter(data: str, **values: str) -> float:
        return definition.build_task(definition.configure(None, (data,), SMALL | values)).config.learning.jitter

    assert find_jitter(str(folder)) == 0.08
    assert find_jitter(str(folder), **{"learning.jitter": "0"}) == 0
    assert find_jitter("scenes", **{"data.scenes": "1000", "data.held_out": "2"}) == 0
    task = definition.build_task(definition.configure(None, (str(folder),), SMALL))
    batch = task.collate(task.dataset.training, [0, 1, 2])
    model, seen = task.model(), []
    model.register_forward_pre_hook(lambda _, given: seen.append(given[0].images))
    task.loss(model, batch)
    with torch.no_grad():
        task.count_correct(model, task.dataset.validation, DataShare())
    assert not torch.equal(seen[0], batch.images)
    measured = task.collate(task.dataset.validation, range(len(task.dataset.validation.names)))
    assert torch.equal(seen[1], measured.images)


def test_another_folder_without_splits_is_measured_whole(regard: Regard, folder: Path) -> None:
    trained = regard("train", "vqa", folder / "train", "--folder", "run", *to_flags(SMALL | {"stop.steps": 1}))
    assert trained.code == 0, trained.errors
    items = [json.loads(regard("evaluate", "run", *data, "--json").output) for data in ((), (folder / "train",))]
    assert [one["test"]["items"] for one in items] == [4, 4]  # of the run's own data, what it held out
    assert json.loads(regard("evaluate", "run", folder / "test", "--json").output)["test"]["items"] == 20
    shutil.move(folder / "test", folder / "other")
    assert json.loads(regard("evaluate", "run", folder / "other", "--json").output)["other"]["items"] == 20


def test_a_folder_without_splits_holds_out_a_tenth_each(folder: Path) -> None:
    rows = json.loads((folder / "train/questions.json").read_text())
    (folder / "train/images/0.png").rename(folder / "train/images/猫.png")
    named = [[text, answer, "猫.png" if image == 0 else image] for text, answer, image in rows]
    (folder / "train/questions.json").write_text(json.dumps(named))
    found = open_questions(VqaData(questions=str(folder / "train"), pixels=8))
    assert [len(split.names) for split in found] == [24, 2, 2]
    names = [set(split.names) for split in found]
    assert len(set.union(*names)) == 28
    assert "猫.png" in set.union(*names)
    assert all(len(split.questions) == 2 * len(split.names) for split in found)
