"""The conformance vectors of the specification: trees, queries, positions of errors, warnings."""

import math
from collections.abc import Iterable
from pathlib import Path

import pytest
from golden_cases.case import load_yaml

from cntkpy.cntk_config import ConfigError, ConfigParameters, ConfigValue, load
from cntkpy.cntk_config.export import Node, nodes

VECTORS = load_yaml(Path(__file__).parent / "config-vectors.yaml")["vectors"]
CONVERSIONS = {
    "string": str,
    "int": ConfigValue.as_int,
    "uint": ConfigValue.as_uint,
    "short": ConfigValue.as_short,
    "int64": ConfigValue.as_int64,
    "size": ConfigValue.as_size,
    "double": ConfigValue.as_double,
    "float": ConfigValue.as_float,
    "bool": ConfigValue.as_bool,
    "array": lambda v: [str(e) for e in v.as_array()],
    "ints": lambda v: list(v.as_array().integers()),
    "sizes": lambda v: list(v.as_array().sizes()),
    "floats": lambda v: list(v.as_array().floats()),
    "doubles": lambda v: list(v.as_array().doubles()),
    "set": lambda v: tree(nodes(v.as_section())),
    "arrayofsets": lambda v: [tree(nodes(s)) for s in v.as_sections()],
    "nested": lambda v: [[str(e) for e in inner.as_array()] for inner in v.as_array()],
}


def tree(level: Iterable[Node]) -> dict:
    result = {}
    for node in level:
        if node.error is not None:
            result[node.name] = {"$error": node.error.kind}
        else:
            result[node.name] = str(node.value) if node.section is None else tree(nodes(node.section))
    return result


def value_of(name: str, scope: ConfigParameters, query: dict):
    via, wanted, default = query.get("via", "get"), query["as"], query.get("default")
    if via == "exists":
        return scope.exists(name)
    if via == "existscurrent":
        return scope.exists_current(name)
    if via == "match":
        return scope.match(name, default)
    if via == "raw":
        return CONVERSIONS[wanted](scope.stored(name, raw=True))
    if wanted == "name":
        return scope.section(name).path if scope(name).startswith(("[", "{")) else scope(name).path
    if via == "typed" and wanted == "int":
        return scope(name, int(default))
    if wanted in ("set", "arrayofsets"):
        reader = {"set": lambda: tree(nodes(scope.section(name)))}
        reader["arrayofsets"] = lambda: [tree(nodes(s)) for s in scope.sections(name)]
        return reader[wanted]()
    value = scope(name) if default is None else scope(name, default)
    return CONVERSIONS[wanted](value)


def answer(config: ConfigParameters, query: dict):
    *sections, name = query["path"].split("/")
    for section in sections:
        config = config.section(section)
    result = value_of(name, config, query)
    if isinstance(result, float) and not math.isfinite(result):
        return {math.inf: "inf", -math.inf: "-inf"}.get(result, "nan")
    return result


@pytest.mark.parametrize("vector", VECTORS, ids=[v["id"] for v in VECTORS])
def test_vector(vector, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in vector.get("files", {}).items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("utf-8"))
    expect = vector.get("expect", {})
    if "error" in expect:
        with pytest.raises(ConfigError) as caught:
            load(vector["args"])
        check_error(caught.value, expect["error"])
        return
    config = load(vector["args"])
    if "tree" in expect:
        assert tree(nodes(config)) == expect["tree"]
    for query in vector.get("queries", []):
        if "error" in query:
            with pytest.raises(ConfigError) as caught:
                answer(config, query)
            check_error(caught.value, query["error"])
        else:
            assert answer(config, query) == query["value"], query
    kinds = {warning.kind for warning in config.warnings}
    assert kinds >= set(vector.get("warnings", []))


def check_error(error: ConfigError, expected: dict) -> None:
    assert error.kind == expected["class"]
    assert error.diagnostic.render()
    span = error.span
    if not expected.keys() & {"file", "arg"}:
        return
    assert span is not None
    if "file" in expected:
        assert (span.source.name, span.line, span.column) == (expected["file"], expected["line"], expected["column"])
    else:
        assert (span.source.name, span.column) == (f"<argument {expected['arg']}>", expected["column"])


def test_every_vector_is_here():
    assert len(VECTORS) == 240
