"""`regard demo regression`: Nadaraya–Watson regression three ways, with its picture."""

from typing import Any

from rich.table import Table

from regard.cli.figures import FigureOptions
from regard.cli.output import open_console


def run_regression_demo(seed: int, options: FigureOptions) -> None:
    """Fit a noisy curve by attention three ways and draw what each prediction looked at."""
    import numpy as np

    from regard.inspect.draw.regression import draw_regression
    from regard.layers.estimators import KERNELS, KernelRegressor
    from regard.tasks.data.points import evaluate_curve

    random = np.random.default_rng(seed)
    x = np.sort(random.uniform(0, 5, 50))
    y = evaluate_curve(x) + random.normal(0, 0.5, 50)
    new = np.linspace(0, 5, 50)
    table = Table("kernel", "bandwidth", "mean squared error on new points", box=None, pad_edge=False)
    fits: dict[str, tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = {}
    for kernel in KERNELS:
        model = KernelRegressor(kernel).fit(x[:, None], y)
        values = model.predict(new[:, None])
        fits[kernel] = values, model.attend(new[:, None]).weights.dense().numpy()
        table.add_row(kernel, f"{model.bandwidth_:.2f}", f"{np.mean((values - evaluate_curve(new)) ** 2):.3f}")
    console = open_console()
    console.print("y = 2 sin x + x^0.8 + noise, 50 points; each prediction is an attention over them", table)
    if options.output is not None:
        title, language = options.choose_title(), options.language
        options.save(draw_regression((x, y), new, evaluate_curve(new), fits, "x", title, language=language))
