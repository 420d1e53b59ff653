"""Reading by command: from facts and SQuAD to a picture of what was read in the question."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from walking import check_exact_resume, to_flags, walk

from regard.errors import InputError
from regard.tasks.data.batches import PaddedRows
from regard.tasks.data.dataset import FixedDataset
from regard.tasks.reading.config import ReadingConfig, ReadingTraining, SpanReaderConfig
from regard.tasks.reading.examples import encode_question
from regard.tasks.reading.fact_language import CHINESE, ENGLISH, PEOPLE, FactLanguage
from regard.tasks.reading.facts import FactsDataset
from regard.tasks.reading.lengths import adapt_lengths
from regard.tasks.reading.lexicon import Lexicon
from regard.tasks.reading.model import LOWEST, ReadingInputs, SpanReader, SpanScores, find_best_spans
from regard.tasks.reading.questions import Answer, PassageQuestion
from regard.tasks.reading.squad import read_squad
from regard.tasks.reading.vectors import read_vectors

Regard = Callable[..., Any]
TINY = {
    "data.size": 400,
    "held-out": 60,
    "stop.steps": 170,
    "stop.target": "none",
    "every.evaluate": 50,
    "every.log": 1,
}
BRIEF = TINY | {"stop.steps": 2, "every.evaluate": 2, "data.size": 60, "held-out": 5}


def test_facts_are_found_and_a_cut_off_run_ends_with_the_same_bits(regard: Regard) -> None:
    report = walk(regard, "reading", fields=TINY, cut_at=55)["test"]
    assert report["f1"] > 60  # without attention, below 40
    Path("passage.txt").write_text("Nobody knew why. Emma lives in Cairo. Paul works as a judge.")
    done = regard("answer", "passage.txt", "Where does Emma live?", "--run", "run", "--show", "read.png", "--json")
    assert done.code == 0, done.errors
    said = json.loads(done.output)
    assert Path("passage.txt").read_text()[said["begin"] :].startswith(said["answer"])
    assert Path("read.png").read_bytes().startswith(b"\x89PNG")


def test_chinese_is_read_by_character(regard: Regard) -> None:
    done = regard("train", "reading", "facts-zh", "--folder", "run", *to_flags(BRIEF | {"words": "jieba"}))
    assert done.code == 0, done.errors
    assert "hardly" not in done.output
    Path("passage.txt").write_text("没有人知道原因。王家华住在北京。李文伟的工作是法官。")
    said = json.loads(regard("answer", "passage.txt", "王家华住在哪里？", "--run", "run", "--json").output)
    assert Path("passage.txt").read_text()[said["begin"] :].startswith(said["answer"])
    assert json.loads(Path("run/words.json").read_text())["cut"] == "jieba"


def test_what_cannot_be_asked_is_one_sentence(regard: Regard) -> None:
    assert regard("train", "reading", "--folder", "run", *to_flags(BRIEF)).code == 0
    Path("passage.txt").write_text("Emma lives in Cairo.")
    Path("blank.txt").write_text(" \n")
    Path("latin.txt").write_bytes("Zürich".encode("latin1"))
    Path("long.txt").write_text("word " * 5001)
    long = " ".join(["who"] * 61)
    Path("empty").mkdir()
    cases = {
        ("blank.txt", "Who?"): "passage: got blank.txt without a word, expected some text; fix: check the file",
        ("none.txt", "Who?"): "passage: got no file none.txt, expected a text file; fix: check the path",
        ("latin.txt", "Who?"): "latin.txt: got byte 0xfc in line 1, expected UTF-8 text; fix: convert it",
        ("long.txt", "Who?"): "passage: got 5001 words, expected at most 5000; fix: cut it into parts",
        ("empty", "Who?"): "folder: got empty without such a file, expected some that end in .txt, .md; fix: check",
        ("passage.txt", " "): "question: got no word, expected some words; fix: write the question in quotes",
        ("passage.txt", long): "question: got 61 words, expected at most 60, the limit of this run; fix: ask in fewer",
    }
    for words, sentence in cases.items():
        done = regard("answer", *words, "--run", "run")
        assert (done.code, done.output) == (2, ""), done
        assert done.errors.startswith(f"regard: {sentence}")
        assert done.errors.count("\n") == 1
    wrong_run = regard("transcribe", "a.wav", "--run", "run")
    assert wrong_run.errors.startswith("regard: run: got run, a run of reading, expected one of speech; fix: name")
    untranslated = regard("translate", "run")
    assert untranslated.errors.startswith("regard: run: got run, a run of reading, expected one of translation; fix:")


def test_without_attention_it_is_trained_and_has_nothing_to_show(regard: Regard) -> None:
    assert regard("train", "reading", "--preset", "no-attention", "--folder", "run", *to_flags(BRIEF)).code == 0
    done = regard("show", "run", "--output", "map.png")
    assert done.code == 2
    assert "show: got a reader without attention, expected one that looks at its question; fix: " in done.errors


def make_article(
    name: str, answers: list[dict[str, object]], *, context: str = "The cat sat on a mat."
) -> dict[str, Any]:
    entry = {"id": name, "question": "Where did the cat sit?", "answers": answers}
    return {"title": name, "paragraphs": [{"context": context, "qas": [entry]}]}


MAT = {"text": "a mat", "answer_start": 15}


def write(path: Path, *articles: dict[str, Any]) -> Path:
    path.write_bytes(gzip.compress(json.dumps({"version": "1.1", "data": articles}).encode()))
    return path


def test_articles_are_cut_apart(tmp_path: Path) -> None:
    path = write(tmp_path / "some.json.gz", *(make_article(str(number), [MAT]) for number in range(9)))
    found = read_squad(path, validation=2, test=3)
    names = [{one.name for one in part} for part in (found.train, found.validation, found.tests["test"])]
    assert list(map(len, names)) == [4, 2, 3]
    assert len(set.union(*names)) == 9


def test_a_folder_with_the_authors_files_keeps_their_split(tmp_path: Path) -> None:
    write(tmp_path / "train-v1.1.json", *(make_article(f"t{number}", [MAT]) for number in range(5)))
    write(tmp_path / "dev-v1.1.json", make_article("d", [MAT, MAT]))
    found = read_squad(tmp_path, validation=1, test=10)
    assert (len(found.train), len(found.validation)) == (4, 1)
    assert [one.name for one in found.tests["test"]] == ["d"]


def test_another_file_is_measured_whole(regard: Regard) -> None:
    own = write(Path("own.json"), *(make_article(str(number), [MAT]) for number in range(5)))
    other = write(Path("other.json"), *(make_article(f"o{number}", [MAT]) for number in range(3)))
    given = BRIEF | {"data.validation": 1, "data.test": 2, "stop.steps": 1}
    assert regard("train", "reading", own, "--folder", "run", *to_flags(given)).code == 0
    measured = {data: regard("evaluate", "run", *data, "--json").output for data in ((), (own,), (other,))}
    found = {data: {name: one["items"] for name, one in json.loads(text).items()} for data, text in measured.items()}
    assert found == {(): {"test": 2}, (own,): {"test": 2}, (other,): {"other.json": 3}}


def test_wrong_answers_are_left_out_and_counted(tmp_path: Path) -> None:
    early, nowhere = {"text": "a mat", "answer_start": 14}, {"text": "a mat", "answer_start": -1}
    articles = [make_article(str(number), [MAT]) for number in range(9)]
    path = write(tmp_path / "some.json", *articles, make_article("lost", [early]), make_article("kept", [nowhere, MAT]))
    found = read_squad(path, validation=1, test=1)
    assert "some.json: left out 2 of 12 answers, which are not where answer_start says" in found.notes
    assert "some.json: left out 1 of 11 questions, which have no answer in their passage" in found.notes
    asked = {one.name: one.answers for part in (found.train, found.validation, found.tests["test"]) for one in part}
    assert "lost" not in asked
    assert asked["kept"] == (Answer("a mat", 15),)


def test_a_file_that_is_mostly_wrong_is_refused(regard: Regard) -> None:
    wrong_place = {"text": "a mat", "answer_start": 14}
    write(
        Path("bad.json"), make_article("a", [MAT]), *(make_article(str(number), [wrong_place]) for number in range(3))
    )
    done = regard("train", "reading", "bad.json", "--folder", "run")
    assert done.code == 2
    assert done.errors == (
        "regard: bad.json: got 3 of 4 answers that are not where answer_start says, expected most of them in their "
        "passages; fix: count characters from 0, in the whole context\n"
    )
    assert not Path("run").exists()


def test_questions_without_an_answer_are_left_out_and_counted(tmp_path: Path) -> None:
    articles = [make_article(str(number), [MAT]) for number in range(4)]
    path = write(tmp_path / "some.json", *articles, make_article("none", []))
    found = read_squad(path, validation=1, test=1)
    assert "some.json: left out 1 of 5 questions, which have no answer in their passage" in found.notes
    with pytest.raises(InputError, match=r"all\.json: got no question with an answer, expected some, as in SQuAD"):
        read_squad(write(tmp_path / "all.json", make_article("none", [])), validation=1, test=1)


def test_a_bare_list_of_articles_is_read_and_few_are_cut_by_passage(tmp_path: Path) -> None:
    paragraphs = [
        part
        for n in range(24)
        for part in make_article(str(n), [MAT], context=f"The cat sat on a mat. {n}")["paragraphs"]
    ]
    (tmp_path / "list.json").write_text(json.dumps([{"paragraphs": paragraphs}, {"paragraphs": [3]}]))
    found = read_squad(tmp_path / "list.json", validation=None, test=None)
    assert [len(part) for part in (found.train, found.validation, found.tests["test"])] == [17, 2, 5]
    assert found.notes == (
        "cut by passages: 5 of 24 passages are for the test, others for validation and training",
        "list.json: left out 1 parts that are not as SQuAD 1.1 has them",
    )


@pytest.mark.parametrize(
    ("content", "got"),
    [
        (b"[1, 2", "no JSON"),
        (b"{}", "an object of nothing"),
        (b'{"version": 1, "rows": []}', "an object of version, rows"),
        (b'{"data": {"a": 1}}', "an object of data"),
        (b"7", "no list"),
        (b'[1, "a", null]', "no question with an answer"),
        (b'{"data": [{"paragraphs": 3}]}', "no question with an answer"),
        (b'{"data": [{"paragraphs": [{"context": 1, "qas": []}]}]}', "no question with an answer"),
        (b"\xff\xfe", "no JSON"),
    ],
)
def test_another_format_is_one_sentence(tmp_path: Path, content: bytes, got: str) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(InputError, match=rf"x\.json: got {got}.*expected .*SQuAD 1\.1"):
        read_squad(tmp_path / "x.json", validation=1, test=1)


def test_lengths_follow_the_passages_and_answers() -> None:
    text = "一" * 700 + "北京大学" * 8
    question = PassageQuestion("在哪里？", text, (Answer(text[700:], 700),), "q")
    data: FixedDataset[PassageQuestion] = FixedDataset([question] * 9, [question], {"test": [question]})
    found = adapt_lengths(ReadingConfig(), data)
    assert (found.learning.limit, found.reader.longest) == (732, 32)
    named = ReadingConfig(reader=SpanReaderConfig(longest=7), learning=ReadingTraining(limit=5))
    assert adapt_lengths(named, data) == named


@pytest.mark.parametrize("language", [ENGLISH, CHINESE], ids=["english", "chinese"])
def test_facts_point_at_their_answers(language: FactLanguage) -> None:
    facts = FactsDataset(50, 5, 1, language)
    for question in (*facts.load_training(0), *facts.validation):
        (answer,) = question.answers
        assert question.passage[answer.begin :].startswith(answer.text)
        page = encode_question(question, Lexicon([]))
        assert page.extract_text(*page.span) == answer.text
        names = re.findall("".join(f"(?:{'|'.join(part)})" for part in language.syllables), question.text)
        assert all(name in question.passage for name in names)
        assert len(names) == PEOPLE
    assert not {one.passage for one in facts.load_training(0)} & {one.passage for one in facts.validation}


def test_an_answer_is_the_best_pair_by_exhaustive_search() -> None:
    torch.manual_seed(5)
    first, last = torch.randn(3, 7), torch.randn(3, 7)
    first[1, 5:], last[1, 5:] = LOWEST, LOWEST
    begins, ends, scores = find_best_spans(SpanScores(first, last, None), longest=3)
    for row in range(3):
        pairs = {
            (a, b): float(first[row].log_softmax(0)[a] + last[row].log_softmax(0)[b])
            for a in range(7)
            for b in range(a, min(7, a + 3))
        }
        best = max(pairs, key=pairs.__getitem__)
        assert (int(begins[row]), int(ends[row])) == best
        assert float(scores[row]) == pytest.approx(pairs[best])


@pytest.mark.parametrize("attention", ["flow", "none"])
def test_padding_does_not_matter(attention: Any) -> None:
    torch.manual_seed(2)
    model = SpanReader(SpanReaderConfig(attention=attention, hidden=5), torch.nn.Embedding(11, 3)).double().eval()
    passage, question = torch.randint(1, 11, (2, 13)), torch.randint(1, 11, (2, 7))
    together = model(
        ReadingInputs(PaddedRows(passage, torch.tensor([13, 6])), PaddedRows(question, torch.tensor([4, 7])))
    )
    alone = model(
        ReadingInputs(PaddedRows(passage[1:, :6], torch.tensor([6])), PaddedRows(question[1:], torch.tensor([7])))
    )
    assert torch.allclose(together.first[1, :6], alone.first[0], atol=1e-12)
    assert torch.allclose(together.last[1, :6], alone.last[0], atol=1e-12)
    assert (together.first[1, 6:] == LOWEST).all()


def test_vectors_of_others_come_as_text_or_arrays(tmp_path: Path) -> None:
    (tmp_path / "some.txt").write_text("cat 1 2 3\nsat 4 5 6.5\n")
    text = read_vectors(tmp_path / "some.txt")
    assert text.words == ["cat", "sat"]
    assert text.table.tolist() == [[1, 2, 3], [4, 5, 6.5]]
    words = numpy.array(b"cat\nsat")
    numpy.savez(tmp_path / "some.npz", words=words, vectors=text.table.numpy().astype(numpy.float16))
    arrays = read_vectors(tmp_path / "some.npz")
    assert arrays.words == text.words
    assert torch.equal(arrays.table, text.table)
    for content in ("cat 1 x\n", "cat 1 2\nsat 3\n", ""):
        (tmp_path / "bad.txt").write_text(content)
        with pytest.raises(InputError, match=r"vectors: got bad\.txt \(.*, expected a word and its numbers in each"):
            read_vectors(tmp_path / "bad.txt")


def test_vectors_of_others_stay_as_they_are(regard: Regard) -> None:
    write(Path("some.json"), *(make_article(str(number), [MAT]) for number in range(4)))
    Path("vectors.txt").write_text("cat 1 2 3\nmat 4 5 6.5\nother 7 8 9\n")
    given = {"data.vectors": Path("vectors.txt").resolve(), "data.validation": 1, "data.test": 1, "stop.steps": 3}
    refused = regard("train", "reading", "some.json", "--folder", "run", *to_flags(given))
    assert refused.errors == (
        "regard: reader.width: got 100, expected 3, that of the vectors; fix: set reader.width to 3\n"
    )
    done = regard("train", "reading", "some.json", "--folder", "run", *to_flags(given | {"reader.width": 3}))
    assert done.code == 0, done.errors
    from safetensors.torch import load_file

    table = load_file("run/weights.safetensors")["table.weight"]
    assert table[1:4].tolist() == [[1, 2, 3], [4, 5, 6.5], [7, 8, 9]]
    Path("vectors.txt").unlink()  # a run has them among its weights
    assert regard("evaluate", "run").code == 0


def test_vectors_of_others_are_there_in_a_run_that_was_cut_off_before_its_first_checkpoint(regard: Regard) -> None:
    write(Path("some.json"), *(make_article(str(number), [MAT]) for number in range(4)))
    Path("vectors.txt").write_text("cat 1 2 3\nmat 4 5 6.5\n")
    given = {"data.vectors": Path("vectors.txt").resolve(), "data.validation": 1, "data.test": 1, "reader.width": 3}
    more = {"stop.steps": 2, "every.log": 1, "every.evaluate": 2}
    assert regard("train", "reading", "some.json", "--folder", "run", *to_flags(given | more)).code == 0
    check_exact_resume(Path("run"), cut_at=1)
    Path("vectors.txt").write_text("cat 1 2 3\n")
    for checkpoint in Path("run/checkpoints").iterdir():
        shutil.rmtree(checkpoint)
    assert regard("resume", "run").errors == (
        f"regard: data.vectors: got {Path('vectors.txt').resolve()} with other words, expected those of run; "
        "fix: bring the file back, or start a new run\n"
    )


def test_an_unknown_word_is_itself_wherever_it_stands() -> None:
    page = encode_question(
        PassageQuestion("Who is Zork?", "Zork is here. Zork!", (Answer("here", 8),), "q"), Lexicon(["is"])
    )
    zork = page.question[2]
    assert [place for place, number in enumerate(page.passage) if number == zork] == [0, 4]
