"""`action=writeWordAndClass`: a corpus small enough to count by hand, the rules of classes, every error."""

import itertools
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from cntkpy.commands.actions.hash_order import hash_of, hash_order
from cntkpy.commands.actions.write_word_and_class import choose_words, count_words, word_classes

TEXT = "</s> a b c a </s>\n</s> b </s>\n</s> c c b </s>\n</s> a </s>\n  b a b </s>\n\n</s> d a\n"
CONFIG = """
command = words
words = [ action = writeWordAndClass ; inputFile = t.txt ; beginSequence = "</s>" ; endSequence = "</s>"
    outputVocabFile = out/v.txt ; outputWord2Cls = out/c.txt ; outputCls2Index = out/i.txt
    outputMappingFile = out/m.txt
    vocabSize = 5 ; cutoff = 0 ; nbrClass = 2 ]
"""


@pytest.fixture
def run(cntkpy):
    def run(*words: str):
        return cntkpy("configFile=m.cntk", *words, files={"m.cntk": CONFIG, "t.txt": TEXT})

    return run


def test_vocabulary_and_classes(run, tmp_path: Path) -> None:
    got = run()
    assert got.code == 0, got.err
    # six sentences, their begin not counted; a: 2+1+1+1; b: 1+1+1+2; c: 1+2; d: 1 -> <unk>
    words = [("</s>", 6, 0), ("a", 5, 0), ("b", 5, 1), ("c", 3, 1), ("<unk>", 1, 1)]
    rows = [f"     {i}\t     {count}\t{word}\t{number}" for i, (word, count, number) in enumerate(words)]
    assert (tmp_path / "out/v.txt").read_text().splitlines() == rows
    assert (tmp_path / "out/c.txt").read_text() == "0\n0\n1\n1\n1\n"
    assert (tmp_path / "out/i.txt").read_text() == "0\n2\n"
    assert (tmp_path / "out/m.txt").read_text().split() == [word for word, _, _ in words]


def test_a_mark_at_the_start_is_no_part_of_a_word(cntkpy, tmp_path: Path) -> None:
    files = {"m.cntk": CONFIG, "t.txt": "\ufeff" + TEXT}
    assert cntkpy("configFile=m.cntk", files=files).code == 0
    words = [row.split()[1:3] for row in (tmp_path / "out/v.txt").read_text().splitlines()]
    assert words == [["6", "</s>"], ["5", "a"], ["5", "b"], ["3", "c"], ["1", "<unk>"]]


def test_without_classes_all_words_in_order(run, tmp_path: Path) -> None:
    assert run("words=[nbrClass=0;vocabSize=2]").code == 0
    rows = [line.split() for line in (tmp_path / "out/v.txt").read_text().splitlines()]
    assert [row[2] for row in rows] == ["</s>", "a", "b", "c", "d"]
    assert {row[3] for row in rows} == {"0"}
    assert not (tmp_path / "out/c.txt").exists()


def test_rare_words_lower_the_size(run, tmp_path: Path) -> None:
    got = run("words=[cutoff=3]")
    assert got.code == 0
    assert "Only 3 words occur more than 3 times: vocabSize is 3." in got.err
    rows = [line.split() for line in (tmp_path / "out/v.txt").read_text().splitlines()]
    assert [(row[2], row[1]) for row in rows] == [("<unk>", "9"), ("</s>", "6"), ("b", "5")]


def test_finished_work_is_left_alone(run, tmp_path: Path) -> None:
    run()
    old = tmp_path / "t.txt"
    os.utime(old, (1, 1))
    (tmp_path / "out/v.txt").write_text("mine")
    config = ("configFile=m.cntk",)
    from cntkpy.commands.cli import main

    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert main([*config]) == 0
        assert (tmp_path / "out/v.txt").read_text() == "mine"
        assert main([*config, "words=[makeMode=false]"]) == 0
        assert (tmp_path / "out/v.txt").read_text() != "mine"
    finally:
        os.chdir(here)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("words=[nbrClass=9]", "9 classes need as many words, but the vocabulary has 5"),
        ("words=[inputFile=no.txt]", "'no.txt': no such file"),
        ("words=[inputFile=empty.txt]", "empty.txt has no words"),
        ("words=[outputWord2Cls=default]", "nbrClass=2 needs outputWord2Cls"),
        ("words=[outputCls2Index=default]", "nbrClass=2 needs outputCls2Index"),
        ("words=[beginSequence=default]", "beginSequence"),
        ("words=[vocabSize=default]", "vocabSize"),
    ],
)
def test_errors(word: str, expected: str, run, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    got = run(word)
    assert got.code == 2
    assert expected in got.message


def test_different_symbols_are_both_counted() -> None:
    assert count_words(["a", "<s> a </s>", "<s>"], "<s>", "</s>") == {"<s>": 3, "a": 2, "</s>": 3}


def test_the_unknown_word_of_the_corpus_takes_the_rest() -> None:
    counts = count_words(["a a a b <unk> c"], "#", "#")
    assert choose_words(counts, 2, "<unk>") == [("<unk>", 4), ("a", 3)]


@pytest.mark.parametrize("classes", [1, 2, 3, 7])
def test_no_class_is_left_out(classes: int) -> None:
    for counts in ([1000, 1, 1, 1, 1, 1, 1], [5] * 20, list(range(30, 0, -1))):
        found = word_classes(counts, classes)
        assert found[0] == 0
        assert all(b - a in (0, 1) for a, b in itertools.pairwise(found))
        assert max(found) < classes


def test_classes_hold_about_equal_sums_of_roots() -> None:
    found = word_classes([4] * 98, 4)
    assert all(found.count(number) in (24, 25) for number in range(4))


def test_words_of_equal_count_stand_as_in_the_hash_map_of_the_gnu_library() -> None:
    """Orders printed by a program with std::unordered_map<std::string, double> and std::priority_queue (GCC 12)."""
    words = re.findall(
        r"\w+", "the quick brown fox jumps over a lazy dog while seventeen extraordinarily small cats sleep"
    )
    assert " ".join(hash_order(words)) == (
        "sleep the quick brown cats over fox jumps a lazy dog while seventeen extraordinarily small"
    )
    counts = Counter({word: 1 + number % 2 for number, word in enumerate(words)})
    chosen = [word for word, _ in choose_words(counts, 8, "<unk>")]
    assert " ".join(chosen) == "<unk> while cats fox over lazy quick extraordinarily"
    assert hash_of(b"") == 0x553E93901E462A6E
