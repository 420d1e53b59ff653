"""Nadaraya–Watson regression as a scikit-learn estimator (extra `sklearn`)."""

import math
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from regard.algebra.masks import Full, Mask
from regard.algebra.scores import Gaussian
from regard.algebra.shapes import Tensor
from regard.compute.attend import AttentionResult, attend
from regard.errors import wrong

Kernel = Literal["average", "gaussian", "learned"]
KERNELS: tuple[Kernel, ...] = ("average", "gaussian", "learned")


class KernelRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    r"""Predicts the average of the known points, weighted by how near they are.

    $$ f(x) = \sum_i \mathrm{softmax}_i\left(-\frac{\lVert x - x_i \rVert^2}{2 h^2}\right) y_i $$

    with $h$ = `bandwidth`. The three kernels are those of the textbook: `average` ignores the distance ($h = \infty$),
    `gaussian` takes `bandwidth` as it is, and `learned` starts there and follows the gradient of the squared error of
    each training point predicted from all others. Nadaraya 1964; Watson 1964.

    >>> import numpy as np
    >>> x = np.arange(4.0)[:, None]
    >>> KernelRegressor(bandwidth=0.01).fit(x, x[:, 0] ** 2).predict([[3.0]])
    array([9.])
    """

    def __init__(
        self, kernel: Any = "learned", *, bandwidth: Any = 1.0, steps: Any = 100, learning_rate: Any = 0.1
    ) -> None:
        # scikit-learn's rule: a constructor stores what it is given, and `fit` looks at it.
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.steps = steps
        self.learning_rate = learning_rate

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> "KernelRegressor":  # noqa: N803
        """Store the points, and learn the bandwidth if the kernel is `learned`."""
        if self.kernel not in KERNELS:
            raise wrong("kernel", repr(self.kernel), f"one of {', '.join(KERNELS)}", "write learned")
        if not self.bandwidth > 0:
            raise wrong("bandwidth", self.bandwidth, "a number above 0", "use kernel='average' to ignore the distance")
        points, y = validate_data(self, X, y, multi_output=True, y_numeric=True, dtype=np.float64)
        self.points_, self.values_ = points, np.asarray(y, dtype=np.float64)
        self.bandwidth_ = {"average": math.inf, "gaussian": float(self.bandwidth)}.get(self.kernel)
        if self.bandwidth_ is None:
            self.bandwidth_ = self._learn_bandwidth()
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the weighted averages at these points."""
        check_is_fitted(self)
        output = self.attend(X).output.numpy()
        return output if self.values_.ndim > 1 else output[:, 0]

    def attend(self, X: Any) -> AttentionResult:  # noqa: N803
        """Return the attention of these points over the known ones, with the weights of each prediction."""
        check_is_fitted(self)
        points = validate_data(self, X, dtype=np.float64, reset=False)
        with torch.no_grad():
            return self._attend(torch.tensor(points), torch.tensor(self.bandwidth_, dtype=torch.float64), Full())

    def _load_points(self) -> tuple[Tensor, Tensor]:
        points, values = torch.tensor(self.points_), torch.tensor(self.values_)
        return points, values if values.dim() > 1 else values[:, None]

    def _attend(self, query: Tensor, bandwidth: Tensor, mask: Mask) -> AttentionResult:
        points, values = self._load_points()
        return attend(query, points, values, score=Gaussian(bandwidth), mask=mask)

    def _learn_bandwidth(self) -> float:
        """Return the bandwidth that best predicts each point from the others: with itself it would be 0."""
        points, values = self._load_points()
        if len(points) < 2:
            return float(self.bandwidth)
        logarithm = torch.tensor(self.bandwidth, dtype=torch.float64).log().requires_grad_()
        others = Mask.keep(~torch.eye(len(points), dtype=torch.bool))
        optimizer = torch.optim.Adam([logarithm], lr=self.learning_rate)
        for _ in range(self.steps):
            optimizer.zero_grad()
            error = (self._attend(points, logarithm.exp(), others).output - values).square().mean()
            error.backward()
            optimizer.step()
        return float(logarithm.detach().exp())
