"""`regard show` of a translator: where it looked, in the terminal or as a picture."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from regard.cli.opening import Opening
from regard.errors import wrong


def show(
    run: Path,
    sentence: str,
    *,
    output: Path | None = None,
    beam: int = 5,
    opening: Annotated[Opening | None, Parameter(name="*")] = None,
) -> None:
    """Translate a sentence and show where the model looked for each token.

    Parameters
    ----------
    run
        The run folder.
    sentence
        What to translate.
    output
        A picture (.png, .svg, .pdf) instead of the map in the terminal.
    beam
        Hypotheses that are kept at each step.
    """
    from regard.tasks.translation import Search

    if not sentence.strip():
        raise wrong("sentence", "nothing", "some words", "write the sentence in quotes")
    translator = (opening or Opening()).translator(run)
    one = translator.translate([sentence], Search(beam), attention=True)[0]
    said, console = one.best[0], Console(highlight=False)
    console.print(said.text, markup=False)
    if said.weights is None:
        fix = "choose a run of another model, such as bahdanau"
        raise wrong("show", f"a model without attention in {run}", "one that looks at its source", fix)
    if output is None:
        from regard.draw.terminal import heat_map

        console.print(heat_map(said.weights.tolist(), one.source, said.tokens, console.width), soft_wrap=True)
        return
    from regard.draw.alignment import alignment, save

    save(alignment(said.weights.cpu().numpy(), one.source, said.tokens), output)
    console.print(f"picture: {output}", markup=False)
