"""Recordings in files: safetensors with JSON in the header. Nothing in them can run, and sizes are checked first."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from regard.bounds import most, parse_json
from regard.errors import InputError, RegardError, wrong
from regard.recording.difference import Difference
from regard.recording.factored import Factored, Factors
from regard.recording.recording import Labels, Recording
from regard.recording.seen import Between, Seen, Whole, unhurried
from regard.recording.sketch import Overview, Sketch
from regard.shapes import Tensor

FORMAT, VERSION = "regard", 1
LONGEST = most("recording", "axis")  # positions: more is a mistake or malice
HEADS = most("recording", "heads")  # of a site: each head is a turn of a loop
SITES, TENSORS = most("recording", "sites"), most("recording", "tensors")  # of a file: each has its price
NAME = most("recording", "name")  # characters
TEXT = most("recording", "text share")  # its part of the limit, at most: JSON takes twenty times its length
VALUES = most("recording", "value share")  # the same of its values: an empty object of two characters takes 64 bytes
HALVES = re.compile(r"\\u[dD][89a-fA-F]")  # where JSON may hold half a surrogate pair
DTYPES = {"F32": torch.float32, "F64": torch.float64, "I32": torch.int32, "I64": torch.int64}
OURS = "use a file that Recording.save wrote, or restore it from a copy"
Tensors = Mapping[str, Tensor]


def write(recording: Recording, path: Path) -> None:
    """Write all of it, so that the file is whole or as it was before."""
    tensors: dict[str, Tensor] = {}
    sites = []
    for number, (name, seen) in enumerate(recording.items()):
        own = {f"{number}/{part}": tensor.cpu().contiguous() for part, tensor in seen.tensors().items()}
        tensors |= {part: tensor.clone() for part, tensor in own.items()}  # safetensors refuses shared storage
        place = {"offset": recording.offsets[name]} if name in recording.offsets else {}
        sites.append({"name": name, **seen.facts(), "labels": _written(recording.labels.get(name)), **place})
    about = {"version": VERSION, "sites": sites, "metadata": recording.metadata, "notes": recording.notes}
    try:
        text = json.dumps(about, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
    except (TypeError, ValueError, RecursionError) as error:
        raise wrong("metadata", f"something else ({error})", "what JSON can say", "use text, numbers, lists") from None
    temporary = path.with_name(f".{path.name}.writing")
    try:
        save_file(tensors, temporary, metadata={FORMAT: text})
        temporary.replace(path)
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None) or error
        raise wrong("path", f"{path} ({reason})", "a file that can be written", "check the folder") from None
    finally:
        temporary.unlink(missing_ok=True)


def read(path: Path, limit: int, *, name: str | None = None, between: Between = unhurried) -> Recording:
    """Read it. Shapes are checked on the header alone, before any tensor is.

    `name` is what messages call the file, its path if there is none. `between` is called between the sites: whoever
    cannot wait for ever raises there.
    """
    name = name or str(path)
    if not path.is_file():
        raise wrong("recording", f"{name}, which is no file", "a file of Recording.save", "check the path")
    size = path.stat().st_size
    if size > limit:
        raise wrong("recording", f"{name} of {size:,} bytes", f"at most {limit:,}", "load it with a larger limit")
    try:
        with safe_open(path, framework="pt") as file:
            return _recording(file, limit, between)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    except RegardError:
        raise  # of `between`
    except (SafetensorError, ValueError, OverflowError, RuntimeError, OSError, MemoryError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())[:200]
        raise wrong("recording", f"{name} ({reason})", "a whole safetensors file of version 1", OURS) from None


def _recording(file: Any, limit: int, between: Between) -> Recording:
    about = _about(file.metadata() or {}, limit)
    sites, names = _list("sites", about.get("sites")), file.keys()
    for what, count, bound in (("sites", len(sites), SITES), ("tensors", len(names), TENSORS)):
        if count > bound:
            raise wrong(what, f"{count:,}", f"at most {bound:,}", OURS)
    between()
    shapes = {name: _shape(name, file.get_slice(name)) for name in names}
    claimed: set[str] = set()
    empty = [_seen(site, _Picked(f"{n}/", shapes.__getitem__, shapes.keys(), claimed)) for n, site in enumerate(sites)]
    between()
    extra = next((name for name in shapes if name not in claimed), None)
    if extra is not None:
        raise wrong("tensors", f"'{extra}', which belongs to no site", "those of the sites", OURS)
    recording = Recording(metadata=_mapping("metadata", about.get("metadata")))
    recording.notes += [_text("notes", note) for note in _list("notes", about.get("notes"))]
    for number, (site, shape) in enumerate(zip(sites, empty, strict=True)):
        between()
        if shape.heads > HEADS:
            raise wrong("heads", f"{shape.heads:,}", f"at most {HEADS:,}", OURS)
        labels = _labels(site, shape)
        seen = _seen(site, _Picked(f"{number}/", file.get_tensor, shapes.keys(), claimed))
        _check_values(seen)
        kept = recording.add(_name(site), seen, _offset(site))
        if labels is not None:
            recording.labels[kept] = labels
    return recording


def _about(header: Mapping[str, str], limit: int) -> dict[str, Any]:
    """The text of a file, which is measured before it is read."""
    if FORMAT not in header:
        raise wrong("header", _brief(sorted(header)), f"'{FORMAT}'", OURS)
    text = header[FORMAT]
    values = sum(map(text.count, "[{,"))
    for count, unit, bound in ((len(text), "characters", limit // TEXT), (values, "values", limit // VALUES)):
        if count > bound:
            raise wrong("header", f"{count:,} {unit}", f"at most {bound:,}", "load it with a larger limit")
    about = _mapping("header", parse_json(text))
    if HALVES.search(text) and not _is_text(json.dumps(about, ensure_ascii=False)):
        raise wrong("header", "half a surrogate pair", "text that can be written", OURS)
    if about.get("version") != VERSION:
        fix = "load it with the release that wrote it"
        raise wrong("version", _brief(about.get("version")), str(VERSION), fix)
    return about


def _shape(name: str, part: Any) -> Tensor:
    """A tensor of that shape and dtype without memory."""
    shape, dtype = part.get_shape(), part.get_dtype()
    if dtype not in DTYPES or not 1 <= len(shape) <= 3 or not all(1 <= size <= LONGEST for size in shape):
        raise wrong(name, f"{dtype} {shape}", f"1 … 3 axes of 1 … {LONGEST:,} of {', '.join(DTYPES)}", OURS)
    return torch.empty(shape, dtype=DTYPES[dtype], device="meta")


class _Picked:
    """The tensors of one site, by their short names; remembers which were asked for."""

    def __init__(self, prefix: str, get: Callable[[str], Tensor], known: Any, claimed: set[str]) -> None:
        self.prefix, self.get, self.known, self.claimed = prefix, get, known, claimed

    def under(self, part: str) -> "_Picked":
        return _Picked(f"{self.prefix}{part}/", self.get, self.known, self.claimed)

    def __contains__(self, part: str) -> bool:
        return self.prefix + part in self.known

    def __getitem__(self, part: str) -> Tensor:
        if part not in self:
            raise wrong("tensors", f"no '{self.prefix}{part}'", "all that its site needs", OURS)
        self.claimed.add(self.prefix + part)
        return self.get(self.prefix + part)

    def number(self, part: str) -> Tensor:
        tensor = self[part]
        if not tensor.is_floating_point():
            raise wrong(self.prefix + part, "integers", "F32 or F64", OURS)
        return tensor


def _seen(site: Any, tensors: _Picked, depth: int = 0) -> Seen:
    site = _mapping("site", site)
    kind = site.get("kind")
    if kind == "whole":
        return Whole(tensors.number("weights"))
    if kind == "sketch":
        return _sketch(site, tensors)
    if kind == "factored":
        bias = tensors.number("bias") if "bias" in tensors else None
        reach = site.get("reach")
        reach = None if reach is None else _integer("reach", reach)
        factors = Factors(tensors.number("query"), tensors.number("key"), tensors.number("total"), bias, reach)
        return Factored(_sketch(site, tensors), factors)
    if kind == "difference" and depth == 0:
        pair = (_seen(site.get(part), tensors.under(part), depth + 1) for part in ("first", "second"))
        return Difference(*pair)
    raise wrong("kind", _brief(kind), "whole, sketch, factored or a difference of two such", OURS)


def _sketch(site: Mapping[str, Any], tensors: _Picked) -> Sketch:
    overview = None
    if "mean" in tensors:
        down, across = (_integer("step", part) for part in (*_list("step", site.get("step")), 0, 0)[:2])
        overview = Overview(tensors.number("mean"), tensors.number("peak"), (down, across))
    spread, mass, largest = (tensors.number(part) for part in ("entropy", "received", "largest"))
    return Sketch(spread, mass, largest, tensors["places"], overview)


def _check_values(seen: Seen) -> None:
    """Raise where a number would lead a reader astray: one that is none, or a key that does not exist."""
    for name, tensor in seen.tensors().items():
        wild = tensor.isnan().any() or (tensor == float("inf")).any()
        if wild or (name not in ("total", "bias") and tensor.isinf().any()):
            raise wrong(name, "NaN or infinity", "finite numbers", OURS)
        if name.endswith("places") and not bool(((tensor >= 0) & (tensor < seen.keys)).all()):
            raise wrong(name, f"{int(tensor.min())} … {int(tensor.max())}", f"keys 0 … {seen.keys - 1}", OURS)


def _offset(site: Mapping[str, Any]) -> int | None:
    """Return the position of the first key; 0 if the file does not say, None if it says that it is not known."""
    offset = site.get("offset", 0)
    if offset is not None and _integer("offset", offset) < 0:
        raise wrong("offset", offset, f"0 … {LONGEST:,}, or null", OURS)
    return offset  # type: ignore[no-any-return]


def _labels(site: Mapping[str, Any], seen: Seen) -> Labels | None:
    given = site.get("labels")
    if given is None:
        return None
    both = _mapping("labels", given)
    labels = Labels(*(tuple(_text(a, t) for t in _list(a, both.get(a))) for a in ("queries", "keys")))
    labels.check(_name(site), seen)
    return labels


def _written(labels: Labels | None) -> Any:
    return None if labels is None else {"queries": labels.queries, "keys": labels.keys}


def _mapping(name: str, thing: object) -> dict[str, Any]:
    return cast(dict[str, Any], _kind(name, thing, dict, "a JSON object"))


def _list(name: str, thing: object) -> list[Any]:
    return cast(list[Any], _kind(name, thing, list, "a JSON list"))


def _text(name: str, thing: object) -> str:
    return cast(str, _kind(name, thing, str, "a JSON string"))


def _name(site: Mapping[str, Any]) -> str:
    name = _text("name", site.get("name"))
    if len(name) > NAME:
        raise wrong("name", f"{len(name):,} characters", f"at most {NAME:,}", OURS)
    return name


def _is_text(text: str) -> bool:
    """Whether it can be written: half a surrogate pair cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _integer(name: str, thing: object) -> int:
    number = cast(int, _kind(name, thing, int, "a JSON integer"))
    if isinstance(number, bool) or abs(number) > LONGEST:
        raise wrong(name, _brief(number), f"−{LONGEST:,} … {LONGEST:,}", OURS)
    return number


def _kind(name: str, thing: object, kind: type, expected: str) -> object:
    if not isinstance(thing, kind):
        raise wrong(name, _brief(thing), expected, OURS)
    return thing


def _brief(thing: object) -> str:
    text = repr(thing)
    return text if len(text) <= 40 else text[:39] + "…"
