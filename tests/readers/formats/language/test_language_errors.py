"""Bad corpora, lists and sections: each an error that says where and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from cntkpy.cntk_config import ConfigError, parse
from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.readers import DataError, Reader, create_reader

pytestmark = pytest.mark.malformed

FILES = {
    "corpus.txt": "</s> a b </s>\n</s> b zzz </s>\n",
    "classes.txt": "0 9 </s> 0\n1 12 a 0\n2 10 b 1\n3 1 <unk> 1\n",
    "corpus.tags": "w1 T1\nw2 T2\n\nw9 T9\n",
    "words": "w1\nw2\n<unk>\n",
    "tags": "T1\nT2\n<unk>\n",
    "map": "w1 w1\nw2 w2\n<unk> <unk>\n",
}
SEQUENCE = (
    'readerType=SequenceReader;randomize=none;wordclass="{d}/classes.txt";file="{d}/corpus.txt";features=[dim=0];'
    'labelIn=[labelType=Category;labelDim=4;labelMappingFile="{d}/in.map"];'
    'labels=[labelType=NextWord;labelDim=4;labelMappingFile="{d}/out.map"]'
)
LU = (
    'readerType=LUSequenceReader;file="{d}/corpus.tags";wordmap="{d}/map";features=[dim=0];'
    'labelIn=[labelType=Category;token="{d}/words";useWordMap=true];'
    'labels=[labelType=Category;token="{d}/tags"]'
)

# what a file holds instead (None: it is missing), what the message says; the line that the error names
BAD_FILES = [
    (SEQUENCE, "corpus.txt", None, "corpus.txt does not exist", ConfigError, None),
    (SEQUENCE, "corpus.txt", "", "no sentence of three or more words", DataError, None),
    (SEQUENCE, "corpus.txt", "\n\n  \n", "no sentence of three or more words", DataError, None),
    (SEQUENCE, "corpus.txt", "a b\n", "no sentence of three or more words", DataError, None),
    (SEQUENCE, "classes.txt", None, "classes.txt cannot be read: No such file", ConfigError, None),
    (SEQUENCE, "classes.txt", "", "classes.txt is empty", DataError, None),
    (SEQUENCE, "classes.txt", "0 9 </s> 0\n1 12 a\n", "has 3 fields, not the four", DataError, 2),
    (SEQUENCE, "classes.txt", "0 9 </s> 0\n1 1 12 a 0\n", "has 5 fields", DataError, 2),
    (SEQUENCE, "classes.txt", "0 9 </s> 0\nx 1 a 0\n", "does not hold whole numbers", DataError, 2),
    (SEQUENCE, "classes.txt", "0 9 </s> 0\n1 1 a -1\n", "does not hold whole numbers", DataError, 2),
    (SEQUENCE, "classes.txt", "0 9 </s> 0\n1 many a 0\n", "has the count 'many'", DataError, 2),
    (SEQUENCE, "classes.txt", "0 9 </s> 0\n2 1 a 0\n", "has the number 2, but words are numbered 0 to 1", DataError, 2),
    (SEQUENCE, "classes.txt", "0 9 </s> 0\n0 1 a 0\n", "has the number 0", DataError, 2),
    (SEQUENCE, "classes.txt", "0 9 a 0\n1 1 a 0\n", "'a' occurs twice", DataError, 2),
    (SEQUENCE, "classes.txt", "0 9 </s> 0\n1 1 a 1\n2 1 b 0\n3 1 c 0\n", "go down: word 2 has class 0", DataError, 3),
    (SEQUENCE, "classes.txt", "0 9 </s> 0\n1 12 a 0\n2 10 b 1\n", "labelDim is 4, but", ConfigError, None),
    (
        SEQUENCE,
        "classes.txt",
        "0 9 </s> 0\n1 12 a 0\n2 10 b 1\n3 1 c 1\n",
        "corpus.txt:2:8: the word 'zzz'",
        DataError,
        2,
    ),
    (SEQUENCE, "in.map", "</s>\n\na\n", "Line 2 of the label mapping file", DataError, 2),
    (SEQUENCE, "in.map", "</s>\na\na\n", "'a' occurs twice", DataError, 3),
    (SEQUENCE, "in.map", "</s>\na\nb\nc\nd\n<unk>\n", "has 4 words, but the vocabulary 6", ConfigError, None),
    (SEQUENCE, "in.map", "</s>\na\n", "corpus.txt:1:8: the word 'b'", DataError, 1),
    (LU, "corpus.tags", None, "corpus.tags does not exist", ConfigError, None),
    (LU, "corpus.tags", "", "has no sentence", DataError, None),
    (LU, "corpus.tags", "only\nsingle\nfields\n", "has no sentence", DataError, None),
    (LU, "words", None, "words cannot be read", ConfigError, None),
    (LU, "words", "", "words is empty", DataError, None),
    (LU, "words", "\nw1\n", "begins with an empty line", DataError, 1),
    (LU, "words", "w1\nw2\nw1\n", "'w1' occurs twice", DataError, 3),
    (LU, "words", "w1\nw2\nw3\n", "'w3' is not in the word map", DataError, None),
    (LU, "tags", "T1\n", "corpus.tags:2:4: the label 'T2'", DataError, 2),
    (LU, "tags", "T1\nT2\n", "corpus.tags:4:4: the label 'T9'", DataError, 4),
    (LU, "map", None, "map cannot be read", ConfigError, None),
    (LU, "map", "w1 w1\nw2\n", "Line 2 of the word map", DataError, 2),
    (LU, "map", "w1 w1\nw2 w2 w2\n", "has 3 columns, not two", DataError, 2),
    (LU, "map", "w1 w7\n", "Line 1 of the word map", DataError, 1),
]


def make(folder: Path, text: str, **changed: str | None) -> int:
    for name, content in {**FILES, **changed}.items():
        if content is not None:
            (folder / name).write_text(content)
    reader = create_reader(text.replace("{d}", str(folder)))
    reader.start_minibatch_loop(10, 0)
    samples = 0
    while (minibatch := reader.get_minibatch()) is not None:
        samples += minibatch.num_samples
    return samples


@pytest.mark.parametrize("text", [SEQUENCE, LU])
def test_the_good_ones(tmp_path: Path, text: str) -> None:
    assert make(tmp_path, text) > 0


def test_a_vocabulary_larger_than_the_word_class_file(tmp_path: Path) -> None:
    """Words without a class, though the list of words is as short as the word class file."""
    with pytest.raises(ConfigError, match=r"labelDim is 7, but the word class file .* has 4 words"):
        make(tmp_path, SEQUENCE.replace("labelDim=4", "labelDim=7"), **{"in.map": "</s>\na\nb\n<unk>\n"})


@pytest.mark.parametrize(("text", "name", "content", "message", "kind", "line"), BAD_FILES)
def test_bad_files(
    tmp_path: Path, text: str, name: str, content: str | None, message: str, kind: type[UserError], line: int | None
) -> None:
    with pytest.raises(kind) as caught:
        make(tmp_path, text, **{name: content})
    assert message in str(caught.value)
    assert type(caught.value) is kind
    if isinstance(caught.value, DataError):
        assert caught.value.path is not None
        assert caught.value.path.startswith(str(tmp_path))
        assert caught.value.line == line
        assert caught.value.hint
    else:
        assert caught.value.span is not None


def test_lines_that_are_not_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """After an empty line, where lists end: their words would silently be unknown ones."""
    make(tmp_path, LU, words="w1\nw2\n<unk>\n\n", map=FILES["map"] + "\n\n")
    assert "empty" not in caplog.text
    make(tmp_path, LU, words="w1\n<unk>\n\nw2\n\nw3\n", map=FILES["map"] + "\nw3 w1\n")
    assert f"The list of words {tmp_path}/words ends at line 3, which is empty; 2 after it are not read." in caplog.text
    assert f"The word map {tmp_path}/map ends at line 4, which is empty; 1 after it are not read." in caplog.text


BAD_SECTIONS = [
    (SEQUENCE, "features=[dim=0];", "words=[dimm=0];", "no section of features; 'dimm' of 'words' is not a known"),
    (SEQUENCE, "features=[dim=0];labelIn", "features", "no section of features, and 'features' is one of labels"),
    (LU, "useWordMap=true", "useWordMap=[Ture, False]", "is not a boolean"),
    (SEQUENCE, "features=[dim=0];", "mode=word;features=[dim=0];", "'word' is not one of class, softmax, nce"),
    (SEQUENCE, 'wordclass="{d}/classes.txt";', "", "neither a label mapping file"),
    (SEQUENCE, "labelType=Category", "labelType=NextWord", "are categories"),
    (SEQUENCE, "labelType=Category", "labelType=Words", "'Words' is not one of"),
    (SEQUENCE, "labels=", "third=[labelDim=1];labels=", "it has 3: labelIn, labels, third"),
    (SEQUENCE, 'labelMappingFile="{d}/out.map"]', "]\nlabels=x", "it has 1: labelIn"),
    (SEQUENCE, "file=", "cacheBlockSize=many;file=", "many"),
    (SEQUENCE, "file=", "nbruttsineachrecurrentiter=few;file=", "few"),
    (LU, 'token="{d}/words";', "", "token"),
    (LU, "useWordMap=true", "useWordMap=true;mode=words", "'words' is not one of plain, class"),
    (LU, 'wordmap="{d}/map";', "", "there is no word map"),
    (LU, "features=", "ignoresentencebegintag=true;features=", "leaving out the first word"),
    (LU, "features=", "inputLabel=labelIn;features=", "belong together"),
    (LU, "features=", "inputLabel=labelIn;outputLabel=other;features=", "no section of labels named 'other'"),
    (LU, "features=", "wordContext=near;features=", "near"),
    (LU, "features=", "ioNodeNames=a:b;features=", "there is no section 'a'"),
]


@pytest.mark.parametrize(("text", "old", "new", "message"), BAD_SECTIONS)
def test_bad_sections(tmp_path: Path, text: str, old: str, new: str, message: str) -> None:
    assert old in text
    with pytest.raises(ConfigError) as caught:
        make(tmp_path, text.replace(old, new, 1))
    assert message in str(caught.value)


def test_classes_of_labels(tmp_path: Path) -> None:
    text = LU.replace('token="{d}/tags"', 'token="{d}/tags";mode=class')
    for content, message in (("T1\nT2 0\n", "is not `word class`"), ("T1 1\nT2 0\n", "go down: word 1")):
        with pytest.raises(DataError, match=message):
            make(tmp_path, text, tags=content)


def test_a_sentence_longer_than_the_minibatch(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"tags:5: the sentence .* has 11 words, more than the minibatch size 10"):
        make(tmp_path, LU, **{"corpus.tags": "w1 T1\n\n\nlonely\n" + 11 * "w1 T1\n"})


def test_one_worker_only(tmp_path: Path) -> None:
    make(tmp_path, SEQUENCE)
    reader = create_reader(SEQUENCE.replace("{d}", str(tmp_path)))
    with pytest.raises(UserError, match="one worker only"):
        reader.start_minibatch_loop(10, 0, None, 0, 2)


INSIDE = LU.split(";", 1)[1]
OTHER = INSIDE.replace("features=", "more=").replace("labels=", "other=").replace("corpus.tags", "other.tags")
"""Another reader, whose streams have other names."""


def pair(folder: Path, other: str, more: str = "") -> Reader:
    """That of `LU` and another, side by side."""
    text = f"readerType=LUSequenceReader;{more}ioNodeNames=a:b;a=[{INSIDE}];b=[{other}]"
    return create_reader(text.replace("{d}", str(folder)))


def test_names_of_streams_side_by_side(tmp_path: Path) -> None:
    make(tmp_path, LU)
    with pytest.raises(DataError, match="have a section named 'features'"):
        pair(tmp_path, INSIDE)


def test_as_many_sentences_side_by_side(tmp_path: Path) -> None:
    make(tmp_path, LU)
    (tmp_path / "other.tags").write_text("w1 T1\n")
    with pytest.raises(DataError, match=r"readers a and b have \d+ and 1 sentences"):
        pair(tmp_path, OTHER)


def test_sentences_of_other_lengths_side_by_side(tmp_path: Path) -> None:
    make(tmp_path, LU)
    (tmp_path / "corpus.tags").write_text("w1 T1\n\nw1 T1\n\nw1 T1\n\n")
    (tmp_path / "other.tags").write_text("w1 T1\n\nw1 T1\nw1 T1\n\nw1 T1\n\n")
    reader = pair(tmp_path, OTHER, "nbruttsineachrecurrentiter=3;")
    reader.start_minibatch_loop(10, 0)
    with pytest.raises(DataError, match=r"give 3 and 2 .*corpus.tags \(from sentence 1 on\) and .*other.tags"):
        reader.get_minibatch()


def test_the_corpus_becomes_shorter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, SEQUENCE)
    monkeypatch.setattr("cntkpy.readers.formats.language.corpus.READ_BYTES", 8)
    monkeypatch.setattr("cntkpy.readers.formats.language.corpus.CACHE_BYTES", 0)
    reader = create_reader(
        SEQUENCE.replace("{d}", str(tmp_path)).replace("file=", "cacheBlockSize=1;prefetch=false;file=")
    )
    reader.start_minibatch_loop(10, 0)
    reader.get_minibatch()
    (tmp_path / "corpus.txt").write_text("")
    with pytest.raises(DataError, match="became shorter"):
        reader.start_minibatch_loop(10, 1)
        while reader.get_minibatch() is not None:
            pass


@pytest.mark.parametrize("kind", ["SequenceReader", "LUSequenceReader"])
def test_randomize_takes_its_words_only(kind: str) -> None:
    """A9: any other word meant `none` to one reader and `auto` to the other."""
    from cntkpy.readers.formats.language.parameters import LUSequenceReaderParameters, SequenceReaderParameters

    declared = {"SequenceReader": SequenceReaderParameters, "LUSequenceReader": LUSequenceReaderParameters}[kind]
    with pytest.raises(ConfigError, match="foo"):
        assert declared(parse(f"readerType={kind};randomize=foo")).randomize
    assert [declared(parse(f"randomize={word}")).randomize for word in ("Auto", "NONE", "true")] == [True, False, True]


def test_check_says_what_has_no_effect(tmp_path: Path) -> None:
    """A20: accepted, without effect."""
    from cntkpy.commands.checks.check import findings

    path = tmp_path / "a.cntk"
    path.write_text(
        "command=t\nt=[action=test;modelPath=m.dnn;reader=[readerType=SequenceReader;file=c.txt;features=[dim=0]\n"
        "labelIn=[labelType=category;labelDim=3;beginSequence=a];labels=[labelType=nextWord;labelDim=3]]]\n"
    )
    found = [str(one) for one in findings([f"configFile={path}"])]
    assert any("'beginSequence' has no effect" in one for one in found)
