"""Find what the weights of this library's own attention were computed from, if its score is a sum over dimensions."""

import torch

from regard.algebra.aggregates import Argmax, Soft
from regard.algebra.masks import Causal, Full
from regard.algebra.normalizers import Entmax, Entmax15, RowTotal, Sigmoid, Softmax, SoftmaxPlusOne, Sparsemax
from regard.algebra.pairs import Pairs
from regard.algebra.parts import AttentionCall
from regard.algebra.scores import Additive, Concat, Gaussian, Laplacian, Score
from regard.algebra.scores.base import as_dot
from regard.algebra.shapes import Tensor
from regard.inspect.observe.arguments import ItemSelector, upcast_half
from regard.inspect.recording import Origin
from regard.inspect.recording.origin import ScoreForm

LARGEST_TABLE = 2**22  # numbers of a mask or bias that may be written out
Setting = float | Tensor | None


def build_handle_origin(call: AttentionCall, select: ItemSelector, heads: int) -> Origin | None:
    """Return what one call of `attend` was computed from; None if its score is not a sum over dimensions."""
    parts = call.parts
    terms = split_score(parts.score, call.query, call.key)
    if terms is None or type(parts.aggregate) not in (Soft, Argmax):
        return None
    form, query, key, factor = terms
    plain = type(parts.mask) in (Full, Causal) and parts.bias is None
    if not plain and call.queries * call.keys > LARGEST_TABLE:
        return None

    def keep(tensor: Tensor) -> Tensor:
        return upcast_half(select(tensor.detach())).cpu().clone()

    normalizer, setting = name_normalizer(parts.normalizer)
    if type(parts.aggregate) is Argmax:
        normalizer = "argmax"  # whatever the normalizer, the largest score has all of the weight
    settings = spread_setting(setting, heads)
    factors = None if factor is None else spread_factor(factor, heads, query.shape[-1])
    return Origin(
        keep(query),
        keep(key),
        form,
        factors,
        None if plain else build_bias(call, select),
        call.keys - call.queries if plain and type(parts.mask) is Causal else None,
        keep(call.value.norm(dim=-1, keepdim=True))[..., 0],
        type(parts.score).__name__,
        normalizer,
        settings,
    )


def split_score(score: Score, query: Tensor, key: Tensor) -> tuple[ScoreForm, Tensor, Tensor, Setting] | None:
    """Return the form of a score and the vectors and factor of its terms; None if it is not a sum over dimensions."""
    if type(score) is Additive:
        return "tanh", *score.project(query, key), score.weight
    if type(score) is Concat:
        left, right = score.matrix.split(score.widths, dim=-1)
        return "tanh", query @ left.mT, key @ right.mT, score.weight
    if type(score) is Gaussian:
        return "square", query, key, 0.5 / score.bandwidth**2
    if type(score) is Laplacian:
        return "absolute", query, key, 1.0 / score.bandwidth
    if score.form != "dot":
        return None
    form = as_dot(score).dot_form(query, key).fold_offsets(keep_row=True).fold_scale()
    return "dot", form.query, form.key, None


def build_bias(call: AttentionCall, select: ItemSelector) -> Tensor:
    """Return what bias and mask add to the scores of one item: −∞ for keys that are hidden."""
    pairs = Pairs(call.queries, call.keys, device=call.query.device)
    table = torch.zeros(call.queries, call.keys, device=call.query.device)
    if call.parts.bias is not None:
        table = table + call.parts.bias(pairs).detach().float()
    if type(call.parts.mask) is not Full:
        table = torch.where(call.parts.mask.allows(pairs), table, float("-inf"))
    return (table[None] if table.dim() == 2 else select(table)).cpu()


def name_normalizer(normalizer: object) -> tuple[str, Setting]:
    """Return the name by which `explain_cell` knows a normalizer, and its temperature, α or shift."""
    if type(normalizer) is Softmax:
        return "softmax", normalizer.temperature
    if type(normalizer) is Entmax:
        return "entmax", normalizer.alpha
    if type(normalizer) is Sigmoid:
        return "sigmoid", normalizer.shift
    alone: dict[type, str] = {SoftmaxPlusOne: "softmax-plus-one", RowTotal: "row-total"}
    sparse: dict[type, Setting] = {Sparsemax: 2.0, Entmax15: 1.5}
    if type(normalizer) in sparse:
        return "entmax", sparse[type(normalizer)]
    return alone.get(type(normalizer), type(normalizer).__name__), None


def spread_setting(setting: Setting, heads: int) -> Tensor | None:
    """Return a setting as one number, or as one for each head."""
    if setting is None:
        return None
    flat = torch.as_tensor(setting, dtype=torch.float32).detach().cpu().reshape(-1)
    return flat if flat.numel() in (1, heads) else flat.repeat_interleave(max(1, heads // flat.numel()))


def spread_factor(factor: Setting, heads: int, dim: int) -> Tensor | None:
    """Return a factor for each dimension: of all heads, or of each."""
    if isinstance(factor, Tensor) and factor.dim() and factor.shape[-1] == dim and factor.numel() in (dim, heads * dim):
        return factor.detach().cpu().reshape(-1, dim)
    each = spread_setting(factor, heads)
    return None if each is None else each[:, None].expand(-1, dim).contiguous()
