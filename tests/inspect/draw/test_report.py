"""What a report holds, before any browser sees it."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from regard.errors import InputError
from regard.inspect.draw.bundle import EXPORT, IMPORT, bundle_script, read_static
from regard.inspect.draw.chapters import Chapter, Regions, ReportBuilder, shrink_weights
from regard.inspect.draw.compression import encode_png, pack, pack_within, round_bits
from regard.inspect.draw.report import build_contents, render_report, save_report
from regard.inspect.recording import DenseMap, Difference, Recording, Sketch

STATIC = Path(__file__).parents[3] / "src" / "regard" / "web" / "static"
MODULES = sorted(path.name for path in STATIC.glob("*.js"))


def unpack_numbers(text: str) -> np.ndarray:
    """Return the numbers of a text, by the definition in tables.js."""
    planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view("<f4").ravel()


def draw_weights(heads: int, queries: int, keys: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(heads, queries, keys, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def test_packing_keeps_every_bit() -> None:
    table = draw_weights(3, 5, 7).numpy()
    assert (unpack_numbers(pack(table)) == table.ravel()).all()


@pytest.mark.parametrize("bits", [15, 11, 7])
def test_rounding_is_as_small_as_it_says(bits: int) -> None:
    table = draw_weights(3, 50, 70).numpy()
    error = np.abs(round_bits(table, bits) / table - 1).max()
    assert 2.0 ** -(bits + 3) < error <= 2.0 ** -(bits + 1)


def test_weights_are_rounded_only_where_they_do_not_fit() -> None:
    tables = [draw_weights(1, 100, 100).numpy()]
    assert pack_within(tables, 100_000)[1] == 23
    texts, bits = pack_within(tables, 30_000)
    assert bits == 11  # 15 would not fit
    assert len(texts[0]) <= 30_000 < len(pack(tables[0], 15))


def test_a_sentence_is_small_and_exact() -> None:
    """4 layers, 4 heads, 40 tokens: encoder, decoder and between them."""
    names = [f"{part} {layer}" for part in ("encoder", "decoder", "between") for layer in range(4)]
    recording = Recording.from_weights({name: draw_weights(4, 40, 40, seed) for seed, name in enumerate(names)})
    page = render_report([Chapter("a sentence", recording)], "a sentence")
    assert len(page.encode()) < 1_000_000
    assert '"exact": 23' in page


def test_what_hypotheses_share_is_kept_once() -> None:
    recording = Recording.from_weights({"encoder": draw_weights(2, 3, 3)}, queries=list("abc"), keys=list("abc"))
    data = build_contents([Chapter("one", recording), Chapter("two", recording)], "")
    assert len(data["tables"]) == 1
    assert data["labels"] == [["a", "b", "c"]]
    assert [chapter["sites"][0]["table"] for chapter in data["chapters"]] == [0, 0]


def test_long_attention_is_drawn_by_its_largest_and_says_so() -> None:
    weights = torch.zeros(1, 600, 1030)
    weights[0, 599, 1029] = 0.5  # one weight among many
    site = ReportBuilder().encode_site("long", DenseMap(weights), None)
    assert (site["height"], site["width"], site["step"]) == (256, 256, [3, 5])
    assert shrink_weights(DenseMap(weights)).max() == 0.5


def test_a_sketch_is_shown_as_far_as_it_goes() -> None:
    table = draw_weights(1, 4, 6)
    top = table.topk(2)
    sketch = Sketch(table.sum(-1), table.sum(-2), top.values, top.indices)
    assert shrink_weights(sketch).shape == (1, 4, 6)
    assert np.count_nonzero(shrink_weights(sketch)) == 8


def test_a_difference_is_colored_as_one() -> None:
    first, second = DenseMap(draw_weights(1, 2, 2)), DenseMap(draw_weights(1, 2, 2, 1))
    assert ReportBuilder().encode_site("change", Difference(first, second), None)["kind"] == "difference"


def test_a_recording_of_nothing_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        render_report([Chapter("", Recording())], "")
    assert str(caught.value) == (
        "recording: got no attention at all, expected at least one attention; fix: record a model that attends"
    )


class Scripts(HTMLParser):
    """The scripts of a page, as a browser finds them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script":
            self.scripts[-1] += data


@pytest.mark.parametrize("evil", ["</script><script>alert(1)</script>", "</script><img src=x>", "<!--<script>", "-->"])
def test_no_label_ends_the_script_that_holds_it(evil: str) -> None:
    page = render_report([Chapter(evil, Recording.from_weights({evil: [[1.0]]}, queries=[evil], keys=[evil]))], evil)
    parser = Scripts()
    parser.feed(page)
    assert "img" not in parser.tags
    data, code = parser.scripts
    assert json.loads(data)["labels"] == [[evil]]
    assert code.strip() == bundle_script("report.js").strip()


def test_the_page_names_no_other_place() -> None:
    page = render_report([Chapter("", Recording.from_weights({"a": [[1.0]]}))], "")
    assert set(re.findall(r"https?://[\w./]+", page)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "@import" not in page
    assert "url(" not in page


@pytest.mark.parametrize("name", MODULES)
def test_modules_keep_to_the_forms_that_can_be_bundled(name: str) -> None:
    text = read_static(name)
    assert len(IMPORT.findall(text)) == len(re.findall(r"^\s*import\b", text, re.MULTILINE))
    assert len(EXPORT.findall(text)) == len(re.findall(r"^\s*export\b", text, re.MULTILINE))
    assert "import(" not in text
    assert text.count("\n") <= 300
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|setAttribute\(\"style", text)


def test_a_module_stands_behind_those_it_needs() -> None:
    text = bundle_script("report.js")
    places = {name: text.index(f'modules["{name}"] = ') for name in re.findall(r'^modules\["([\w.]+)"\]', text, re.M)}
    for name, place in places.items():
        for needed in IMPORT.finditer(read_static(name)):
            assert places[needed[2]] < place


def test_a_picture_is_written_as_a_picture() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    data = base64.b64decode(encode_png(pixels).partition(",")[2])
    assert (np.asarray(Image.open(BytesIO(data))) == pixels).all()
    assert Regions(pixels, (2, 3)).to_json()["keys"] == 6


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a folder that exists"):
        save_report("", tmp_path / "nowhere" / "a.html")
