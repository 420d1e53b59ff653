"""Files that are broken or mean harm: answered with one sentence, never with code, memory or another exception."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save as to_bytes
from safetensors.torch import save_file

from regard import InputError, Recording
from regard.inspect.observe.calls import SoftmaxCall
from regard.inspect.recording import FactoredMap
from tests.inspect.recording.made import make_every_kind

ONE = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write_good(folder: Path) -> bytes:
    recording = Recording(make_every_kind(), metadata={"a": [1, "看"]})
    recording.label([str(n) for n in range(5)], None)
    recording.save(folder / "good")
    return (folder / "good").read_bytes()


def loads_or_says(folder: Path, content: bytes) -> Recording | None:
    """Return the recording, or None if it was refused by a message of the one form."""
    path = folder / "file"
    path.write_bytes(content)
    try:
        recording = Recording.load(path)
    except InputError as error:
        said = str(error)
    else:
        said = ""
    if said:
        assert "\n" not in said
        assert "; fix: " in said
        return None
    for seen in recording.values():  # what is loaded can be used
        seen.downsample(size=(2, 2))
        seen.entropy()
        seen.received_weight()
    return recording


def parts(content: bytes) -> tuple[dict[str, Any], bytes]:
    (size,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def join_parts(header: dict[str, Any], body: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


@ONE
@given(cut=st.floats(0, 1, exclude_max=True))
def test_a_truncated_file_is_refused(tmp_path: Path, cut: float) -> None:
    content = write_good(tmp_path)
    assert loads_or_says(tmp_path, content[: int(cut * len(content))]) is None


@ONE
@given(flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 7)), min_size=1, max_size=4))
def test_flipped_bits_are_read_or_refused(tmp_path: Path, flips: list[tuple[float, int]]) -> None:
    content = bytearray(write_good(tmp_path))
    for place, bit in flips:
        content[int(place * len(content))] ^= 1 << bit
    loads_or_says(tmp_path, bytes(content))


@ONE
@given(content=st.binary(max_size=200))
def test_noise_is_refused(tmp_path: Path, content: bytes) -> None:
    assert loads_or_says(tmp_path, content) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@ONE
@given(
    what=st.sampled_from(["version", "sites", "metadata", "notes", "kind", "step", "reach", "labels", "name"]), to=JSON
)
def test_any_other_header_is_read_or_refused(tmp_path: Path, what: str, to: Any) -> None:
    header, body = parts(write_good(tmp_path))
    about = json.loads(header["__metadata__"]["regard"])
    for place in (about, *about["sites"], about["sites"][3]["first"]):
        if what in place:
            place[what] = to
    header["__metadata__"]["regard"] = json.dumps(about)
    loads_or_says(tmp_path, join_parts(header, body))


SIZES = st.lists(st.integers(-2, 2**62), max_size=4)


@ONE
@given(shape=SIZES, name=st.integers(0, 30), dtype=st.sampled_from(["F32", "F64", "I32", "BF16", "F4", "U64", "x"]))
def test_hostile_shapes_are_refused_before_anything_is_allocated(
    tmp_path: Path, shape: list[int], name: int, dtype: str
) -> None:
    header, body = parts(write_good(tmp_path))
    names = sorted(key for key in header if key != "__metadata__")
    own = header[names[name % len(names)]]
    own["shape"], own["dtype"] = shape, dtype
    loads_or_says(tmp_path, join_parts(header, body))


def read_refusal(folder: Path, content: bytes) -> str:
    path = folder / "file"
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        Recording.load(path)
    return str(raised.value).removeprefix(f"{path}: ")


def make_file(about: Any, **tensors: torch.Tensor) -> bytes:
    text = about if isinstance(about, str) else json.dumps({"version": 1, "metadata": {}, "notes": [], **about})
    return to_bytes(tensors, metadata={"regard": text})


def test_each_mistake_has_its_sentence(tmp_path: Path) -> None:
    fix = "; fix: use a file that Recording.save wrote, or restore it from a copy"
    site = {"name": "a", "kind": "whole", "labels": None}
    table = torch.ones(1, 2, 2)
    cases = {
        make_file(
            {"version": 2, "sites": []}
        ): "version: got 2, expected 1; fix: load it with the release that wrote it",
        to_bytes({"x": table}): f"header: got [], expected 'regard'{fix}",
        make_file({"sites": {}}): "sites: got {}, expected a JSON list" + fix,
        make_file({"sites": [site]}): f"tensors: got no '0/weights', expected all that its site needs{fix}",
        make_file({"sites": [site]}, **{"0/weights": table, "1/weights": table + 1}): (
            f"tensors: got '1/weights', which belongs to no site, expected those of the sites{fix}"
        ),
        make_file({"sites": [site]}, **{"0/weights": table * float("nan")}): (
            f"weights: got NaN or infinity, expected finite numbers{fix}"
        ),
        make_file({"sites": [{**site, "kind": "pickle"}]}, **{"0/weights": table}): (
            f"kind: got 'pickle', expected whole, sketch, factored or a difference of two such{fix}"
        ),
        make_file({"sites": [{**site, "labels": {"queries": ["a"], "keys": ["b", "c"]}}]}, **{"0/weights": table}): (
            "queries of a: got 1 labels, expected 2; fix: give one for each position"
        ),
    }
    for content, expected in cases.items():
        assert read_refusal(tmp_path, content) == expected


def test_deep_nesting_and_empty_axes_are_refused(tmp_path: Path) -> None:
    assert "expected a whole safetensors file of version 1; fix: " in read_refusal(tmp_path, make_file("[" * 100_000))
    deep: dict[str, Any] = {"name": "a", "kind": "whole"}
    for _ in range(3):
        deep = {"name": "a", "kind": "difference", "first": deep, "second": deep}
    assert read_refusal(tmp_path, make_file({"sites": [deep]})).startswith(
        "kind: got 'difference', expected whole, sketch"
    )
    empty = make_file({"sites": [{"name": "a", "kind": "whole"}]}, **{"0/weights": torch.ones(1, 0, 2**40)})
    assert read_refusal(tmp_path, empty).startswith(
        "0/weights: got F32 [1, 0, 1099511627776], expected 1 … 3 axes of 1 …"
    )


@pytest.mark.parametrize("wild", [float("inf"), float("nan")], ids=str)
@pytest.mark.parametrize("name", ["bias", "total", "query", "key", "entropy"])
def test_a_single_number_that_is_none_is_refused(tmp_path: Path, name: str, wild: float) -> None:
    """A bias or total of −inf hides a pair; +inf or NaN hides everything else."""
    recording = Recording({"a": make_every_kind()["factored"]})
    recording["a"].tensors()[name].view(-1)[1] = wild
    recording.save(tmp_path / "wild")
    assert read_refusal(tmp_path, (tmp_path / "wild").read_bytes()).startswith(f"{name}: got NaN or infinity, expected")


def test_a_bias_that_hides_a_pair_is_read(tmp_path: Path) -> None:
    recording = Recording({"a": make_every_kind()["factored"]})
    recording["a"].tensors()["bias"].view(-1)[1] = float("-inf")
    recording.save(tmp_path / "hiding")
    assert loads_or_says(tmp_path, (tmp_path / "hiding").read_bytes()) is not None


def test_a_key_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    sketch = make_every_kind()["sketch"].tensors()
    tensors = {f"0/{name}": tensor for name, tensor in sketch.items()} | {"0/places": sketch["places"] + 6}
    site = {"name": "a", "kind": "sketch", "step": [2, 3]}
    assert read_refusal(tmp_path, make_file({"sites": [site]}, **tensors)).startswith("places: got ")


@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
@pytest.mark.parametrize("part", ["bias", "total", "query", "received"])
def test_a_single_number_of_a_file_that_is_none_is_refused(tmp_path: Path, part: str, bad: float) -> None:
    def change(tensors: dict[str, torch.Tensor]) -> None:
        tensors[f"0/{part}"].view(-1)[3] = bad

    path = tmp_path / "recording"
    Recording({"site": make_biased()}).save(path)
    assert Recording.load(path)["site"].shape == (2, 3, 5)  # what a bias hides with −inf is no mistake
    rewrite(path, change)
    with pytest.raises(InputError, match=rf"{part}: got NaN or infinity, expected finite numbers; fix: "):
        Recording.load(path)


def make_biased() -> FactoredMap:
    """Return factors with a bias that hides one key from one query."""
    bias = torch.zeros(1, 3, 5)
    bias[0, 1, 2] = float("-inf")
    return SoftmaxCall(torch.randn(2, 3, 4), torch.randn(2, 5, 4), bias).to_factored(2)


def rewrite(path: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    """Write the same file with other numbers in it."""
    with safe_open(path, framework="pt") as file:
        header, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    change(tensors)
    save_file(tensors, path, metadata=header)


@pytest.mark.parametrize("offset", [-1, 2**30, "3", 1.5, True])
def test_an_offset_that_is_none_is_refused(tmp_path: Path, offset: Any) -> None:
    recording = Recording()
    recording.add("site", make_biased(), 3)
    recording.offsets["site"] = offset
    recording.save(tmp_path / "recording")
    with pytest.raises(InputError, match=r"offset: got .*; fix: "):
        Recording.load(tmp_path / "recording")


def test_what_is_no_file_and_what_is_too_large(tmp_path: Path) -> None:
    content = write_good(tmp_path)
    with pytest.raises(InputError, match=r"^recording: got .*, which is not a file, expected a file of Recording.save"):
        Recording.load(tmp_path)
    with pytest.raises(InputError, match=rf"^recording: got .* of {len(content):,} bytes, expected at most 10; fix: "):
        Recording.load(tmp_path / "good", limit=10)


def test_text_tensors_and_heads_have_their_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wordy = make_file({"sites": [], "metadata": {"a": [[]] * 30_000}})
    path = tmp_path / "file"
    path.write_bytes(wordy)
    with pytest.raises(InputError, match=r"header: got 12\d,\d{3} characters, expected at most 31,250; fix: load"):
        Recording.load(path, limit=125_000)
    assert len(Recording.load(path)) == 0
    monkeypatch.setattr("regard.inspect.recording.file.TENSORS", 2)
    many = make_file({"sites": []}, **{str(number): torch.ones(1) for number in range(3)})
    assert read_refusal(tmp_path, many).startswith("tensors: got 3, expected at most 2; fix: ")
    heads = make_file({"sites": [{"name": "a", "kind": "whole"}]}, **{"0/weights": torch.ones(2**12 + 1, 1, 1)})
    assert read_refusal(tmp_path, heads).startswith("heads: got 4,097, expected at most 4,096; fix: ")
