"""The browser's modules as one script, for a page that is opened from disk, where modules cannot import each other.

The modules of `web/read_static` keep to two forms, which a test checks: `import { a, b } from "./x.js";` and `export` before
a function, a constant or a class.
"""

import re
from importlib.resources import files

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";$', re.MULTILINE)
EXPORT = re.compile(r"^export ((?:async )?function\*?|const|class) (\w+)", re.MULTILINE)


def read_static(name: str) -> str:
    """A file of the web interface."""
    return files("regard").joinpath("web", "static", name).read_text(encoding="utf-8")


def bundle_script(entry: str) -> str:
    """One script with a module and all that it imports, each in a scope of its own, those imported first."""
    done: dict[str, str] = {}
    collect_modules(entry, done)
    return '"use strict";\nconst modules = {};\n' + "".join(done.values())


def collect_modules(name: str, done: dict[str, str]) -> None:
    """Adds a module behind those it needs."""
    if name in done:
        return
    text = read_static(name)
    for needed in IMPORT.finditer(text):
        collect_modules(needed[2], done)
    done[name] = enclose_module(name, text)


def enclose_module(name: str, text: str) -> str:
    """A module as a function that is called at once and gives what it exports.

    >>> print(enclose_module("a.js", 'import { b } from "./b.js";\\nexport const a = b;\\n'), end="")
    modules["a.js"] = (() => {
    const { b } = modules["b.js"];
    const a = b;
    return { a };
    })();
    """
    exported = [match[2] for match in EXPORT.finditer(text)]
    body = EXPORT.sub(r"\1 \2", IMPORT.sub(r'const {\1} = modules["\2"];', text))
    return f'modules["{name}"] = (() => {{\n{body}return {{ {", ".join(exported)} }};\n}})();\n'
