"""Every sentence that the server may answer with has a Chinese form; the table holds nothing else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from starlette.testclient import TestClient

import regard
from regard.training.run_folder import suggest_run
from regard.web.inputs import INPUT_NAME
from regard.web.messages import TABLE, choose_language, localize_message

SOURCE = Path(regard.__file__).parent
# Where the sentences of answers are made: the server, what it reads for the page, and what reads its inputs.
SERVED = (
    *(f"web/{path.name}" for path in sorted((SOURCE / "web").glob("*.py"))),
    "inspect/display/fields.py",
    "inspect/display/parts.py",
    "inspect/recording/file.py",
    "datasets/text.py",
    "models/search/beam.py",
    "tasks/images/photos.py",
    "tasks/captioning/predictor.py",
    "tasks/inversion/sequences.py",
    "tasks/memory/story_format.py",
    "tasks/reading/predictor.py",
    "tasks/regression/predictor.py",
    "tasks/speech/predictor.py",
    "tasks/speech/sound.py",
    "tasks/vqa/predictor.py",
)
# Functions that make a message, and how many arguments come before its four parts.
MAKERS = {"wrong": 0, "wrong_kind": 0, "format_message": 0, "busy_error": 0, "refuse": 1}
BUILT = {"describe_kind": ["a JSON {}"], "suggest_run": ["write {}, or see them all with regard runs {}"]}


def find_assignments(tree: ast.AST) -> dict[str, list[ast.expr]]:
    """Return the expressions that each name is bound to, two names of one tuple too."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            target, value = node.targets[0], node.value
            pairs = (
                zip(target.elts, value.elts, strict=True)
                if (isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple))
                else [(target, value)]
            )
            for name, one in pairs:
                if isinstance(name, ast.Name):
                    found.setdefault(name.id, []).append(one)
    return found


def list_templates(node: ast.expr, names: dict[str, list[ast.expr]]) -> Iterator[str]:
    """Yield the texts that an expression may be, with {} for what is filled in."""
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    elif isinstance(node, ast.IfExp):
        yield from list_templates(node.body, names)
        yield from list_templates(node.orelse, names)
    elif isinstance(node, ast.Name):
        for value in names.get(node.id, ()):
            yield from list_templates(value, {})
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield from BUILT.get(node.func.id, ())


def list_parts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the parts of the messages that a file makes: `names` or `parts`, and the template."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = find_assignments(ast.Module([node for node in tree.body if isinstance(node, ast.Assign)], []))
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
        names = constants | find_assignments(function)
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            maker = call.func.id if isinstance(call.func, ast.Name) else ""
            if isinstance(call.func, ast.Attribute) and call.func.attr.startswith("take_"):
                yield from (("names", str(one.value)) for one in call.args[:1] if isinstance(one, ast.Constant))
            if maker in MAKERS:
                for index, argument in enumerate(call.args[MAKERS[maker] : MAKERS[maker] + 4]):
                    for template in list_templates(argument, names):
                        if re.search(r"[A-Za-z]{2}", template.replace("{}", "")):
                            yield ("parts" if index else "names"), template


PARTS = {one for name in SERVED for one in list_parts(SOURCE / name)}
PARTS |= {("names", INPUT_NAME), ("parts", suggest_run(Path("/nowhere/at/all")))}


def test_sentences_are_found() -> None:
    assert len(PARTS) > 200
    assert ("parts", "more than {} uploads at once") in PARTS
    assert ("parts", "use a file that Recording.save wrote, or restore it from a copy") in PARTS


def test_every_sentence_of_the_server_has_a_chinese_form() -> None:
    missing = sorted(f"{family}: {template}" for family, template in PARTS if template not in TABLE[family])
    assert not missing


def test_the_table_holds_no_sentence_that_nobody_says() -> None:
    stale = {(family, template) for family, entries in TABLE.items() for template in entries} - PARTS
    assert not sorted(stale)


def test_chinese_is_chinese_and_keeps_what_is_filled_in() -> None:
    for family, entries in TABLE.items():
        for english, chinese in entries.items():
            assert re.search("[\u4e00-\u9fff]", chinese), (family, english)
            filled = len(re.findall(r"\{\d?\}", chinese))
            assert filled == english.count("{}"), (family, english)


def test_the_language_is_that_of_the_request(client: TestClient) -> None:
    chinese = client.get("/api/nothing", headers={"Accept-Language": "zh-CN,zh;q=0.9,en;q=0.8"}).json()["error"]
    assert chinese == "路径：收到 /api/nothing，需要 这台服务器有的路径；办法：打开 /（首页）"
    assert client.get("/api/nothing").json()["error"].startswith("path: got /api/nothing, expected one of")
    asked = client.post("/api/runs/none/ask", headers={"Accept-Language": "zh"}).json()["error"]
    assert asked.startswith("模型：收到 'none'，需要 ")
    assert asked.endswith(" 之一；办法：从中选择一个")
    host = client.get("/", headers={"Host": "evil.example", "Accept-Language": "zh"}).json()["error"]
    assert host == "Host（主机名）：收到 'evil.example'，需要 这台服务器的名称；办法：打开它给出的地址"


def test_what_is_filled_in_stays_and_names_are_translated() -> None:
    text = "photo: got what was given, which is not an image, expected PNG; fix: check the file, or convert it"
    assert localize_message(text, "zh") == "图像：收到 所给内容 不是图像，需要 PNG；办法：检查该文件，或转换格式"
    assert localize_message(text, "en") == text
    assert localize_message("not of this form", "zh") == "not of this form"


def test_a_message_that_is_too_long_to_compare_stays_english() -> None:
    """A million characters of a client's would take hours: three places to fill in are tried everywhere."""
    text = f"text: got {' with tiles of 1 × ' * 50_000}, expected less; fix: send less"
    assert localize_message(text, "zh") == text


def test_a_language_is_chosen_by_its_share() -> None:
    headers = ["zh-TW", "en;q=0.3, zh;q=0.4", "*", "zh;q=0, en;q=0.1", "zh;q=x", "," * 99, "fr, zh;q=0.1"]
    assert [choose_language(one) for one in headers] == ["zh", "zh", "en", "en", "en", "en", "zh"]


def test_the_page_makes_no_message_of_its_own_in_english_alone() -> None:
    """Such sentences are words of words.js, in both languages."""
    for path in sorted((SOURCE / "web/static").rglob("*.js")):
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if ", expected " in line]
        for line in lines:
            assert re.search('", ".+：收到 .+，需要 .+；办法：.+"\\],$', line) or "words: got ${taken}" in line, (
                path.name,
                line,
            )
