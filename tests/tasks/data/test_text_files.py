"""Parallel text from files: the shapes people have it in, and what is said when something is wrong with it."""

import gzip
import os
from pathlib import Path

import pytest

from regard.errors import InputError
from regard.tasks.data import (
    Corpus,
    SentencePair,
    load_parallel_files,
    load_parallel_folder,
    load_parallel_table,
    text_files,
)
from regard.tasks.data.pair_rows import normalize_text
from regard.tasks.data.splits import split_corpus
from regard.tasks.data.text_files import read_lines

SHARED = Path(os.environ.get("REGARD_DATA") or Path(__file__).parents[3].parent / "shared" / "data")


def write(folder: Path, **files: str | bytes) -> None:
    for name, content in files.items():
        raw = content.encode() if isinstance(content, str) else content
        (folder / name.replace("__", ".")).write_bytes(raw)


def make_lines(word: str, count: int) -> str:
    return "".join(f"{word} {number}\n" for number in range(count))


def list_pairs(corpus: Corpus) -> list[SentencePair]:
    return sorted([*corpus.train, *corpus.validation, *(pair for test in corpus.tests.values() for pair in test)])


def test_two_files_plain_or_gzip_with_all_kinds_of_line_ends(tmp_path: Path) -> None:
    french = "\ufeffun\u00a0!\r\n  deux   trois \r\nquatre\u2028cinq\r\nsix\r\n"
    write(tmp_path, a__en="one!\ntwo three\nfour five\nsix", b__fr__gz=gzip.compress(french.encode()))
    corpus = load_parallel_files(tmp_path / "a.en", tmp_path / "b.fr")
    assert list_pairs(corpus) == sorted(
        [
            SentencePair("one!", "un\u00a0!"),
            SentencePair("two three", "deux trois"),
            SentencePair("four five", "quatre\u2028cinq"),
            SentencePair("six", "six"),
        ]
    )
    assert len(corpus.notes) == 1  # how many were held out


def test_a_table_in_either_direction(tmp_path: Path) -> None:
    write(tmp_path, t__tsv="Hi.\t你好。\tby someone\nRun!\t跑！\tby another\nStop\t停\tby a third\n")
    assert SentencePair("Hi.", "你好。") in list_pairs(load_parallel_table(tmp_path / "t.tsv"))
    assert SentencePair("跑！", "Run!") in list_pairs(load_parallel_table(tmp_path / "t.tsv", (1, 0)))


def test_a_folder_with_all_splits(tmp_path: Path) -> None:
    for name, count in (("train", 7), ("valid", 3), ("test_2016.lc", 2), ("test_2017.lc", 5)):
        for language in ("en", "de", "fr"):
            (tmp_path / f"{name}.{language}").write_text(make_lines(f"{name}{language}", count))
    corpus = load_parallel_folder(tmp_path, "en", "de")
    assert corpus.train[3] == SentencePair("trainen 3", "trainde 3")
    assert corpus.load_training(0) == corpus.load_training(5) == corpus.train
    assert (len(corpus.train), len(corpus.validation)) == (7, 3)
    assert {name: len(pairs) for name, pairs in corpus.tests.items()} == {"test_2016": 2, "test_2017": 5}


def test_missing_splits_are_cut_from_the_training_pairs(tmp_path: Path) -> None:
    write(tmp_path, train__en=make_lines("a", 200), train__de=make_lines("b", 200))
    without_any = load_parallel_folder(tmp_path, "en", "de")
    assert len(without_any.train) == 160
    write(tmp_path, test__en=make_lines("c", 3), test__de=make_lines("d", 3))
    with_test = load_parallel_folder(tmp_path, "en", "de")
    assert len(with_test.train) == 180
    assert list(with_test.tests) == ["test"]
    assert with_test.validation == without_any.validation


def test_no_sentence_of_the_test_is_trained_on_even_with_another_translation() -> None:
    pairs = [SentencePair(f"s{number // 3}", f"t{number // 2}!") for number in range(0, 600, 6)]
    pairs += [SentencePair(pair.source.upper() + ".", pair.target + " other") for pair in pairs]
    corpus = split_corpus(pairs, share=0.1)
    assert len(corpus.validation) >= 20
    seen = {normalize_text(pair.source) for pair in corpus.train}
    for held_out in (corpus.validation, corpus.tests["test"]):
        assert held_out
        assert not seen & {normalize_text(pair.source) for pair in held_out}
    shuffled = split_corpus(pairs[::-1], share=0.1)
    assert set(shuffled.validation) == set(corpus.validation), "the order of the file does not matter"


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            make_lines("a", 7),
            make_lines("b", 5),
            "data: got 7 lines in x.en and 5 in x.de, expected equally many; "
            "fix: align them: line i of one must translate line i of the other",
        ),
        (
            make_lines("a", 5),
            b"eins\nzwei\ndr\xffei\n",
            "x.de: got byte 0xff in line 3, expected UTF-8 text; "
            "fix: convert it, for example with iconv -f latin1 -t utf-8",
        ),
        (
            make_lines("a", 5),
            " \n\n",
            "x.de: got an empty file, expected one sentence a line; fix: check the path and the file's origin",
        ),
        (
            "one",
            "eins",
            "data: got 1 pair to train on, validate and test, expected at least 3 that differ; "
            "fix: add more; a translator needs thousands",
        ),
        (
            "\nb",
            "a\n\n",
            "x.en: got no pair with text on both sides, expected one pair a line; fix: check that the files correspond",
        ),
        (
            make_lines("a", 5),
            gzip.compress(make_lines("b", 5).encode(), mtime=0)[:-9],
            "x.de: got a damaged gzip file (Compressed file ended before the end-of-stream marker was reached), "
            "expected a whole one; fix: fetch it again",
        ),
    ],
    ids=["different lengths", "not UTF-8", "empty", "one pair", "nothing on both sides", "cut gzip"],
)
def test_bad_files_are_one_sentence(tmp_path: Path, source: str | bytes, target: str | bytes, message: str) -> None:
    write(tmp_path, x__en=source, x__de=target)
    with pytest.raises(InputError) as caught:
        load_parallel_files(tmp_path / "x.en", tmp_path / "x.de")
    assert str(caught.value) == message


def test_empty_lines_are_counted_and_left_out(tmp_path: Path) -> None:
    write(tmp_path, x__en="a\n\nc\nd\n \nf\n", x__de="A\nB\nC\n\nE\nF\n")
    corpus = load_parallel_files(tmp_path / "x.en", tmp_path / "x.de")
    assert list_pairs(corpus) == [("a", "A"), ("c", "C"), ("f", "F")]
    assert corpus.notes == (
        "held out of x.en and x.de by a hash of their text; pairs that share a sentence stay together",
        "x.en: left out 3 of 6 lines, empty on one side or both",
    )


def test_an_empty_column_is_an_empty_line(tmp_path: Path) -> None:
    write(tmp_path, t__tsv="a\tA\n\tB\nc\t\n\nd\tD\ne\tE\n")
    corpus = load_parallel_table(tmp_path / "t.tsv")
    assert list_pairs(corpus) == [("a", "A"), ("d", "D"), ("e", "E")]
    assert corpus.notes[1:] == ("t.tsv: left out 3 of 6 lines, empty on one side or both",)


def test_a_table_without_tabs(tmp_path: Path) -> None:
    write(tmp_path, t__tsv="a\tb\nc d\n")
    with pytest.raises(InputError, match=r"^t.tsv: got 1 columns in line 2, expected at least 2; fix: separate"):
        load_parallel_table(tmp_path / "t.tsv")


def test_a_folder_that_does_not_fit(tmp_path: Path) -> None:
    write(tmp_path, train__en="a", train__fr="b")
    with pytest.raises(InputError, match=r"without files in both en and de, .*; fix: choose two of en, fr$"):
        load_parallel_folder(tmp_path, "en", "de")
    write(tmp_path, train__bpe__en="a", train__bpe__fr="b")
    with pytest.raises(InputError, match=r"with train, train.bpe to train on and nothing to validate on, expect"):
        load_parallel_folder(tmp_path, "en", "fr")
    with pytest.raises(InputError, match=r"^data: got no .*none, expected a file or folder that exists; fix: "):
        load_parallel_folder(tmp_path / "none", "en", "fr")


def test_a_folder_is_found_below_regard_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    write(tmp_path / "mine", train__en=make_lines("a", 9), train__de=make_lines("b", 9))
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    assert len(list_pairs(load_parallel_folder(Path("mine"), "en", "de"))) == 9


@pytest.mark.skipif(not (SHARED / "multi30k").is_dir(), reason="no Multi30k here")
@pytest.mark.parametrize("form", [".", "tok"])
def test_multi30k_as_it_lies(form: str) -> None:
    corpus = load_parallel_folder(SHARED / "multi30k" / form, "en", "de")
    assert (len(corpus.train), len(corpus.validation)) == (29_000, 1_014)
    assert {name: len(pairs) for name, pairs in corpus.tests.items()} == {
        "test_2016_flickr": 1_000,
        "test_2017_flickr": 1_000,
    }
    assert corpus.notes == ()


@pytest.mark.skipif(not (SHARED / "tatoeba").is_dir(), reason="no Tatoeba here")
def test_tatoeba_as_it_lies_is_divided_without_leaks() -> None:
    corpus = load_parallel_table(SHARED / "tatoeba" / "cmn.txt.gz", (1, 0))
    assert len(list_pairs(corpus)) == len(list(read_lines(SHARED / "tatoeba" / "cmn.txt.gz"))) == 29_155
    for side in (0, 1):
        trained = {normalize_text(pair[side]) for pair in corpus.train}
        tested = {normalize_text(pair[side]) for pair in [*corpus.validation, *corpus.tests["test"]]}
        assert not trained & tested
    assert len(corpus.tests["test"]) > 500


def test_lines_are_the_same_however_the_file_is_cut_into_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, x="\ufeffa  b\r\n\n ä\tc \u2028d\n\n日本")
    whole = list(read_lines(tmp_path / "x"))
    assert whole == ["a b", "", "ä\tc \u2028d", "", "日本"]
    for size in range(1, 9):
        monkeypatch.setattr(text_files, "BLOCK", size)
        assert list(read_lines(tmp_path / "x")) == whole
    monkeypatch.setattr(text_files, "LINE", 7)
    with pytest.raises(InputError, match=r"^x: got a line of more than 7 bytes, expected one sentence a line; fix: "):
        list(read_lines(tmp_path / "x"))
    write(tmp_path, y=b"a\nb\n\xff\n")
    with pytest.raises(InputError, match=r"^y: got byte 0xff in line 3, expected UTF-8 text; fix: "):
        list(read_lines(tmp_path / "y"))
