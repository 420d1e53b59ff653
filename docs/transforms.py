"""Write docs/transforms.md: which transform of torch works with which part, found by running every pair of them.

Compiling everything takes hours: `--only ROW` runs one part, and those that the page lacks, and keeps its other rows;
`--results FILE` remembers outcomes and continues from there. `--transform NAME` prints its outcomes, and writes their
cells if they are remembered. tests/contracts/test_transforms.py runs the fast transforms.
"""

import argparse
import contextlib
import copy
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from regard import Capped, Dot, Gaussian, ScaledDot, Softmax, attend
from regard.algebra import catalog
from regard.algebra.catalog import Sizes
from regard.compute.verification import find_worst, measure_difference, prepare_tensors
from regard.errors import RegardError
from regard.layers import Memory

TARGET = Path(__file__).parent / "transforms.md"
SIZES = Sizes(query=4, key=4, value=3, lead=(2, 3), queries=5, keys=7)
SEED = 2  # of every random aggregate
VALUE, GRADIENT, SECOND = 1e-9, 1e-7, 1e-5  # float64; second derivatives are compared with differences of gradients
FLOAT, HALF = 1e-4, 5e-2  # under autocast, in float32 and in bfloat16
NOISE = 1e-5  # Inductor's logarithm of float32 differs in the last digit, and the noise is of float32
SEQUENTIAL = ("monotonic", "hard-monotonic", "chunkwise")  # a graph has all their rows, one after the other
STRAIGHT = ("argmax", "gumbel-straight")  # their gradient is that of another function, by intention

Options = dict[str, Any]


class Row(NamedTuple):
    """One part of the catalog, or parts that are built at each call."""

    family: str
    name: str
    build: Callable[[Sizes], Options]
    inline: bool = False

    def __str__(self) -> str:
        return f"{self.family}: {self.name}"


class LastCall:
    """The backend of the last call. Not kept in a module: export undoes what is written there."""

    backend = ""


last = LastCall()


class Outcome(NamedTuple):
    """What became of one transform: the backend that computed it right, or what went wrong."""

    backend: str = ""
    refused: str = ""
    defect: str = ""
    note: str = ""


def _build_row(family: str, name: str, make: Callable[..., object]) -> Row:
    return Row(family, name, lambda sizes: {family: make(sizes)})


INLINE: Mapping[str, Callable[[Sizes], Options]] = {
    "2.0 * ScaledDot()": lambda _: {"score": 2.0 * ScaledDot()},
    "Dot() + Gaussian()": lambda _: {"score": Dot() + Gaussian()},
    "Capped(Dot(), cap=5.0)": lambda _: {"score": Capped(Dot(), cap=5.0)},
    "Softmax(0.5)": lambda _: {"normalizer": Softmax(0.5)},
    "Memory(key, value)": lambda _: {},  # see AttendModule.forward
}

ROWS: tuple[Row, ...] = (
    *(_build_row(family, name, make) for family, made in catalog.FAMILIES.items() for name, make in made.items()),
    *(Row("built inline", name, build, inline=True) for name, build in INLINE.items()),
)


class AttendModule(nn.Module):
    """A part in a module, as a model has it, or built at each call."""

    def __init__(self, row: Row, sizes: Sizes = SIZES, *, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        torch.default_generator.manual_seed(0)
        self.row, self.backend = row, "auto"
        options = {} if row.inline else row.build(sizes)
        self.parts = nn.ModuleList([part for part in options.values() if isinstance(part, nn.Module)])
        self.loose = {name: part for name, part in options.items() if not isinstance(part, nn.Module)}
        self.names = [name for name, part in options.items() if isinstance(part, nn.Module)]
        if dtype != torch.get_default_dtype():  # torch cannot move a module under FakeTensorMode
            self.to(dtype)
        for part in self.parts:
            prepare_tensors(part, dtype)

    def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        options = dict(self.loose)
        for name, part in zip(self.names, self.parts, strict=True):
            options[name] = part
        if self.row.inline:
            options = self.row.build(SIZES)
        if self.row.name == "Memory(key, value)":
            memory = Memory(key, value)
            key, value = memory.key, memory.value
        attended = attend(query, key, value, backend=self.backend, **options)  # type: ignore[arg-type]
        last.backend = attended.plan.backend
        return attended.output

    def copy_as_definition(self) -> "AttendModule":
        """Return the same module, computed by its definition."""
        other = copy.copy(self)
        other.backend = "eager"
        return other


def draw(
    sizes: Sizes, *, dtype: torch.dtype = torch.float64, seed: int = 1, many: tuple[int, ...] = ()
) -> list[Tensor]:
    """Return random queries, keys and values."""
    generator = torch.Generator().manual_seed(seed)
    shapes = (sizes.queries, sizes.query), (sizes.keys, sizes.key), (sizes.keys, sizes.value)
    made = [torch.randn(*many, *sizes.lead, *shape, generator=generator, dtype=torch.float64) for shape in shapes]
    return [tensor.to(dtype) for tensor in made]


def run_seeded(run: Callable[..., Any], *given: Any) -> Any:
    """Call `run` with the random numbers at their start."""
    torch.default_generator.manual_seed(SEED)
    return run(*given)


def weigh(output: Tensor) -> Tensor:
    """Return a fixed mixture of all numbers: the scalar that is differentiated."""
    mixture = torch.linspace(-1.0, 1.0, output.numel(), dtype=output.dtype, device=output.device)
    return (output * mixture.reshape(output.shape)).sum()


def compute_values_and_gradients(
    run: Callable[..., Tensor], tensors: Iterable[Tensor], learned: Iterable[Tensor]
) -> list[Any]:
    """Return the output, and the gradient to each tensor."""
    tensors = [tensor.detach().requires_grad_() for tensor in tensors]
    output = run_seeded(run, *tensors)
    wanted = [*tensors, *learned]
    return [output, *torch.autograd.grad(weigh(output), wanted, allow_unused=True)]


def find_worst_difference(found: Iterable[Tensor | None], true: Iterable[Tensor | None]) -> float:
    """Return the largest difference of two lists of tensors."""
    return find_worst(measure_difference(a, b) for a, b in zip(found, true, strict=True))


def judge(errors: Mapping[str, tuple[float, float]]) -> Outcome:
    """Return the backend of the last call if every error is within its bound, else the errors."""
    wrong = [f"{name}: error {error:.1e}" for name, (error, bound) in errors.items() if not error <= bound]
    return Outcome(defect="; ".join(wrong)) if wrong else Outcome(backend=last.backend)


def compare(module: AttendModule, run: Callable[..., Tensor], tensors: list[Tensor], room: float = 0.0) -> Outcome:
    """Compare value and gradients of `run` with the definition; `room` is for noise in float32."""
    true = compute_values_and_gradients(module.copy_as_definition(), tensors, module.parameters())
    found = compute_values_and_gradients(run, tensors, module.parameters())
    value, gradient = (
        (find_worst_difference(found[:1], true[:1]), VALUE + room),
        (find_worst_difference(found[1:], true[1:]), GRADIENT + room),
    )
    return judge({"value": value, "gradient": gradient})


def check_eager(row: Row) -> Outcome:
    """Check a plain call."""
    module = AttendModule(row)
    return compare(module, module, draw(SIZES))


def check_vmap(row: Row) -> Outcome:
    """Check vmap over all tensors, over queries alone, and over a gradient."""
    module, many = AttendModule(row), draw(SIZES, many=(3,))
    defined, alone = module.copy_as_definition(), [many[0], many[1][0], many[2][0]]
    learned = torch.func.grad(lambda *tensors: weigh(module(*tensors)), (0, 1, 2))

    def true(*tensors: Tensor) -> list[Tensor]:
        return compute_values_and_gradients(defined, [*tensors], ())

    singles = [true(*(tensor[i] for tensor in many)) for i in range(3)]
    shared = torch.stack([run_seeded(defined, query, *alone[1:]) for query in many[0]])
    with torch.no_grad():
        both = run_seeded(torch.func.vmap(module, randomness="same"), *many)
        queries = run_seeded(torch.func.vmap(module, (0, None, None), randomness="same"), *alone)
    slopes = run_seeded(torch.func.vmap(learned, randomness="same"), *many)
    wanted = [torch.stack([_fill_zeros(s[i + 1], many[i][0]) for s in singles]) for i in range(3)]
    return judge(
        {
            "value": (find_worst_difference([both], [torch.stack([single[0] for single in singles])]), VALUE),
            "value of mapped queries": (find_worst_difference([queries], [shared]), VALUE),
            "gradient": (find_worst_difference(slopes, wanted), GRADIENT),
        },
    )


def _fill_zeros(gradient: Tensor | None, like: Tensor) -> Tensor:
    return torch.zeros_like(like) if gradient is None else gradient


def check_grad(row: Row) -> Outcome:
    """Check torch.func.grad to the tensors and to the parameters, and torch.func.jvp along a direction."""
    module, tensors = AttendModule(row), draw(SIZES)
    parameters = {name: parameter.detach() for name, parameter in module.named_parameters()}

    def loss(own: dict[str, Tensor], *given: Tensor) -> Tensor:
        return weigh(torch.func.functional_call(module, own, given))

    true = compute_values_and_gradients(module.copy_as_definition(), tensors, module.parameters())
    slopes, *rest = run_seeded(torch.func.grad(loss, (0, 1, 2, 3)), parameters, *tensors)
    found = [*rest, *slopes.values()]
    errors = {"gradient": (find_worst_difference(found, true[1:]), GRADIENT)}
    if row.name not in STRAIGHT:
        along = draw(SIZES, seed=4)
        with torch.no_grad():
            _, slope = run_seeded(lambda: torch.func.jvp(lambda *t: weigh(module(*t)), tuple(tensors), tuple(along)))
        wanted = sum((g * a).sum() for g, a in zip(true[1:4], along, strict=True) if g is not None)
        errors["forward mode"] = (measure_difference(slope, torch.as_tensor(wanted, dtype=slope.dtype)), GRADIENT)
    return judge(errors)


def check_second(row: Row) -> Outcome:
    """Compare the second derivative times a vector with a difference of gradients."""
    module, tensors = AttendModule(row), draw(SIZES)
    along = draw(SIZES, seed=4)
    errors = {}
    if row.name not in STRAIGHT:
        hessian = run_seeded(_hessian(lambda query: weigh(module(query, *tensors[1:]))), tensors[0])
        alone = [along[0], torch.zeros_like(along[1]), torch.zeros_like(along[2])]
        product = torch.tensordot(hessian, along[0], along[0].dim())
        errors["torch.func.hessian"] = (
            find_worst_difference(
                [product], _differentiate_numerically(module.copy_as_definition(), tensors, alone)[:1]
            ),
            SECOND,
        )
    true = (_compute_second_derivative if row.name in STRAIGHT else _differentiate_numerically)(
        module.copy_as_definition(), tensors, along
    )
    errors["product"] = (find_worst_difference(_compute_second_derivative(module, tensors, along), true), SECOND)
    return judge(errors)


def _differentiate_numerically(
    module: AttendModule, tensors: list[Tensor], along: list[Tensor], step: float = 1e-5
) -> list[Tensor]:
    """Return the change of the gradients along a direction, from gradients one step ahead and one behind."""
    ahead, behind = (
        _compute_gradients(module, [t + sign * step * a for t, a in zip(tensors, along, strict=True)])
        for sign in (1, -1)
    )
    return [(a - b) / (2 * step) for a, b in zip(ahead, behind, strict=True)]


def _hessian(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """Return torch.func.hessian with calls that draw the same random numbers."""
    return torch.func.jacfwd(torch.func.jacrev(function), randomness="same")


def _compute_gradients(module: AttendModule, tensors: list[Tensor]) -> list[Tensor]:
    made = compute_values_and_gradients(module, tensors, ())[1:]
    return [_fill_zeros(gradient, tensor) for gradient, tensor in zip(made, tensors, strict=True)]


def _compute_second_derivative(module: AttendModule, tensors: list[Tensor], along: list[Tensor]) -> list[Tensor]:
    own = [tensor.detach().requires_grad_() for tensor in tensors]
    first = torch.autograd.grad(weigh(run_seeded(module, *own)), own, create_graph=True, allow_unused=True)
    product = sum((g * a).sum() for g, a in zip(first, along, strict=True) if g is not None)
    if not isinstance(product, Tensor) or not product.requires_grad:
        return [torch.zeros_like(tensor) for tensor in own]
    made = torch.autograd.grad(product, own, allow_unused=True)
    return [_fill_zeros(gradient, tensor) for gradient, tensor in zip(made, own, strict=True)]


def check_autocast(row: Row) -> Outcome:
    """Check float32 tensors under bfloat16 autocast, and a query that a linear layer has made bfloat16."""
    module, exact = AttendModule(row, dtype=torch.float32), AttendModule(row)
    exact.load_state_dict({name: tensor.double() for name, tensor in module.state_dict().items()})
    tensors = draw(SIZES, dtype=torch.float32)
    true = compute_values_and_gradients(exact.copy_as_definition(), [t.double() for t in tensors], exact.parameters())

    def run(*given: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            output: Tensor = module(*given)
            return output

    found = compute_values_and_gradients(run, tensors, module.parameters())
    errors = {
        "value": (find_worst_difference(found[:1], true[:1]), FLOAT),
        "gradient": (find_worst_difference(found[1:], true[1:]), 10 * FLOAT),
    }
    rounded = [tensor.bfloat16() for tensor in tensors]
    wanted = run_seeded(exact.copy_as_definition(), *(tensor.double() for tensor in rounded))
    with torch.autocast("cpu", torch.bfloat16):
        half = run_seeded(module, rounded[0], tensors[1], tensors[2])
    errors["value in bfloat16"] = (find_worst_difference([half], [wanted]), HALF)
    if half.dtype != torch.bfloat16:
        return Outcome(defect=f"{half.dtype} for a query in bfloat16")
    return judge(errors)


def check_fake(row: Row) -> Outcome:
    """Check shapes and dtypes under FakeTensorMode, with parts made inside and outside of it."""
    outside, tensors = AttendModule(row, dtype=torch.float32), draw(SIZES, dtype=torch.float32)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        inside = AttendModule(row, dtype=torch.float32)
        fake = [mode.from_tensor(tensor) for tensor in tensors]
        for module in (outside, inside):
            found = compute_values_and_gradients(module, fake, module.parameters())
            if not all(gradient is None or isinstance(gradient, FakeTensor) for gradient in found):
                return Outcome(defect="a tensor that is not fake")
            if found[0].shape != (*SIZES.lead, SIZES.queries, SIZES.value) or found[0].dtype != torch.float32:
                return Outcome(defect=f"{found[0].shape} {found[0].dtype}")
    return Outcome(backend=last.backend)


def check_meta(row: Row) -> Outcome:
    """Check shapes and dtypes on the meta device; forward and backward."""
    with torch.device("meta"):
        module = AttendModule(row)
        tensors = [tensor.to("meta") for tensor in draw_on_cpu()]
        found = compute_values_and_gradients(module, tensors, module.parameters())
    if found[0].shape != (*SIZES.lead, SIZES.queries, SIZES.value) or not found[0].is_meta:
        return Outcome(defect=f"{found[0].shape} on {found[0].device}")
    return Outcome(backend=last.backend)


def draw_on_cpu() -> list[Tensor]:
    """Return tensors from a generator of the CPU, whatever the device of new tensors is."""
    with torch.device("cpu"):
        return draw(SIZES)


def check_inference(row: Row) -> Outcome:
    """Check the value in inference mode, of tensors made outside and inside of it."""
    module, tensors = AttendModule(row), draw(SIZES)
    true = run_seeded(module.copy_as_definition(), *tensors)
    with torch.inference_mode():
        found, own = run_seeded(module, *tensors), run_seeded(module, *draw(SIZES))
    return judge(
        {
            "value": (find_worst_difference([found], [true]), VALUE),
            "value of its own": (find_worst_difference([own], [true]), VALUE),
        }
    )


def check_compile(row: Row, backend: str = "inductor") -> Outcome:
    """Check torch.compile by Inductor: one graph, value and gradients at two sizes of it."""
    from torch._dynamo.utils import counters
    from torch._inductor import config

    torch.compiler.reset()
    counters.clear()
    module, outcome = AttendModule(row), Outcome()
    with config.patch(fallback_random=True):  # the random numbers that torch itself would draw
        compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=backend)
        for sizes in list(find_valid_sizes(module))[:2]:
            outcome = compare(module, compiled, draw(sizes), NOISE if row.family == "aggregate" else 0.0)
            if outcome.defect:
                return outcome
    graphs = counters["stats"]["unique_graphs"]
    if graphs == 1:
        return outcome
    if row.name in SEQUENTIAL:
        return outcome._replace(note="¹")
    return Outcome(defect=f"{graphs} graphs for two sizes")


def check_traced(row: Row) -> Outcome:
    """Check the graph without Inductor, which takes a third of the time."""
    return check_compile(row, "aot_eager")


def find_valid_sizes(module: AttendModule) -> Iterator[Sizes]:
    """Yield the sizes that the parts of the module accept: some hold a number for each query or key."""
    longer = SIZES._replace(queries=6, keys=11)
    for sizes in (SIZES, longer, SIZES._replace(queries=6), SIZES._replace(lead=(4, 3))):
        with contextlib.suppress(RegardError):
            module(*draw(sizes))
            yield sizes


def check_export(row: Row) -> Outcome:
    """Check the value of torch.export."""
    module, tensors = AttendModule(row), draw(SIZES)
    with torch.no_grad():
        true = run_seeded(module.copy_as_definition(), *tensors)
        program = torch.export.export(module, tuple(draw(SIZES, seed=5)))
        found = run_seeded(program.module(), *tensors)
    return judge({"value": (find_worst_difference([found], [true]), VALUE)})


Check = Callable[[Row], Outcome]
CHEAP: Mapping[str, Check] = {
    "eager": check_eager,
    "vmap": check_vmap,
    "grad": check_grad,
    "second derivative": check_second,
    "autocast": check_autocast,
    "FakeTensor": check_fake,
    "meta": check_meta,
    "inference mode": check_inference,
}
SLOW: Mapping[str, Check] = {"compile": check_compile, "export": check_export}
CHECKS: Mapping[str, Check] = {**CHEAP, **SLOW, "traced": check_traced}
COLUMNS = ("eager", *SLOW, *(name for name in CHEAP if name != "eager"))
NOT_RUN = "not run"
DEFAULTS = ("score: scaled-dot", "bias: none", "mask: full", "normalizer: softmax", "aggregate: soft")  # one call


def run_check(name: str, row: Row) -> Outcome:
    """Run one check. An error of our own is a refusal, any other exception a defect."""
    try:
        return CHECKS[name](row)
    except RegardError as error:
        return Outcome(refused=str(error))
    except Exception as error:
        return Outcome(defect=f"{type(error).__name__}: {str(error).strip() or 'nothing said'}")


def format_cell(plain: Outcome, found: Outcome) -> str:
    """Return ✓ if it runs on the backend of a plain call, else the name of its backend."""
    if found.defect:
        raise RuntimeError(found.defect)
    if found.refused:
        return "refused"
    # `few_queries` runs only if the compiled library is there, which differs between machines.
    return ("✓" if found.backend in (plain.backend, "few_queries") else found.backend) + found.note


HEAD = """# Transforms

Generated by `python docs/transforms.py`, which runs every transform of torch with every part and compares it with the
definition in float64; do not edit. The other parts of a call are the defaults, the backend is `auto`. *eager* names the
backend of a plain call; elsewhere ✓ means right and on the same backend, a name means right and on that backend (the
plan says why), and *refused* that an error of ours says what to do. If the compiled library is there, calls without a
gradient may run on `few_queries` instead.

- **eager**: value and gradients to queries, keys, values and parameters.
- **compile**: `torch.compile(fullgraph=True, dynamic=True)` with Inductor; value and gradients, two sizes, one graph
  (¹ one for each size: rows follow from one another, and the graph has all of them).
- **export**: `torch.export`; value.
- **vmap**: over all tensors, over queries alone, over `grad`. Random aggregates need `randomness=`, and say so.
- **grad**: `torch.func.grad` to tensors and parameters, and `jvp`, forward mode.
- **second derivative**: `backward` twice, and `torch.func.hessian`.
- **autocast**: bfloat16 on the CPU; it computes in the dtype of the query.
- **FakeTensor**, **meta**: shapes and dtypes, forward and backward. **inference mode**: value.
"""


def format_row(row: Row, own: Mapping[str, Outcome], known: str) -> str:
    """Return the line of the table for one part; cells that were not run stay as they are in the known line."""
    before = known.removesuffix(" |").split(" | ")[1:] or [NOT_RUN] * len(COLUMNS)
    plain = own.get("eager", Outcome(backend=before[0]))
    found = {name: plain.backend if name == "eager" else format_cell(plain, own[name]) for name in own}
    cells = [found.get(name, cell) for name, cell in zip(COLUMNS, before, strict=True)]
    return f"| {format_name(row)} | {' | '.join(cells)} |"


def format_name(row: Row) -> str:
    """Return the first cell of a row."""
    return f"`{row.name.replace('|', chr(92) + '|')}`"


def build_page(found: Mapping[str, Mapping[str, Outcome]]) -> str:
    """Return the whole document, a table for each family. Cells that were not run stay as they are in the document."""
    before = TARGET.read_text(encoding="utf-8").split("\n## ")
    lines = [HEAD]
    for family in dict.fromkeys(row.family for row in ROWS):
        lines += [f"## {family}", "", f"| | {' | '.join(COLUMNS)} |", "|---" * (len(COLUMNS) + 1) + "|"]
        known = next((part.splitlines() for part in before if part.startswith(f"{family}\n")), [])
        for row in (row for row in ROWS if row.family == family):
            line = next((line for line in known if line.startswith(f"| {format_name(row)} |")), "")
            lines.append(format_row(row, found.get(str(row), {}), line))
        lines.append("")
    return "\n".join(lines)


def run_checks(rows: Iterable[Row], names: Iterable[str], keep: Path | None) -> dict[str, dict[str, Outcome]]:
    """Return all outcomes, kept ones included. Default parts make the same call and are compiled once."""
    kept = json.loads(keep.read_text(encoding="utf-8")) if keep is not None and keep.exists() else {}
    found = {row: {name: Outcome(*outcome) for name, outcome in own.items()} for row, own in kept.items()}
    for name in names:
        for row in rows:
            same = str(row) if name in CHEAP or str(row) not in DEFAULTS else DEFAULTS[0]
            known = found.get(same, {}).get(name)
            outcome = known if known is not None and not known.defect else run_check(name, row)
            found.setdefault(str(row), {})[name] = outcome
            print(f"{row} | {name} | {' '.join(filter(None, outcome))}", file=sys.stderr, flush=True)
            if keep is not None:
                keep.write_text(json.dumps(found), encoding="utf-8")
    return found


def main() -> None:
    """Write the page, or print some of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", help="the name of a row; may be given several times")
    parser.add_argument("--transform", action="append", choices=list(CHECKS), help="the same for transforms")
    parser.add_argument("--results", type=Path, help="a file that keeps what was found")
    given = parser.parse_args()
    known = TARGET.read_text(encoding="utf-8") if given.only else ""
    rows = [row for row in ROWS if not given.only or row.name in given.only or f"| {format_name(row)} |" not in known]
    found = run_checks(rows, given.transform or COLUMNS, given.results)
    if given.transform:
        print(json.dumps(found))
    if not given.transform or given.results:
        TARGET.write_text(build_page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
