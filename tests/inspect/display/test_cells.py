"""What a notebook is given, before any browser sees it."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from regard import AttentionResult, attend, view
from regard.errors import InputError, KindError
from regard.inspect.display.cell import BUDGET, render_cell, render_subject
from regard.inspect.display.kernel_link import MOST, KernelLink
from regard.inspect.display.parts import READERS, read_part
from regard.inspect.display.subjects import build_chapter
from regard.inspect.draw.bundle import read_static
from regard.inspect.recording import DenseMap, Recording
from regard.tasks.prediction import LabeledWeights, Prediction

B, H, L, S, D = 2, 3, 5, 7, 11


def weights(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).softmax(-1)


def attend_once() -> AttentionResult:
    return attend(torch.randn(B, H, L, D), torch.randn(B, H, S, D), torch.randn(B, H, S, D))


def read_recording(page: str) -> dict[str, Any]:
    """Return the recording that stands in a cell."""
    found = re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


SUBJECTS = {
    "recording": lambda: Recording.from_weights({"a": weights(H, L, S), "b": weights(L, L)}),
    "site": lambda: DenseMap(weights(H, L, S)),
    "weights": lambda: attend_once().weights,
    "result": attend_once,
    "prediction": lambda: Prediction("x", {}, lambda: None, LabeledWeights([[0.5, 0.5]], ["a", "b"], ["q"])),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_a_notebook_shows_it_by_itself(name: str) -> None:
    subject = SUBJECTS[name]()
    page = subject._repr_html_()
    assert len(page.encode()) < 250_000
    assert read_recording(page)["chapters"][0]["sites"]
    assert re.match(r'<div class="regard-output"[^>]*><img alt="attention" src="data:image/svg\+xml;base64,', page)
    assert set(re.findall(r"https?://[\w./]+", page)) <= {"http://www.w3.org/2000/svg"}  # a name, not an address
    bundle = subject._repr_mimebundle_()
    assert bundle["text/html"] == page
    picture = ElementTree.fromstring(bundle["image/svg+xml"])  # for what shows no scripts, such as GitHub
    assert {element.tag.rpartition("}")[2] for element in picture.iter()} == {"svg", "rect", "text", "image"}
    assert "\n" not in bundle["text/plain"] or name == "prediction"


def test_a_handle_is_shown_as_it_is() -> None:
    attended = attend_once()
    for subject in (attended, attended.weights):
        shown = build_chapter(subject, item=1).recording["attention"].dense()
        assert torch.allclose(shown, attended.weights.dense()[1])
    alone = attend(torch.randn(H, L, D), torch.randn(H, S, D), torch.randn(H, S, D)).weights
    assert build_chapter(alone).recording["attention"].shape == (H, L, S)
    assert build_chapter(alone[0]).recording["attention"].shape == (1, L, S)


def test_a_long_handle_has_all_its_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single axis before queries and keys was taken for a batch if there were too many weights to write out."""
    monkeypatch.setattr("regard.inspect.display.subjects.DENSE_WEIGHTS", 1)
    alone = attend(torch.randn(H, L, D), torch.randn(H, S, D), torch.randn(H, S, D)).weights
    shown = build_chapter(alone).recording["attention"]
    assert shown.shape == (H, L, S)
    assert torch.allclose(shown.tile(2), alone.dense()[2])


def test_attentions_of_transformers_are_shown_as_they_come() -> None:
    layers = tuple(weights(B, H, L, L) for _ in range(2))
    recording = build_chapter(layers, list("abcde"), item=1).recording
    assert list(recording) == ["layer 0", "layer 1"]
    assert recording["layer 1"].dense().equal(layers[1][1])
    assert recording.labels["layer 1"].keys == tuple("abcde")


def test_tokens_label_the_axes_that_they_fit() -> None:
    own, across = weights(S, S), weights(L, S)
    chapter = build_chapter(Recording.from_weights({"own": own, "across": across}), list("abcde"), list("1234567"))
    assert chapter.recording.labels["own"].queries == tuple("1234567")
    assert chapter.recording.labels["across"].queries == tuple("abcde")
    with pytest.raises(InputError) as caught:
        build_chapter(own, list("ab"))
    expected = (
        "tokens: got 2 and 2 tokens, expected as many as some of 7 × 7 positions; fix: give one for each position"
    )
    assert str(caught.value) == expected


def test_what_is_labelled_for_a_view_is_a_copy() -> None:
    recording = Recording.from_weights({"a": weights(L, L)})
    build_chapter(recording, list("abcde"))
    assert recording.labels == {}


@pytest.mark.parametrize(("layers", "length"), [(3, 64), (3, 520), (150, 40)])
def test_a_cell_is_bounded_however_long_the_recording_is(as_installed: None, layers: int, length: int) -> None:
    table = weights(12, length, length)
    recording = Recording({f"h.{layer}": DenseMap(table + layer * 1e-6) for layer in range(layers)})
    page = render_cell(recording)
    assert len(page.encode()) < BUDGET + 120_000 + 1_000 * layers  # weights, script, and what is known of each layer
    data = read_recording(page)
    assert data["chapters"][0]["sites"][0]["heads"] == 12
    if len(data["chapters"][0]["sites"]) < layers:
        assert any("sites are not shown: too many weights" in note for note in data["notes"])


def test_what_cannot_be_shown_says_why() -> None:
    assert "recording: got no attention at all" in render_cell(Recording())
    with pytest.raises(KindError, match=r"^view: got a str, expected a recording, an attention, weights"):
        build_chapter("text")


def test_a_label_cannot_end_the_script_that_holds_it() -> None:
    evil = "</script><img src=x onerror=alert(1)>"
    page = render_cell(Recording.from_weights({evil: [[1.0]]}, queries=[evil], keys=[evil]))
    assert page.count("<img") == 1
    assert read_recording(page)["labels"] == [[evil]]


def test_without_a_notebook_the_browser_is_opened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    monkeypatch.setenv("DISPLAY", ":0")
    view(weights(L, S))
    assert opened[0].endswith("attention.html")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("screen", ["", ":0"])
def test_without_a_browser_the_page_is_written_and_its_place_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], screen: str
) -> None:
    """Over SSH there is no screen, and a browser of the terminal must not take it."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)))
    for name in ("WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DISPLAY", screen)
    view(weights(L, S))
    told = re.fullmatch(
        r"regard\.view: no browser on this machine; open (/.+/attention\.html)\n", capsys.readouterr().err
    )
    assert told is not None
    assert '"chapters"' in Path(told[1]).read_text(encoding="utf-8")
    assert len(opened) == (1 if screen else 0)


def test_weights_need_no_picture_library() -> None:
    """Notebooks show panels without the extra `plot`."""
    code = """import sys; sys.modules['matplotlib'] = None
import torch, regard; print(len(regard.Recording.from_weights({'a': torch.eye(3)})._repr_html_()) > 0)"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "True"


def read_kernel_links(code: str, without: str = "") -> list[str]:
    """Return which cells can ask their kernel for more, by the names in them; `without` a package."""
    script = f"""import sys
if {without!r}: sys.modules[{without!r}] = None
import re, torch, regard, IPython
from regard.inspect.display import cell
from types import SimpleNamespace
IPython.get_ipython = lambda: SimpleNamespace(kernel=None)
for page in map(cell.render_cell, {code}):
    print(re.search('"kernel":(null|"[^"]+")', page)[1] if '"kernel":' in page else "whole")"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return run.stdout.split()


def test_only_what_a_cell_cannot_hold_is_asked_of_the_kernel() -> None:
    small, long = "torch.eye(5)", "torch.eye(600)"
    found = read_kernel_links(f"[{small}, {long}, {long}]")
    assert found[0] == "whole"
    assert len(set(found)) == 3
    assert "null" not in found
    assert read_kernel_links(f"[{small}, {long}]", without="anywidget") == ["whole", "null"]


def test_a_kernel_answers_in_bytes_or_says_why_not() -> None:
    recording = Recording.from_weights({"a": weights(H, L, S)}, queries=list("abcde"), keys=list("1234567"))
    summary = json.loads(read_part(recording, "summary", {}))
    facts = {"name": "a", "heads": H, "rows": L, "columns": S, "whole": True, "labelled": True, "across": True}
    assert summary["sites"][0] | facts == summary["sites"][0]
    assert json.loads(read_part(recording, "labels", {"site": 0})) == {
        "rows": list("abcde"),
        "columns": list("1234567"),
    }
    tile = {"site": 0, "head": 1, "up": 0, "across": 1, "row": 0, "column": 0}
    found = torch.frombuffer(bytearray(read_part(recording, "tile", tile)), dtype=torch.float32).view(L, 4)
    table = F.pad(recording["a"].dense()[1], (0, 1))  # of 7 keys, the last has a cell of its own
    assert found.equal(table.view(L, 4, 2).amax(-1))
    why = json.loads(read_part(recording, "explanation", {"site": 0, "head": 1, "row": 2, "column": 3}))
    assert why["weight"] == pytest.approx(recording["a"].dense()[1, 2, 3].item())
    with pytest.raises(InputError, match=r"^part: got 'all', expected one of summary, labels, bundle, "):
        read_part(recording, "all", {})
    with pytest.raises(InputError, match=r"^site: got 1, expected a whole number from 0 to 0; fix: use 0$"):
        read_part(recording, "labels", {"site": 1})


def test_links_are_few() -> None:
    """Each keeps its recording, and notebooks run cells again and again."""
    links = [KernelLink(Recording.from_weights({"a": weights(L, S)})) for _ in range(MOST + 2)]
    assert list(KernelLink.links) == links[2:]
    assert [link.comm is None for link in links] == [True, True] + MOST * [False]
    KernelLink.links.clear()


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (InputError("site: got 1, expected 0; fix: use 0"), "site: got 1, expected 0; fix: use 0"),
        (
            MemoryError("no room"),
            "kernel: got MemoryError (no room), expected a part of the recording; fix: make the recording again",
        ),
    ],
)
def test_whatever_fails_in_a_kernel_reaches_the_cell(
    error: Exception, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> bytes:
        raise error

    monkeypatch.setattr("regard.inspect.display.kernel_link.read_part", fail)
    link = KernelLink(Recording.from_weights({"a": weights(L, S)}))
    sent: list[object] = []
    monkeypatch.setattr(link, "send", lambda *parts: sent.append(parts))
    link.answer(link, {"question": "1-2", "part": "tile", "values": {}}, [])
    assert sent == [({"question": "1-2", "error": sentence},)]
    KernelLink.links.clear()


def read_picture(recording: Recording) -> list[str]:
    """Return what is written in the picture of a recording, for where no script runs."""
    picture = ElementTree.fromstring(render_subject(recording)["image/svg+xml"])
    return [element.text or "" for element in picture.iter() if element.tag.endswith("text")]


def test_a_still_picture_has_tokens_heads_and_a_scale() -> None:
    table = weights(H, L, S)
    recording = Recording.from_weights({"a": table, "b": table}, queries=list("abcde"), keys=list("1234567"))
    written = read_picture(recording)
    largest = f"{table.mean(0).max():.2g}"
    assert written == [
        "b, mean of heads", *"abcde", *"1234567", "0", largest, "weight",
        *map(str, range(H)), "a", "b", "each head by its own largest weight",
    ]  # fmt: skip


@pytest.mark.parametrize(("length", "numbers"), [(60, ["0", "5", "10"]), (300, ["0", "20", "40"]), (900, ["0", "70"])])
def test_a_still_picture_of_many_positions_numbers_some(length: int, numbers: list[str]) -> None:
    tokens = [f"token{place}" for place in range(length)]
    written = read_picture(Recording.from_weights({"a": weights(length, length)}, queries=tokens, keys=tokens))
    assert written[1 : 1 + len(numbers)] == numbers
    assert len(written) < 70


def test_a_kernel_answers_all_that_panels_ask() -> None:
    asked = set(re.findall(r'\bask\w*\((?:ask, )?"(\w+)"', read_static("served.js")))
    assert {"summary", "tile"} <= asked <= set(READERS)


def test_weights_that_are_not_finite_are_shown_or_refused_in_words() -> None:
    recording = Recording.from_weights({"a": torch.full((2, 2), float("nan"))})
    assert read_recording(render_cell(recording))["chapters"][0]["sites"]
    with pytest.raises(InputError, match=r"^weights: got numbers that are not finite, expected finite ones; fix: look"):
        read_part(recording, "weight", {"site": 0, "head": 0, "row": 0, "column": 0})
    json.loads(read_part(recording, "summary", {}))
