"""Write and read recordings: safetensors with JSON in the header. Nothing in them can run; sizes are checked."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from regard.algebra.shapes import Tensor
from regard.datasets.bounds import get_bound, parse_json
from regard.datasets.output_files import replace_output
from regard.errors import InputError, RegardError, wrong
from regard.inspect.recording.attention_map import AttentionMap, DenseMap
from regard.inspect.recording.difference import Difference
from regard.inspect.recording.factors import FactoredMap, Factors
from regard.inspect.recording.interruption import InterruptCheck, never_interrupt
from regard.inspect.recording.origin import OPTIONAL, Origin
from regard.inspect.recording.recording import Recording, TokenLabels, is_encodable
from regard.inspect.recording.sketch import PooledMap, Sketch

FORMAT, VERSION = "regard", 1
LONGEST = get_bound("recording", "axis")  # positions: more is a mistake or malice
HEADS = get_bound("recording", "heads")  # of a site: each head is a turn of a loop
SITES, TENSORS = get_bound("recording", "sites"), get_bound("recording", "tensors")  # of a file: each takes time
NAME = get_bound("recording", "name")  # characters
TEXT = get_bound("recording", "text share")  # part of the limit that text may be: parsed, it takes twenty times as much
VALUES = get_bound("recording", "value share")  # the same of values: an empty object, two characters, takes 64 bytes
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # where JSON may hold half a surrogate pair
DTYPES = {"F32": torch.float32, "F64": torch.float64, "I32": torch.int32, "I64": torch.int64}
FIX = "use a file that Recording.save wrote, or restore it from a copy"
Tensors = Mapping[str, Tensor]


def write_recording(recording: Recording, path: Path) -> None:
    """Write a recording; if that fails, the file stays as it was before."""
    tensors: dict[str, Tensor] = {}
    sites = []
    for number, (name, attention) in enumerate(recording.items()):
        for part, tensor in attention.tensors().items():
            tensors[f"{number}/{part}"] = tensor.cpu().contiguous().clone()  # safetensors refuses shared storage
        offset = {"offset": recording.offsets[name]} if name in recording.offsets else {}
        labels = recording.labels.get(name)
        texts = None if labels is None else {"queries": labels.queries, "keys": labels.keys}
        sites.append({"name": name, **attention.header(), "labels": texts, **offset})
    about = {"version": VERSION, "sites": sites, "metadata": recording.metadata, "notes": recording.notes}
    try:
        text = json.dumps(about, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise wrong("metadata", f"something else ({error})", "what JSON can say", "use text, numbers, lists") from None
    try:
        with replace_output(path) as written:
            save_file(tensors, written, metadata={FORMAT: text})
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise wrong("path", f"{path} ({reason})", "a file that can be written", "check the folder") from None


def read_recording(
    path: Path, limit: int, *, name: str | None = None, check_interrupt: InterruptCheck = never_interrupt
) -> Recording:
    """Read a recording. Shapes are checked from the header alone, before any tensor is read.

    `name` is what messages call the file, its path if there is none. `check_interrupt` is called between the sites
    and raises to stop.
    """
    name = name or str(path)
    if not path.is_file():
        raise wrong("recording", f"{name}, which is not a file", "a file of Recording.save", "check the path")
    size = path.stat().st_size
    if size > limit:
        raise wrong("recording", f"{name} of {size:,} bytes", f"at most {limit:,}", "load it with a larger limit")
    try:
        with safe_open(path, framework="pt") as file:
            return _build_recording(file, limit, check_interrupt)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except RegardError:
        raise  # of `check_interrupt`
    except (SafetensorError, ValueError, OverflowError, RuntimeError, OSError, MemoryError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())[:200]
        raise wrong("recording", f"{name} ({reason})", "a whole safetensors file of version 1", FIX) from None


def _build_recording(file: Any, limit: int, check_interrupt: InterruptCheck) -> Recording:
    about = _parse_header(file.metadata() or {}, limit)
    sites, names = _expect_list("sites", about.get("sites")), file.keys()
    for what, count, bound in (("sites", len(sites), SITES), ("tensors", len(names), TENSORS)):
        if count > bound:
            raise wrong(what, f"{count:,}", f"at most {bound:,}", FIX)
    check_interrupt()
    shapes = {name: _make_meta_tensor(name, file.get_slice(name)) for name in names}
    claimed: set[str] = set()
    empty = [
        _build_map(site, _SiteTensors(f"{n}/", shapes.__getitem__, shapes.keys(), claimed))
        for n, site in enumerate(sites)
    ]
    check_interrupt()
    extra = next((name for name in shapes if name not in claimed), None)
    if extra is not None:
        raise wrong("tensors", f"'{extra}', which belongs to no site", "those of the sites", FIX)
    recording = Recording(metadata=_expect_object("metadata", about.get("metadata")))
    recording.notes += [_expect_text("notes", note) for note in _expect_list("notes", about.get("notes"))]
    for number, (site, shape) in enumerate(zip(sites, empty, strict=True)):
        check_interrupt()
        if shape.heads > HEADS:
            raise wrong("heads", f"{shape.heads:,}", f"at most {HEADS:,}", FIX)
        labels = _read_labels(site, shape)
        attention = _build_map(site, _SiteTensors(f"{number}/", file.get_tensor, shapes.keys(), claimed))
        _check_values(attention)
        name = recording.add(_read_name(site), attention, _read_offset(site))
        if labels is not None:
            recording.labels[name] = labels
    return recording


def _parse_header(header: Mapping[str, str], limit: int) -> dict[str, Any]:
    """Return the JSON of a file; its size is checked before it is parsed."""
    if FORMAT not in header:
        raise wrong("header", _abbreviate(sorted(header)), f"'{FORMAT}'", FIX)
    text = header[FORMAT]
    values = sum(map(text.count, "[{,"))
    for count, unit, bound in ((len(text), "characters", limit // TEXT), (values, "values", limit // VALUES)):
        if count > bound:
            raise wrong("header", f"{count:,} {unit}", f"at most {bound:,}", "load it with a larger limit")
    about = _expect_object("header", parse_json(text))
    if SURROGATE.search(text) and not is_encodable(json.dumps(about, ensure_ascii=False)):
        raise wrong("header", "half a surrogate pair", "text that can be written", FIX)
    if about.get("version") != VERSION:
        fix = "load it with the release that wrote it"
        raise wrong("version", _abbreviate(about.get("version")), str(VERSION), fix)
    return about


def _make_meta_tensor(name: str, part: Any) -> Tensor:
    """Return a tensor of that shape and dtype without memory."""
    shape, dtype = part.get_shape(), part.get_dtype()
    if dtype not in DTYPES or not 1 <= len(shape) <= 3 or not all(1 <= size <= LONGEST for size in shape):
        raise wrong(name, f"{dtype} {shape}", f"1 … 3 axes of 1 … {LONGEST:,} of {', '.join(DTYPES)}", FIX)
    return torch.empty(shape, dtype=DTYPES[dtype], device="meta")


class _SiteTensors:
    """The tensors of one site, by their short names; remembers which were asked for."""

    def __init__(self, prefix: str, get: Callable[[str], Tensor], known: Any, claimed: set[str]) -> None:
        self.prefix, self.get, self.known, self.claimed = prefix, get, known, claimed

    def nest(self, part: str) -> "_SiteTensors":
        return _SiteTensors(f"{self.prefix}{part}/", self.get, self.known, self.claimed)

    def __contains__(self, part: str) -> bool:
        return self.prefix + part in self.known

    def __getitem__(self, part: str) -> Tensor:
        if part not in self:
            raise wrong("tensors", f"no '{self.prefix}{part}'", "all that its site needs", FIX)
        self.claimed.add(self.prefix + part)
        return self.get(self.prefix + part)

    def get_floats(self, part: str) -> Tensor:
        tensor = self[part]
        if not tensor.is_floating_point():
            raise wrong(self.prefix + part, "integers", "F32 or F64", FIX)
        return tensor


def _build_map(site: Any, tensors: _SiteTensors, depth: int = 0) -> AttentionMap:
    site = _expect_object("site", site)
    kind = site.get("kind")
    if kind == "whole":
        origin = site.get("origin")
        kept = None if origin is None else _build_origin(_expect_object("origin", origin), tensors.nest("origin"))
        return DenseMap(tensors.get_floats("weights"), kept)
    if kind == "sketch":
        return _build_sketch(site, tensors)
    if kind == "factored":
        bias = tensors.get_floats("bias") if "bias" in tensors else None
        reach = site.get("reach")
        reach = None if reach is None else _expect_integer("reach", reach)
        query, key, total = (tensors.get_floats(part) for part in ("query", "key", "total"))
        return FactoredMap(_build_sketch(site, tensors), Factors(query, key, total, bias, reach))
    if kind == "difference" and depth == 0:
        pair = (_build_map(site.get(part), tensors.nest(part), depth + 1) for part in ("first", "second"))
        return Difference(*pair)
    raise wrong("kind", _abbreviate(kind), "whole, sketch, factored or a difference of two such", FIX)


def _build_origin(origin: Mapping[str, Any], tensors: _SiteTensors) -> Origin:
    texts = {name: _expect_text(name, origin.get(name))[:NAME] for name in ("form", "score", "normalizer")}
    reach = origin.get("reach")
    parts = {name: tensors.get_floats(name) for name in OPTIONAL if name in tensors}
    query, key = (tensors.get_floats(name) for name in ("query", "key"))
    numbers: dict[str, Any] = {
        "reach": None if reach is None else _expect_integer("reach", reach),
        "stepwise": _expect_type("stepwise", origin.get("stepwise", False), bool, "true or false"),
    }
    return Origin(query, key, **numbers, **texts, **parts)  # type: ignore[arg-type]


def _build_sketch(site: Mapping[str, Any], tensors: _SiteTensors) -> Sketch:
    overview = None
    if "mean" in tensors:
        down, across = (_expect_integer("step", part) for part in (*_expect_list("step", site.get("step")), 0, 0)[:2])
        overview = PooledMap(tensors.get_floats("mean"), tensors.get_floats("peak"), (down, across))
    entropies, mass, largest = (tensors.get_floats(part) for part in ("entropy", "received", "largest"))
    return Sketch(entropies, mass, largest, tensors["places"], overview)


def _check_values(attention: AttentionMap) -> None:
    """Raise if a number is NaN or infinite, or is the index of a key that does not exist."""
    for name, tensor in attention.tensors().items():
        wild = tensor.isnan().any() or (tensor == float("inf")).any()
        if wild or (name.split("/")[-1] not in ("total", "bias") and tensor.isinf().any()):
            raise wrong(name, "NaN or infinity", "finite numbers", FIX)
        if name.endswith("places") and not bool(((tensor >= 0) & (tensor < attention.keys)).all()):
            raise wrong(name, f"{int(tensor.min())} … {int(tensor.max())}", f"keys 0 … {attention.keys - 1}", FIX)


def _read_offset(site: Mapping[str, Any]) -> int | None:
    """Return the position of the first key; 0 if the file does not say, None if it says that it is not known."""
    offset = site.get("offset", 0)
    if offset is not None and _expect_integer("offset", offset) < 0:
        raise wrong("offset", offset, f"0 … {LONGEST:,}, or null", FIX)
    return offset  # type: ignore[no-any-return]


def _read_labels(site: Mapping[str, Any], attention: AttentionMap) -> TokenLabels | None:
    given = site.get("labels")
    if given is None:
        return None
    both = _expect_object("labels", given)
    texts = ((axis, _expect_list(axis, both.get(axis))) for axis in ("queries", "keys"))
    labels = TokenLabels(*(tuple(_expect_text(axis, text) for text in all_texts) for axis, all_texts in texts))
    labels.check(_read_name(site), attention)
    return labels


def _expect_object(name: str, thing: object) -> dict[str, Any]:
    return cast(dict[str, Any], _expect_type(name, thing, dict, "a JSON object"))


def _expect_list(name: str, thing: object) -> list[Any]:
    return cast(list[Any], _expect_type(name, thing, list, "a JSON list"))


def _expect_text(name: str, thing: object) -> str:
    return cast(str, _expect_type(name, thing, str, "a JSON string"))


def _read_name(site: Mapping[str, Any]) -> str:
    name = _expect_text("name", site.get("name"))
    if len(name) > NAME:
        raise wrong("name", f"{len(name):,} characters", f"at most {NAME:,}", FIX)
    return name


def _expect_integer(name: str, thing: object) -> int:
    number = cast(int, _expect_type(name, thing, int, "a JSON integer"))
    if isinstance(number, bool) or abs(number) > LONGEST:
        raise wrong(name, _abbreviate(number), f"−{LONGEST:,} … {LONGEST:,}", FIX)
    return number


def _expect_type(name: str, thing: object, kind: type, expected: str) -> object:
    if not isinstance(thing, kind):
        raise wrong(name, _abbreviate(thing), expected, FIX)
    return thing


def _abbreviate(thing: object) -> str:
    text = repr(thing)
    return text if len(text) <= 40 else text[:39] + "…"
