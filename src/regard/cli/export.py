"""`regard export`: a trained translator for other machines and other programs."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from regard.cli.runs import LoadOptions, RunFolder


def export(
    run: RunFolder,
    output: Path,
    *,
    form: Annotated[Literal["safetensors", "onnx", "ct2"], Parameter(name="--format")] = "safetensors",
    weights: Path | None = None,
) -> None:
    """Write a translator into a new folder.

    Parameters
    ----------
    output
        The new folder.
    form
        safetensors: for all commands on any machine; onnx: two graphs; ct2: for CTranslate2, Transformers only.
    weights
        Other weights: a file, or its name in the run folder.
    """
    from regard.export import export as export_model

    export_model(LoadOptions(weights).load_plain_translator(run), output, form)
    now = {
        "safetensors": f"regard translate {output}",
        "onnx": f"regard translate {output}, or without regard: docs/export.md",
        "ct2": f"regard translate {output}, or ctranslate2.Translator({str(output)!r})",
    }
    print(f"{output}: written; now: {now[form]}")
