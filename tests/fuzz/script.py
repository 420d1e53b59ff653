"""Ten lines that reproduce a failure with torch and regard alone."""

from tests.fuzz.trial import Failure, Trial

WIDE = "[t.detach().double().requires_grad_() for t in (q, k, v)]"
CONTEXTS = {"no_grad": "torch.no_grad()", "inference": "torch.inference_mode()"}
STACKED = "[torch.stack([t, -t]).detach() for t in (q, k, v)]"
OTHERS = {
    "vmap": [
        f"many = {STACKED}; single = [run_backend(parts, [t[i] for t in many], BACKEND).output for i in (0, 1)]",
        "print(torch.func.vmap(lambda *t: run_backend(parts, t, BACKEND).output)(*many) - torch.stack(single))",
    ],
    "func-grad": [
        "print(torch.func.grad(lambda *t: run_backend(parts, t, BACKEND).output.square().sum(), (0, 1, 2))(q, k, v))"
    ],
    "second": [
        "loss = run_backend(parts, (q, k, v), BACKEND).output.square().sum()",
        "g = torch.autograd.grad(loss, (q, k, v), create_graph=True)",
        "print(torch.autograd.grad(sum(t.square().sum() for t in g), (q, k, v)))  # compare with eager",
    ],
    "autocast": [
        'with torch.autocast("cpu", torch.bfloat16): found = run_backend(parts, (q, k, v), BACKEND).output',
        f'print(found - run_backend(cast_parts(parts, torch.float64), {WIDE}, "eager").output)',
    ],
    "compile": [
        "given = dict(score=parts[0], bias=parts[1], mask=parts[2], normalizer=parts[3], aggregate=parts[4])",
        'call = torch.compile(lambda *t: attend(*t, **given).output, fullgraph=True, backend="aot_eager"); '
        "print(call(q, KEY, VALUE))",
    ],
    "fake": [
        "from torch._subclasses.fake_tensor import FakeTensorMode as Fake",
        "with Fake(allow_non_fake_inputs=True) as m, torch.no_grad():"
        " print(run_backend(parts, [m.from_tensor(t.detach()) for t in (q, k, v)], BACKEND).output.shape)",
    ],
}


def write_script(trial: Trial, failure: Failure) -> str:
    """Return at most ten lines that build the trial and print what is wrong."""
    lines = OTHERS.get(trial.transform) or _compare_lines(trial, failure)
    names = {"BACKEND": repr(failure.backend)}
    names |= {"KEY": "dirty_k", "VALUE": "dirty_v"} if trial.hidden else {"KEY": "k", "VALUE": "v"}
    for name, text in names.items():
        lines = [line.replace(name, text) for line in lines]
    lines[-1] += f"  # {failure.property} by {failure.backend}: {failure.message}"
    return "\n".join([*trial.lines(), *lines])


def _compare_lines(trial: Trial, failure: Failure) -> list[str]:
    """Return lines with a call, the definition, and the difference that is too large."""
    dropout = f", dropout={trial.dropout}" if trial.dropout else ""
    call = f"found = run_backend(parts, (q, KEY, VALUE), BACKEND{dropout})"
    true = f"true = compute_reference(cast_parts(parts, torch.float64), {WIDE}{dropout})"
    rows = "" if not trial.hidden else "[~(seen & hit[..., None, :]).any(-1)]"
    context = CONTEXTS.get(trial.transform)
    if failure.property == "raises":
        return [f"with {context}: {call}" if context else call]
    if failure.property.startswith("gradient"):
        slopes = "torch.autograd.grad(found.output.sum(), (q, KEY, VALUE), allow_unused=True)"
        wide = f"w = {WIDE}; exact = run_backend(cast_parts(parts, torch.float64), w, 'eager'{dropout}).output"
        exact = "torch.autograd.grad(exact.sum(), w, allow_unused=True)"
        return [f"{call}; {wide}", f"print([a - b for a, b in zip({slopes}, {exact}) if a is not None])"]
    shown = {
        "output": f"(found.output - true.attended.output){rows}.abs().max()",
        "weights": f"(found.weights.dense() - true.weights){rows}.abs().max()",
        "sums": "found.weights.dense().sum(-1)",
        "product": "found.weights.dense() @ VALUE.to(found.weights.dense().dtype), found.output",
        "tile": "found.weights.dense(), found.weights.tile(slice(None), slice(None))",
        "top": "found.weights.dense(), found.weights.top(1)",
        "entropy": "found.weights.dense(), found.weights.entropy()",
        "received": "found.weights.dense(), found.weights.received_weight()",
    }.get(failure.property, "found.output.shape, found.weights.dense().shape, true.attended.output.shape")
    line = f"print({shown})"
    return [f"with {context}: {call}; {true}; {line}" if context else f"{call}; {true}", *([] if context else [line])]
