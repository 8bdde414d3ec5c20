"""`check` finds in the sections of readers what ends their opening: no section says less than the run (S13)."""

from __future__ import annotations

import pytest

from cntkpy.cntk_config import ConfigError, UserError, parse
from cntkpy.commands.checks.check import findings_of
from cntkpy.readers import create_reader

CASES = [
    "deserializers=([type=ImageDeserializer;file=d.map;input=[features=[transforms=([type=Scale;width=2;height=2;channels=3])];labels=[dim=4]]])",
    "deserializers=([type=ImageDeserializer;file=d.map;input=[features=[transforms=([type=Scale;width=2;height=2;channels=3])];labels=[]]])",
    "deserializers=([type=ImageDeserializer;file=d.map;input=[features=[];labels=[labelDim=4]]])",
    "deserializers=([type=ImageDeserializer;file=d.map;input=[features=[transforms=([type=Scale;width=2;height=2])];labels=[labelDim=4]]])",
    "deserializers=([type=ImageDeserializer;file=d.map;input=[features=[transforms=([width=2;height=2])];labels=[labelDim=4]]])",
    "deserializers=([type=ImageDeserializer;file=d.map;input=[features=[transforms=()]]])",
    "deserializers=([type=ImageDeserializer;file=d.map])",
    "deserializers=([type=ImageDeserializer;file=d.map;input=[a=[transforms=()];b=[transforms=()];labels=[labelDim=3]]])",
    "deserializers=([type=Base64ImageDeserializer;file=d.map;input=[features=[transforms=()];labels=[dim=4]]])",
    "deserializers=([type=CNTKTextFormatDeserializer;file=d.ctf;input=[x=[format=dense]]])",
    "deserializers=([type=CNTKTextFormatDeserializer;file=d.ctf;input=[x=[dim=2]]])",
    "deserializers=([type=CNTKTextFormatDeserializer;file=d.ctf;input=[]])",
    "deserializers=([type=CNTKTextFormatDeserializer;file=d.ctf])",
    "deserializers=([type=HTKFeatureDeserializer;input=[x=[dim=2]]])",
    "deserializers=([type=HTKFeatureDeserializer;input=[x=[scpFile=d.scp]]])",
    "deserializers=([type=HTKMLFDeserializer;input=[x=[mlfFile=d.mlf]]])",
    "deserializers=([type=HTKMLFDeserializer;input=[x=[dim=4]]])",
    "deserializers=([type=HTKMLFDeserializer;input=[x=[labelDim=4]]])",
    "deserializers=([type=KaldiFeatureDeserializer;input=[x=[dim=4]]])",
    "deserializers=([type=KaldiLabelDeserializer;input=[x=[dim=4]]])",
    "deserializers=([type=TarDeserializer;file=d.tar;input=[x=[member=cls]]])",
    "deserializers=([type=TarDeserializer;file=d.tar;input=[x=[dim=3;transforms=()]]])",
    "deserializers=([type=TarDeserializer;input=[x=[dim=3]]])",
    "deserializers=([type=ParquetDeserializer;file=d.parquet;input=[x=[columns=a]]])",
    "deserializers=([type=CsvDeserializer;file=d.csv;input=[x=[columns=a:b;dim=3]]])",
    "deserializers=([type=CsvDeserializer;file=d.csv;input=[x=[columns=a;transforms=()]]])",
    "deserializers=([type=CNTKBinaryFormatDeserializer])",
    "readerType=ImageReader;file=d.map;features=[width=2;height=2];labels=[labelDim=3]",
    "readerType=ImageReader;file=d.map;features=[width=2;height=2;channels=1];labels=[dim=3]",
    "readerType=ImageReader;file=d.map;features=[width=2;height=2;channels=1]",
    "readerType=ImageReader;file=d.map;labels=[labelDim=3]",
    "readerType=UCIFastReader;file=d.txt;features=[dim=2];labels=[start=2;dim=1;labelDim=2;labelMappingFile=n]",
    "readerType=UCIFastReader;file=d.txt;features=[dim=2;start=0];labels=[dim=1;labelDim=2;labelMappingFile=n]",
    "readerType=UCIFastReader;file=d.txt;features=[dim=2;start=0];labels=[start=2;dim=1;labelMappingFile=n;labelType=category]",
    "readerType=UCIFastReader;file=d.txt;features=[dim=2;start=0];labels=[start=2;dim=1;labelDim=2;labelType=category]",
    "readerType=UCIFastReader;file=d.txt;features=[start=0]",
    "readerType=UCIFastReader;features=[start=0;dim=3]",
    "readerType=HTKMLFReader;features=[scpFile=d.scp;dim=2];labels=[mlfFile=d.mlf]",
    "readerType=HTKMLFReader;features=[scpFile=d.scp];labels=[mlfFile=d.mlf;labelDim=3]",
    "readerType=HTKMLFReader;features=[dim=3];labels=[mlfFile=d.mlf;labelDim=3]",
    "readerType=Kaldi2Reader;features=[dim=3;scpFile=a];labels=[mlfFile=d.mlf;labelDim=3]",
    'readerType=Kaldi2Reader;features=[dim=3;rx="ark:a"];labels=[mlfFile="ark:d.mlf";labelDim=3]',
    "readerType=CNTKBinaryReader",
    "readerType=BinaryReader",
    "readerType=LMSequenceReader;file=d.lm;mode=softmax",
    "readerType=LMSequenceReader;file=d.lm;mode=class;labelIn=[labelDim=3];labels=[labelDim=3]",
    "readerType=LUSequenceReader;file=d.lm",
    "readerType=LUSequenceReader;file=d.lm;features=[dim=3];labelIn=[dim=1;labelDim=3];labels=[dim=1]",
]

COMMAND = """command = t
modelPath = m
t = [ action = train ; SGD = [ maxEpochs = 1 ; minibatchSize = 2 ; learningRatesPerSample = 0.1 ]
SimpleNetworkBuilder = [ layerSizes = 2:2 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
reader = [ %s ] ]
"""
OF_NETWORKS = ("CK055", "CK056")
"""Codes of what is wrong between a reader and a network, which is not what is looked at here."""


def error_of_run(reader: str) -> str:
    """The message of an error in the section; "" if there is none, or one of its files, which are not there."""
    try:
        create_reader(reader)
    except ConfigError as error:
        return error.message
    except UserError:
        return ""
    return ""


@pytest.mark.parametrize("reader", CASES)
def test_no_less_than_the_run(reader: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = [one for one in findings_of(lambda: parse(COMMAND % reader)) if one.rule.code not in OF_NETWORKS]
    message = error_of_run(reader)
    assert not message or any(one.severity == "error" for one in found), message


def test_enough_of_them_end_a_run() -> None:
    assert sum(bool(error_of_run(reader)) for reader in CASES) > 25


def test_a_section_of_labels_without_their_number() -> None:
    """A network that needs the labels has no stream of them, in `check` and in the run."""
    reader = CASES[0]
    found = [one.diagnostic for one in findings_of(lambda: parse(COMMAND % reader))]
    assert any(one.kind == "MissingStream" and one.severity == "error" for one in found)
    assert any((one.hint or "").startswith("write labelDim=10 ") and one.severity == "warning" for one in found)


def test_readers_side_by_side_are_looked_at_once(cntkpy) -> None:
    """A section of ioNodeNames finds this name further out, but is no reader of others."""
    part = "%s=[file=d ; features%s=[dim=0] ; in%s=[token=w] ; out%s=[token=t ; tokenn=x]]"
    parts = " ; ".join(part % (name, name, name, name) for name in "pq")
    reader = f"readerType=LUSequenceReader ; ioNodeNames=p:q ; {parts}"
    text = f"command=t\nt=[action=train ; modelPath=m ; reader=[{reader}]]\n"
    got = cntkpy("check", "--select", "CK010", "m.cntk", files={"m.cntk": text})
    assert got.out.count("'tokenn' is not a known parameter") == 2
