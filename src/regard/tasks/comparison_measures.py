"""What comparisons measure, by functions that are imported only when they are needed."""

from collections.abc import Sequence

from regard.tasks.comparison import SHARED, train_task

ASKED = (
    *("1 one supporting fact", "2 two supporting facts", "3 three supporting facts", "4 two arguments"),
    *("5 three arguments", "6 yes or no", "7 counting", "8 lists", "9 negation", "10 indefinite knowledge"),
    *("11 coreference", "12 conjunction", "13 compound coreference", "14 time", "15 deduction", "16 induction"),
    *("17 position", "18 size", "19 path", "20 motives"),
)
RULES = ("retrieval", "rotation", "linear")


def measure_agreement(estimator: str, seed: int) -> list[float]:
    """Call `measure_gradient_agreement`, which is imported only when it is needed."""
    from regard.tasks.captioning.gradient_agreement import measure_gradient_agreement

    return [measure_gradient_agreement(estimator, seed)]


def measure_retrieval(score: str, seed: int) -> list[float]:
    """Call `measure_score`, which is imported only when it is needed."""
    from regard.tasks.noisy_retrieval import measure_score

    return measure_score(score, seed)


def measure_sharpness(kind: str, seed: int) -> list[float]:
    """Call `measure_normalizer`, which is imported only when it is needed."""
    from regard.tasks.relevant_item import measure_normalizer

    return measure_normalizer(kind, seed)


def measure_depths(kind: str, seed: int) -> list[float]:
    """Call `measure_norm`, which is imported only when it is needed."""
    from regard.tasks.norm_depths import measure_norm

    return measure_norm(kind, seed)


def measure_lengths(kind: str, seed: int) -> list[float]:
    """Call `measure_norm_lengths`, which is imported only when it is needed."""
    from regard.tasks.norm_lengths import measure_norm_lengths

    return measure_norm_lengths(kind, seed)


def measure_next_vector(kind: str, seed: int) -> list[float]:
    """Return the squared error of the seven steps, plain or as the task trains them, or of a guess, for each rule."""
    from regard.tasks.next_vector.plain_steps import measure_guess, measure_plain_steps

    if kind == "task":
        values = {**SHARED, "seed": str(seed)}
        return [train_task("next-vector", rule, None, values)["test"].metrics["error"] for rule in RULES]
    if kind.startswith("plain"):
        return [measure_plain_steps(rule, seed, attention=kind == "plain") for rule in RULES]
    return [measure_guess(kind, rule) for rule in RULES]


def measure_memory(kind: str, seed: int) -> list[float]:
    """Return the errors in percent over all kinds of questions, then of each; published ones are known."""
    from regard.tasks.memory.published_errors import PUBLISHED_ERRORS

    if kind in PUBLISHED_ERRORS:
        errors = list(PUBLISHED_ERRORS[kind])
    else:
        changes = dict(change.split("=") for change in kind.split())
        reports = train_task("memory", "", "question-kinds", {**SHARED, **changes, "seed": str(seed)})
        errors = [100 - reports[name].metrics["accuracy"] for name in ASKED]
    return [sum(errors) / len(errors), *errors]


def show_seven_steps() -> Sequence[str]:
    """Call `describe_steps`, which is imported only when it is needed."""
    from regard.tasks.next_vector.plain_steps import describe_steps

    return describe_steps()
