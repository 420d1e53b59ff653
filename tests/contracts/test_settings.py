"""A setting of fewer digits than the query, such as a float32 temperature beside float64, costs no digits."""

import pytest
import torch

from regard.algebra import catalog
from regard.algebra.normalizers import Entmax, Sigmoid, Softmax
from regard.algebra.scores import Capped, Cosine, Dot, Gaussian, Laplacian
from regard.algebra.terms import Term
from regard.compute import verification
from regard.compute.catalog_cases import PLAIN

DTYPES = torch.float32, torch.float64
SETTING = torch.tensor([0.3, 0.7, 1.9])  # numbers whose inverse no dtype holds
TERMS: dict[str, tuple[str, Term]] = {
    "temperature": ("normalizer", Softmax(SETTING)),
    "one temperature": ("normalizer", Softmax(SETTING[0])),
    "alpha": ("normalizer", Entmax(1 + SETTING / 2)),
    "shift": ("normalizer", Sigmoid(SETTING)),
    "center": ("normalizer", catalog.NORMALIZERS["local-p"](verification.SMALL)),
    "factor": ("score", Dot() * SETTING),
    "offset": ("score", Dot() + SETTING),
    "cap": ("score", Capped(Dot(), SETTING)),
    "bandwidth": ("score", Gaussian(bandwidth=1 + SETTING)),
    "Laplacian bandwidth": ("score", Laplacian(bandwidth=SETTING)),
    "cosine temperature": ("score", Cosine(SETTING)),
    "slopes": ("bias", catalog.BIASES["alibi"](verification.SMALL)),
    "table": ("bias", catalog.BIASES["dense"](verification.SMALL)),
    "prior": ("bias", catalog.BIASES["prior"](verification.SMALL)),
}


@pytest.mark.parametrize("name", TERMS)
def test_a_narrow_setting_costs_no_digits(name: str) -> None:
    field, term = TERMS[name]
    parts = verification.build_parts(PLAIN, verification.SMALL)
    narrow = verification.cast_part(term, torch.float32)
    given, exact = (parts._replace(**{field: verification.cast_part(narrow, dtype)}) for dtype in DTYPES)
    tensors = verification.draw_inputs(verification.SMALL)
    true = verification.compute_reference(exact, tensors)
    backends = verification.find_supported_backends(given, verification.SMALL)
    assert "stream" in backends or "rows" in backends
    for backend in ("auto", "eager", *backends):
        found = verification.run_backend(given, tensors, backend)
        slopes = zip(verification.compute_gradients(given, tensors, found)[:3], true.gradients, strict=False)
        assert verification.measure_value_error(found, true) <= verification.VALUE, backend
        worst = verification.find_worst(verification.measure_difference(a, b) for a, b in slopes)
        assert worst <= verification.GRADIENT, backend
