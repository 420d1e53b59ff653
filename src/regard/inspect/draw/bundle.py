"""Bundle JavaScript modules into one script, for a page opened from disk, where modules cannot import each other.

The modules of `web/static` keep to two forms, which a test checks: `import { a, b } from "./x.js";` and `export`
before a function, a constant or a class. Comments stand on lines of their own, and no text goes over several lines, so
that both and the indentation can be left out.
"""

import re
from importlib.resources import files

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";$', re.MULTILINE)
SPARE = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*(?:[^*]|\*(?!/))*\*/)?[ \t]*\n|^[ \t]+", re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function\*?|const|class) (\w+)", re.MULTILINE)


def read_static(name: str) -> str:
    """Return a file of the web interface."""
    return files("regard").joinpath("web", "static", name).read_text(encoding="utf-8")


def bundle_script(entry: str) -> str:
    """Return one script with a module and all that it imports; it names nothing outside of itself."""
    return f"(() => {{\n{bundle_modules(entry)}}})();\n"


def bundle_modules(entry: str) -> str:
    """Return the object `modules` with a module and all that it imports, each in its own scope, imported ones first."""
    scripts: dict[str, str] = {}
    collect_modules(entry, scripts)
    return '"use strict";\nconst modules = {};\n' + "".join(scripts.values())


def collect_modules(name: str, scripts: dict[str, str]) -> None:
    """Add a module to `scripts`, after those that it imports."""
    if name in scripts:
        return
    text = read_static(name)
    for needed in IMPORT.finditer(text):
        collect_modules(needed[2], scripts)
    scripts[name] = enclose_module(name, text)


def enclose_module(name: str, text: str) -> str:
    """Return a module as a function that is called at once and returns what it exports.

    >>> print(enclose_module("a.js", 'import { b } from "./b.js";\\nexport const a = b;\\n'), end="")
    modules["a.js"] = (() => {
    const { b } = modules["b.js"];
    const a = b;
    return { a };
    })();
    """
    exported = [match[2] for match in EXPORT.finditer(text)]
    body = SPARE.sub("", EXPORT.sub(r"\1 \2", IMPORT.sub(r'const {\1} = modules["\2"];', text)))
    return f'modules["{name}"] = (() => {{\n{body}return {{ {", ".join(exported)} }};\n}})();\n'
