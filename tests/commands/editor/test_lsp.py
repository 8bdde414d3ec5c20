"""The language server: a scripted session over standard input and output; and what it knows, without a server."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from layered_configurations import repository

from cntkpy.commands.editor import document_findings
from cntkpy.commands.editor.language import Analysis

ROOT = Path(__file__).resolve().parents[3]
TEXT = """\
command = train
DataDir = data
modelPath = m
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = 2:3 ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [
        maxEpochs = 2
        learningRatesPerMB = 0.1
        minibatchSizes = 3
    ]
    reader = [ file = "$DataDir$/t.ctf" ; input = [ features = [ dim = 2 ; format = dense ]
            labels = [ dim = 3 ; format = dense ] ] ]
]
"""


def test_hover_definition_and_completion() -> None:
    found = Analysis(TEXT, "main.cntk")
    assert "Number of epochs" in (found.hover(8, 12) or "")
    assert "DataDir = data" in (found.hover(12, 26) or "")
    span = found.definition(12, 26)
    assert span is not None
    assert (span.line, span.column) == (2, 1)
    assert (found.definition(1, 12) or span).line == 4
    names = dict(found.completions(10, 9))
    assert "useNAG" in names
    assert "maxEpochs" not in names  # it is there already
    assert "AutoAdjust" in names
    assert "doneFile" in dict(found.completions(3, 1))
    broken = Analysis(TEXT.replace("minibatchSizes = 3", "x = $"), "main.cntk", found)
    assert ("DataDir", None) in list(broken.completions(10, 14))


class Session:
    """A client that speaks the protocol."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, "-m", "cntkpy", "lsp"]
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0

    def send(self, method: str, params: Any, request: bool = False) -> Any:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if request:
            self.number += 1
            message["id"] = self.number
        data = json.dumps(message).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)
        self.process.stdin.flush()
        return self.receive(lambda got: got.get("id") == self.number)["result"] if request else None

    def receive(self, wanted) -> Any:
        assert self.process.stdout is not None
        while True:
            length = 0
            while (line := self.process.stdout.readline().strip()) != b"":
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            got = json.loads(self.process.stdout.read(length))
            if wanted(got):
                return got

    def diagnostics(self) -> list[dict[str, Any]]:
        return self.receive(lambda got: got.get("method") == "textDocument/publishDiagnostics")["params"]["diagnostics"]


def test_session(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/t.ctf").touch()
    uri = (tmp_path / "main.cntk").as_uri()
    session = Session(tmp_path)
    try:
        answer = session.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, request=True)
        assert answer["capabilities"]["hoverProvider"]
        session.send("initialized", {})
        document = {"uri": uri, "languageId": "cntk", "version": 1, "text": TEXT}
        session.send("textDocument/didOpen", {"textDocument": document})
        found = session.diagnostics()
        assert [(one["code"], one["range"]["start"]) for one in found] == [("CK010", {"line": 9, "character": 8})]
        text = TEXT.replace("minibatchSizes", "minibatchSize")
        change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": text}]}
        session.send("textDocument/didChange", change)
        assert session.diagnostics() == []
        at = {"textDocument": {"uri": uri}, "position": {"line": 9, "character": 10}}
        assert "Samples per minibatch" in session.send("textDocument/hover", at, request=True)["contents"]["value"]
        at["position"] = {"line": 11, "character": 26}
        place = session.send("textDocument/definition", at, request=True)
        assert place["range"]["start"] == {"line": 1, "character": 0}
        at["position"] = {"line": 9, "character": 8}
        items = session.send("textDocument/completion", at, request=True)
        labels = [item["label"] for item in items]
        orders = {item["sortText"].startswith("~") for item in items if item["documentation"].startswith("Ignored")}
        assert orders == {True}  # what has no effect comes last
        assert "useNAG" in labels
        options = {"textDocument": {"uri": uri}, "options": {"tabSize": 4, "insertSpaces": True}}
        assert session.send("textDocument/formatting", options, request=True) == []
        session.send("shutdown", None, request=True)
        session.send("exit", None)
        assert session.process.wait(timeout=20) == 0
    finally:
        session.process.kill()


def test_findings_have_a_version_and_are_published_once_for_quick_changes(tmp_path: Path) -> None:
    """Ten changes within some milliseconds are one; a client that pulls findings is sent none (D22)."""
    uri = (tmp_path / "main.cntk").as_uri()
    published = "textDocument/publishDiagnostics"
    session = Session(tmp_path)
    try:
        support = {"textDocument": {"publishDiagnostics": {"versionSupport": True}}}
        words = {"processId": None, "rootUri": None, "capabilities": support}
        answer = session.send("initialize", words, request=True)
        assert answer["capabilities"]["diagnosticProvider"]["interFileDependencies"] is True
        document = {"uri": uri, "languageId": "cntk", "version": 1, "text": TEXT}
        session.send("textDocument/didOpen", {"textDocument": document})
        assert session.receive(lambda got: got.get("method") == published)["params"]["version"] == 1
        for version in range(2, 12):
            text = {"text": TEXT + f"modelPahts{version} = 1\n"}
            change = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [text]}
            session.send("textDocument/didChange", change)
        params = session.receive(lambda got: got.get("method") == published)["params"]
        assert params["version"] == 11 and any("modelPahts11" in each["message"] for each in params["diagnostics"])
        report = session.send("textDocument/diagnostic", {"textDocument": {"uri": uri}}, request=True)
        assert report["kind"] == "full" and report["items"] == params["diagnostics"]
        session.send("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert session.receive(lambda got: got.get("method") == published)["params"]["diagnostics"] == []
    finally:
        session.process.kill()


def test_a_client_that_pulls_findings_is_sent_none(tmp_path: Path) -> None:
    uri = (tmp_path / "main.cntk").as_uri()
    session = Session(tmp_path)
    try:
        words = {"processId": None, "rootUri": None, "capabilities": {"textDocument": {"diagnostic": {}}}}
        session.send("initialize", words, request=True)
        document = {"uri": uri, "languageId": "cntk", "version": 1, "text": TEXT}
        session.send("textDocument/didOpen", {"textDocument": document})
        request = {"textDocument": {"uri": uri}}
        messages: list[Any] = []
        receive = session.receive
        session.receive = lambda wanted: receive(lambda got: messages.append(got) or wanted(got))  # type: ignore[method-assign]
        assert session.send("textDocument/diagnostic", request, request=True)["items"]
        assert [message.get("id") for message in messages] == [session.number]
    finally:
        session.process.kill()


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Session, Any]]:
    """A session, and what the server has answered when it began."""
    session = Session(tmp_path_factory.mktemp("opened"))
    try:
        yield (
            session,
            session.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, request=True),
        )
    finally:
        session.process.kill()


def test_names_and_columns_in_utf_16(opened: tuple[Session, Any], tmp_path: Path) -> None:
    """After characters that UTF-16 writes in two units, places are those that the editor counts."""
    text = 'a = "é😀😀" ; Dir = data ; modelPath = $Dir$/m\ncommand = t\nt = [ action = tain ]\n'
    uri = (tmp_path / "main.cntk").as_uri()
    session, _ = opened
    session.send("initialized", {})
    document = {"uri": uri, "languageId": "cntk", "version": 1, "text": text}
    session.send("textDocument/didOpen", {"textDocument": document})
    session.diagnostics()
    first = text.split("\n")[0]
    units = {word: len(first[: first.index(word)].encode("utf-16-le")) // 2 for word in ("Dir =", "Dir$")}
    assert units["Dir ="] == first.index("Dir =") + 2
    at = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": units["Dir$"] + 1}}
    place = session.send("textDocument/definition", at, request=True)
    assert place["range"]["start"] == {"line": 0, "character": units["Dir ="]}
    found = session.send("textDocument/references", {**at, "context": {"includeDeclaration": True}}, request=True)
    assert [one["range"]["start"]["character"] for one in found] == [units["Dir ="], units["Dir$"]]
    changed = session.send("textDocument/rename", {**at, "newName": "Folder"}, request=True)
    assert [one["range"]["end"]["character"] for one in changed["changes"][uri]] == [
        units["Dir ="] + 3,
        units["Dir$"] + 3,
    ]
    outline = session.send("textDocument/documentSymbol", {"textDocument": {"uri": uri}}, request=True)
    assert [one["name"] for one in outline] == ["a", "Dir", "modelPath", "command", "t"]
    assert outline[1]["selectionRange"]["start"]["character"] == units["Dir ="]
    assert [one["name"] for one in outline[4]["children"]] == ["action"]
    line = {"start": {"line": 2, "character": 0}, "end": {"line": 2, "character": 5}}
    asked = {"textDocument": {"uri": uri}, "range": line, "context": {"diagnostics": []}}
    (action,) = session.send("textDocument/codeAction", asked, request=True)
    assert action["title"] == "Replace with 'train'"
    assert action["edit"]["changes"][uri][0]["range"] == {
        "start": {"line": 2, "character": 15},
        "end": {"line": 2, "character": 19},
    }
    at["position"] = {"line": 2, "character": 15}
    labels = [one["label"] for one in session.send("textDocument/completion", at, request=True)]
    assert "train" in labels and "modelPath" not in labels


def test_without_pygls_one_message(cntkpy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    got = cntkpy("lsp")
    assert got.code == 1
    assert got.err.startswith("error: the language server needs pygls")
    assert "help: add the extra lsp: " in got.err


@pytest.mark.thorough
def test_without_pygls_one_message_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "pygls.py").write_text("raise ImportError('gone')\n")
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.path.insert(0, '.'); from cntkpy.commands.cli import main; sys.exit(main())",
            "lsp",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: the language server needs pygls")
    assert "help: add the extra lsp: " in done.stderr


def test_the_page_of_editors_names_what_the_server_can(opened: tuple[Session, Any]) -> None:
    """Every feature that the server tells an editor of stands on the page, and the other way round."""
    _, answer = opened
    told = {name.removesuffix("Provider") for name, value in answer["capabilities"].items() if value}
    named = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/editors.md").read_text(encoding="utf-8"), re.MULTILINE))
    assert named == told - {"textDocumentSync", "workspace", "positionEncoding", "executeCommand"}
    extension = json.loads((ROOT / "editors/vscode/package.json").read_text(encoding="utf-8"))
    (language,) = extension["contributes"]["languages"]
    assert set(language["extensions"]) <= {".cntk", ".bs", ".ndl"}
    assert extension["main"] == "./build/extension.js"  # which `npm run package` makes of it
    assert (ROOT / "editors/vscode/extension.js").exists()


def test_a_layer_of_a_project_shows_the_findings_of_its_runs(tmp_path: Path) -> None:
    for name, text in repository().items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    uri = (tmp_path / "models" / "small.cntk").as_uri()
    text = "hidden = 8\ntrain = [ SimpleNetworkBuilder = [ layerSizes = $dim$:x:$classes$ ] ]\n"
    session = Session(tmp_path)
    try:
        session.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, request=True)
        session.send("initialized", {})
        document = {"uri": uri, "languageId": "cntk", "version": 1, "text": repository()["models/small.cntk"]}
        session.send("textDocument/didOpen", {"textDocument": document})
        assert session.diagnostics() == []
        change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": text}]}
        session.send("textDocument/didChange", change)
        (found,) = [item for item in session.diagnostics() if item["code"] == "CK020"]
        assert found["range"]["start"] == {"line": 1, "character": 54}
        assert found["message"].endswith("(in all 4 runs)")
        session.send("shutdown", None, request=True)
        session.send("exit", None)
        assert session.process.wait(timeout=20) == 0
    finally:
        session.process.kill()


def open_session(folder: Path, uri: str, text: str, language: str) -> Session:
    session = Session(folder)
    session.send("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, request=True)
    session.send("initialized", {})
    document = {"uri": uri, "languageId": language, "version": 1, "text": text}
    session.send("textDocument/didOpen", {"textDocument": document})
    return session


def test_the_project_file_shows_its_findings(tmp_path: Path) -> None:
    files = repository()
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    path = tmp_path / "cntkpy.toml"
    session = open_session(tmp_path, path.as_uri(), files["cntkpy.toml"], "toml")

    def changed(version: int, text: str) -> list[tuple[str, int, int]]:
        """Return code, line and column, both from 1, of the findings after a change."""
        change = {"textDocument": {"uri": path.as_uri(), "version": version}, "contentChanges": [{"text": text}]}
        session.send("textDocument/didChange", change)
        starts = [(item["code"], item["range"]["start"]) for item in session.diagnostics()]
        return [(code, start["line"] + 1, start["character"] + 1) for code, start in starts]

    try:
        assert session.diagnostics() == []
        text = files["cntkpy.toml"]
        assert changed(2, text.replace('files = ["base', 'fils = ["base')) == [("CK080", 4, 1)]
        assert changed(3, text.replace("[[run]]", "[run]")) == [("CK080", 3, 2)]
        assert changed(4, f"{text}[run]\n") == [("CK080", 10, 5)]
        assert changed(5, f"{text}train.SGD.maxEpoch = {{ min = 1 }}\n") == [("CK082", 10, 11)]
        assert changed(6, f'exclude = ["old/*"]\n{text}') == [("CK082", 1, 12)]
        wordy = text.replace("[types]", 'words = ["train=[SGD=[maxEpochs=1000]]"]\n[types]')
        assert changed(7, wordy) == [("CK081", 7, 10)]
        (tmp_path / "base.cntk").write_text(files["base.cntk"].replace("dim = 20\n", ""))
        (tmp_path / "globals.cntk").write_text("dim = 20\n")
        assert changed(8, text) == [("CK007", 4, 9)]
        options = {"textDocument": {"uri": path.as_uri()}, "options": {"tabSize": 4, "insertSpaces": True}}
        assert session.send("textDocument/formatting", options, request=True) == []
    finally:
        session.process.kill()


def test_a_saved_layer_changes_the_findings_of_the_others(tmp_path: Path) -> None:
    files = repository()
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    path = tmp_path / "models" / "small.cntk"
    session = open_session(tmp_path, path.as_uri(), files["models/small.cntk"], "cntk")
    try:
        assert session.diagnostics() == []
        (tmp_path / "base.cntk").write_text(files["base.cntk"].replace("dim = 20\n", ""))
        session.send("textDocument/didSave", {"textDocument": {"uri": (tmp_path / "base.cntk").as_uri()}})
        assert {item["code"] for item in session.diagnostics()} == {"CK007"}
    finally:
        session.process.kill()


def test_other_files_in_toml_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "pyproject.toml"
    session = open_session(tmp_path, path.as_uri(), "[project]\nname = 'a'\n", "toml")
    try:
        assert session.diagnostics() == []
    finally:
        session.process.kill()


def test_all_runs_of_a_layer_are_checked_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = repository() | {
        f"env/e{number}.cntk": f'RunDir = "r{number}"\nDataDir = "d"\nenv = dev\n' for number in range(40)
    }
    files["env/zz.cntk"] = 'RunDir = "z"\nDataDir = "d"\nenv = nowhere\n'
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    path = tmp_path / "models" / "small.cntk"
    analysis = Analysis(files["models/small.cntk"].replace("labels, z", "labls, z"), str(path))
    monkeypatch.setattr(document_findings, "FIRST_SECONDS", 0.0)
    analysis.checked.advance(0.0)
    assert (
        analysis.checked.unchecked == "44 of 45 runs are not checked yet: e0-small, e1-small, e10-small, e11-small, ..."
    )
    findings = [finding for finding in analysis.checked.findings() if finding.rule.code == "CK051"]
    assert [finding.in_runs for finding in findings] == ["in run dev-small"] * 2
    analysis.checked.advance(60.0)
    assert analysis.checked.unchecked == ""
    findings = [finding for finding in analysis.checked.findings() if finding.rule.code == "CK051"]
    assert [finding.in_runs for finding in findings] == ["in all 45 runs"] * 2


def test_runs_that_are_not_checked_yet_are_named_in_the_editor(tmp_path: Path) -> None:
    layer = 'RunDir = "r"\nDataDir = "d"\nenv = dev\ntraceLevel = {}\n'  # each run has a network of its own
    files = repository() | {f"env/e{number}.cntk": layer.format(number) for number in range(120)}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    path = tmp_path / "models" / "small.cntk"
    session = open_session(
        tmp_path, path.as_uri(), files["models/small.cntk"].replace("hidden = 8", "hidden = 8\nidle = 9"), "cntk"
    )
    try:
        first = session.diagnostics()
        assert [item["severity"] for item in first if "not checked yet" in item["message"]] == [3], first
        while any("not checked yet" in item["message"] for item in first):
            position = {"textDocument": {"uri": path.as_uri()}, "position": {"line": 0, "character": 2}}
            assert session.send("textDocument/hover", position, request=True) is not None  # answered in between
            first = session.diagnostics()
        assert [item["message"].rpartition("(")[2] for item in first] == ["in all 124 runs)"]
    finally:
        session.process.kill()
