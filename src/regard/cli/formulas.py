"""Write the formulas of docstrings, which are LaTeX, in Unicode: for terminals.

>>> render_formulas(r"with $\\tau$ = `temperature`, and $$ s_{ij} = q_i^\\top k_j / \\sqrt{d} $$")
'with τ = `temperature`, and sᵢⱼ = qᵢᵀ kⱼ / √d'
"""

import re

SYMBOLS = {
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "pi": "π",
    "delta": "δ",
    "epsilon": "ε",
    "theta": "θ",
    "omega": "ω",
    "phi": "φ",
    "sigma": "σ",
    "tau": "τ",
    "Delta": "Δ",
    "partial": "∂",
    "sum": "Σ",
    "prod": "Π",
    "in": "∈",
    "le": "≤",
    "ge": "≥",
    "sim": "~",
    "propto": "∝",
    "cdot": "·",
    "circ": "∘",
    "dots": "…",
    "ell": "ℓ",
    "leftarrow": "←",
    "langle": "⟨",
    "rangle": "⟩",
    "times": "×",
    "infty": "∞",
    "lVert": "‖",
    "top": "ᵀ",
    "qquad": "   ",
    "quad": "  ",
    "left": "",
    "right": "",
    "textstyle": "",
    "displaystyle": "",
}
WORDS = ("tanh", "exp", "log", "ln", "max", "min", "cos", "sin")
FONTS = ("operatorname", "mathrm", "mathtt", "text", "mathbf")
TIGHT = ("lVert", "langle", "left", "textstyle")  # the blank behind these is not part of the formula
LOWER = dict(zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True)) | {
    "β": "ᵦ",
    "φ": "ᵩ",
}
UPPER = dict(zip("0123456789+-=()abcdehijklmnoprstuvwxyz", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))
ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303", "vec": "\u20d7"}
ACCENTS |= {"overrightarrow": "\u20d7", "overleftarrow": "\u20d6"}
GROUP = r"\{([^{}]*)\}"
NARROW = re.compile(r"[\w.′ᵀ∞₀-ₜᵢ-ᵪ⁰-ⁿ]+")  # what needs no parentheses around it


def render_formulas(text: str) -> str:
    """Return a docstring with its formulas in Unicode and without the marks of emphasis."""
    text = re.sub(r"\$\$\s*(.*?)\s*\$\$", lambda found: render_formula(found[1]), text, flags=re.DOTALL)
    text = re.sub(r"\$(.*?)\$", lambda found: render_formula(found[1]), text, flags=re.DOTALL)
    return re.sub(r"(?<!\w)(\*{1,2})([^*\s][^*\n`]*)\1", r"\2", text)


def render_formula(latex: str) -> str:
    """Return one formula in Unicode.

    >>> render_formula(r"w_{ij} = \\frac{e^{s_{ij}}}{1 + \\sum_{j'} e^{s_{ij'}}}")
    'wᵢⱼ = e^(sᵢⱼ) / (1 + Σ_(j′) e^(s_(ij′)))'
    >>> render_formula(r"-\\tfrac{1}{2} w^2 \\lVert q_i - k_j \\rVert^2")
    '-½ w² ‖qᵢ - kⱼ‖²'
    """
    text = latex.replace("\\_", "\0").replace("'", "′")
    text = re.sub(r"\\begin\{bmatrix\}\s*(.*?)\s*\\end\{bmatrix\}", render_matrix, text, flags=re.DOTALL)
    text = re.sub(r"\\tfrac(\{1\}\{2\}|12)", "½", text)
    text = re.sub(r"\s*\\rVert", "‖", text)
    text = re.sub(r"\\[,;!]", "", text).replace("\\ ", " ").replace("\\|", "‖").replace("\\{", "{").replace("\\}", "}")
    text = re.sub(r"\\([A-Za-z]+)[ \t]*", replace_command, text)
    before = ""
    while before != text:
        before, text = text, reduce_groups(text)
    text = re.sub(r"(?<=\S)  (?=\S)", " ", text.replace("\0", "_"))
    return re.sub(r" {4,}", "   ", text).strip()


def replace_command(found: re.Match[str]) -> str:
    """Return the sign of a command, the word that it sets upright, or the command itself if it takes groups."""
    name, blank = found[1], found[0][len(found[1]) + 1 :]
    if name in FONTS:
        return ""
    if name in SYMBOLS:
        return SYMBOLS[name] + ("" if name in TIGHT else blank)
    return name + blank if name in WORDS else f"\\{name}" + " " * (name in ACCENTS or name == "sqrt")


def render_matrix(found: re.Match[str]) -> str:
    """Return a matrix on one line: commas between columns, semicolons between rows."""
    rows = (", ".join(cell.strip() for cell in row.split("&")) for row in found[1].split("\\\\"))
    return f"[{'; '.join(rows)}]"


def reduce_groups(text: str) -> str:
    """Resolve the innermost fractions, roots, accents, indices and exponents, then plain groups."""
    text = re.sub(rf"\\[td]?frac{GROUP}\s*{GROUP}", lambda found: f"{enclose(found[1])} / {enclose(found[2])}", text)
    text = re.sub(r"\\sqrt (?:" + GROUP + r"|(\w))", lambda found: "√" + enclose(found[1] or found[2]), text)
    text = re.sub(rf"\\({'|'.join(ACCENTS)}) (?:\{{(\w)\}}|(\w))", lambda f: (f[2] or f[3]) + ACCENTS[f[1]], text)
    text = re.sub(r"([_^])(?:" + GROUP + r"|([\w+]|ᵀ))", shift, text)
    return re.sub(r"(?<![_^}\w])(?<!\}\n)" + GROUP, r"\1", text)


def shift(found: re.Match[str]) -> str:
    """Return an index or exponent in small letters if there are such letters, else in parentheses."""
    kind, content = found[1], (found[2] if found[2] is not None else found[3]).strip()
    if content == "ᵀ":
        return content
    letters = LOWER if kind == "_" else UPPER
    if content and all(sign in letters for sign in content) and len(content) <= 5:
        return "".join(letters[sign] for sign in content)
    return f"{kind}{content}" if len(content) == 1 else f"{kind}({content})"


def enclose(content: str) -> str:
    """Return a numerator or denominator, in parentheses if it is more than one term."""
    content = content.strip()
    return content if NARROW.fullmatch(content) or is_one_term(content) else f"({content})"


def is_one_term(content: str) -> bool:
    """Return whether a text is a power such as `e^(s)`: no blank outside of its parentheses.

    >>> is_one_term("e^(a + b)"), is_one_term("a + b")
    (True, False)
    """
    depth = 0
    for sign in content:
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and sign in " +-/":
            return False
    return True
