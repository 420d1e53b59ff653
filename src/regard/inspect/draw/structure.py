"""Draw the structure of models that papers and articles draw: boxes with what each part is called in regard."""

from collections.abc import Callable

from matplotlib.figure import Figure

from regard.errors import find_nearest, wrong
from regard.inspect.draw import blueprints, sequence_blueprints
from regard.inspect.draw.diagram import Diagram, draw_diagram
from regard.inspect.draw.words import Language

STRUCTURES: dict[str, Callable[[], Diagram]] = {
    "pooling": blueprints.plan_pooling,
    "scoring": blueprints.plan_scoring,
    "key-value": blueprints.plan_key_value,
    "multi-head": blueprints.plan_heads,
    "transformer": blueprints.plan_transformer,
    "gated-heads": blueprints.plan_gated_heads,
    "seven-steps": blueprints.plan_seven_steps,
    "seq2seq": sequence_blueprints.plan_seq2seq,
    "bahdanau": sequence_blueprints.plan_bahdanau,
    "luong": sequence_blueprints.plan_luong,
    "self-attention": sequence_blueprints.plan_self_attention,
    "layers": sequence_blueprints.plan_layers,
    "bidaf": sequence_blueprints.plan_flow,
    "memory": sequence_blueprints.plan_memory,
}


def draw_structure(name: str, title: str = "", *, language: Language = "en") -> Figure:
    """Draw the structure of that name: transformer, bahdanau, luong, seq2seq, multi-head and the others.

    Below what a part does stands what it is called in regard.
    """
    return draw_diagram(find_structure(name), title, language=language)


def find_structure(name: str) -> Diagram:
    """Return the diagram of that name, or raise with the nearest."""
    if name not in STRUCTURES:
        nearest = find_nearest(name, STRUCTURES)
        raise wrong("structure", name, f"one of {', '.join(STRUCTURES)}", f"write {nearest}")
    return STRUCTURES[name]()


def list_connections(diagram: Diagram, language: Language) -> list[tuple[str, str, str]]:
    """Return what each part does, what it is called in regard, and the parts that its result goes to."""
    words = {key: box.words.choose(language).replace("\n", " ") for key, box in diagram.boxes.items()}
    goals: dict[str, dict[str, None]] = {key: {} for key in words}
    for arrow in diagram.arrows:
        goals[arrow.start][words[arrow.end]] = None
    rows = [(words[key], diagram.boxes[key].name, ", ".join(filter(None, goals[key]))) for key in words]
    return [row for row in rows if row[0] and (row[1] or row[2])]
