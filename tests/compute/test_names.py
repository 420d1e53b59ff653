"""Parts by name: in `attend` those without parameters, in layers all; by any name that they go by."""

import pytest
import torch

from regard import Additive, ALiBi, Causal, Gaussian, InputError, KindError, Parts, Sparsemax, attend
from regard.algebra import catalog
from regard.algebra.catalog import Sizes, build_named, find_family, list_names, resolve_name
from regard.algebra.scores import Score
from regard.layers import Attention, DecoderBlock, Mechanism
from regard.layers.mechanism import choose_part

B, H, L, S, D, E = 2, 3, 5, 7, 11, 13
QUERY, KEY, VALUE = (torch.randn(B, H, n, d, dtype=torch.float64) for n, d in ((L, D), (S, D), (S, E)))
SIZES = Sizes(D, D, E, (B, H), L, S)


@pytest.mark.parametrize("family", catalog.FAMILIES)
def test_every_part_that_a_name_tells_all_of_runs_by_name_and_the_others_say_what_to_write(family: str) -> None:
    for name, entry in catalog.FAMILIES[family].items():
        if not entry.write:
            found = attend(QUERY, KEY, VALUE, **{family: name}).output
            assert found.shape == (B, H, L, E)
            continue
        with pytest.raises(InputError) as caught:
            attend(QUERY, KEY, VALUE, **{family: name})
        constructor = entry.format_constructor(SIZES)
        assert str(caught.value).endswith(f"; fix: build {constructor} once, and pass it")
        assert "{" not in constructor


def test_a_name_is_the_part() -> None:
    named = attend(QUERY, KEY, VALUE, score="gaussian", bias="alibi", mask="causal", normalizer="sparsemax")
    built = attend(
        QUERY, KEY, VALUE, score=Gaussian(), bias=ALiBi(H), mask=Causal(), normalizer=Sparsemax(), aggregate="soft"
    )
    assert torch.equal(named.output, built.output)


def test_a_part_with_parameters_shows_its_constructor_with_the_sizes_of_these_tensors() -> None:
    with pytest.raises(InputError) as caught:
        attend(QUERY, torch.randn(B, H, S, E).double(), VALUE, score="bahdanau")
    assert str(caught.value) == (
        "score: got 'bahdanau', expected a score that holds its parameters; "
        "fix: build Additive(query=11, key=13, hidden=11) once, and pass it"
    )


@pytest.mark.parametrize("family", catalog.FAMILIES)
def test_constructors_that_messages_show_can_be_written(family: str) -> None:
    import regard

    data = {"lengths": torch.tensor([3]), "documents": torch.zeros(S).long(), "table": torch.ones(L, S).bool()}
    data |= {"table": torch.ones(L, S)} if family == "bias" else {}
    data |= {"center": torch.zeros(L), "numbers": torch.zeros(S)}
    scope = {name: getattr(regard, name) for name in regard.__all__} | data
    for entry in catalog.FAMILIES[family].values():
        if entry.write:
            built = eval(entry.format_constructor(SIZES), scope)  # texts of our own
            assert isinstance(built, type(entry(SIZES)))


def test_papers_libraries_and_articles_call_it_so() -> None:
    named = {"bahdanau": "additive", "general": "bilinear", "luong": "bilinear", "concat": "concat", "rbf": "gaussian"}
    named |= {"加性": "additive", "缩放点积": "scaled-dot", "高斯核": "gaussian", "nadaraya-watson": "gaussian"}
    named |= {"ScaledDot": "scaled-dot", "Scaled Dot": "scaled-dot", "FeatureDot": "features"}
    assert {name: resolve_name("score", name) for name in named} == named
    assert resolve_name("mask", "局部") == "window"
    assert resolve_name("aggregate", "硬注意力") == "argmax"
    assert find_family("局部", "score") == "mask"


@pytest.mark.parametrize("family", catalog.FAMILIES)
def test_no_alias_hides_a_name_or_means_two_things(family: str) -> None:
    entries = catalog.FAMILIES[family]
    aliases = [alias for entry in entries.values() for alias in entry.aliases]
    assert len(aliases) == len(set(aliases))
    assert not set(aliases) & set(entries)
    assert all(list_names(family)[name] == name for name in entries)


@pytest.mark.parametrize(
    ("family", "name", "fix"),
    [
        ("score", "bahdanow", "write additive"),
        ("score", "gausian", "write gaussian"),
        ("score", "sparsemax", "write normalizer='sparsemax'"),
        ("mask", "autoregresive", "write causal"),
    ],
)
def test_a_wrong_name_suggests_the_nearest_by_meaning(family: str, name: str, fix: str) -> None:
    with pytest.raises(InputError) as caught:
        attend(QUERY, KEY, VALUE, **{family: name})
    assert str(caught.value).startswith(f"{family}: got '{name}', expected ")
    assert str(caught.value).endswith(f"; fix: {fix}")


@pytest.mark.parametrize("name", catalog.SCORES)
def test_layers_build_every_score_with_parameters_and_every_plain_one(name: str) -> None:
    entry = catalog.SCORES[name]
    trained = any(True for _ in entry(SIZES).parameters())
    if entry.write and not trained:
        return
    layer = Attention(4 * D, heads=4, score=name)
    output, weights = layer.attend(torch.randn(B, L, 4 * D), mask="causal")
    assert (output.shape, weights.shape) == ((B, L, 4 * D), (B, 4, L, L))
    output.sum().backward()
    assert all(parameter.grad is not None for parameter in layer.mechanism.parameters())


def test_an_additive_layer_projects_once() -> None:
    score = Attention(4 * D, heads=4, score="加性").mechanism.score
    assert isinstance(score, Additive)
    assert list(score.state_dict()) == ["weight"]


def test_parts_of_a_layer_are_of_their_family_and_not_beside_a_mechanism() -> None:
    with pytest.raises(KindError) as caught:
        choose_part("score", Sparsemax(), Score, None)
    assert str(caught.value) == (
        "score: got a Sparsemax, expected a Score, or its name in the catalog; fix: see `regard list` for all of them"
    )
    with pytest.raises(InputError, match=r"^score: got 'dot', expected none beside a mechanism; fix: give it to the"):
        Attention(D, score="dot", mechanism=Mechanism())
    with pytest.raises(InputError, match=r"fix: build Additive\(query=64, key=64, hidden=64\) once, and pass it$"):
        Mechanism("additive")


def test_blocks_take_a_mask_by_name() -> None:
    block = DecoderBlock(2 * D, heads=2).double()
    x, source = torch.randn(B, L, 2 * D).double(), torch.randn(B, S, 2 * D).double()
    torch.testing.assert_close(block(x, source, mask="causal").output, block(x, source).output)


def test_names_for_a_layer_that_has_its_own_projections_need_no_parameters() -> None:
    assert build_named("bias", "none", SIZES, trained=False) is None
    assert Parts._fields == tuple(catalog.FAMILIES)
