"""Nadaraya–Watson regression, three ways."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from regard.errors import InputError
from regard.layers.estimators import KERNELS, KernelRegressor


@parametrize_with_checks([KernelRegressor(), KernelRegressor("gaussian", bandwidth=0.5)])
def test_it_is_a_scikit_learn_estimator(estimator, check) -> None:  # type: ignore[no-untyped-def]
    check(estimator)


@pytest.mark.parametrize("seed", range(5))
def test_learned_beats_fixed_beats_average_on_new_points(seed: int) -> None:
    random = np.random.default_rng(seed)
    x, new = np.sort(random.uniform(0, 5, 50)), np.linspace(0, 5, 50)
    y = 2 * np.sin(x) + x**0.8 + random.normal(0, 0.5, 50)
    truth = 2 * np.sin(new) + new**0.8
    error = {k: np.mean((KernelRegressor(k).fit(x[:, None], y).predict(new[:, None]) - truth) ** 2) for k in KERNELS}
    assert error["learned"] < error["gaussian"] < error["average"]


def test_the_average_is_the_average() -> None:
    x, y = np.arange(7.0)[:, None], np.arange(7.0) ** 2
    assert np.allclose(KernelRegressor("average").fit(x, y).predict([[100.0]]), y.mean())


def test_two_points_by_hand() -> None:
    model = KernelRegressor("gaussian", bandwidth=1.0).fit([[0.0], [1.0]], [0.0, 1.0])
    assert np.allclose(model.predict([[0.0]]), 1 / (1 + np.exp(0.5)))
    assert np.allclose(model.attend([[0.0]]).weights.dense().sum(-1), 1.0)


def test_several_outputs_are_read_at_once() -> None:
    x, y = np.arange(5.0)[:, None], np.stack([np.arange(5.0), -np.arange(5.0)], axis=1)
    found = KernelRegressor("gaussian", bandwidth=0.02).fit(x, y).predict([[3.0]])
    assert np.allclose(found, [[3.0, -3.0]])


def test_an_unknown_kernel_is_one_sentence() -> None:
    with pytest.raises(InputError) as caught:
        KernelRegressor("cubic").fit([[0.0], [1.0]], [0.0, 1.0])  # type: ignore[arg-type]
    assert str(caught.value) == "kernel: got 'cubic', expected one of average, gaussian, learned; fix: write learned"
