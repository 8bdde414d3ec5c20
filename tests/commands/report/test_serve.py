"""`cntkpy runs --serve`: who gets the page, what it shows of runs that go on, how it ends.

Chromium looks at it too, where it is installed.
"""

import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.commands.report import serve
from cntkpy.commands.report.page import page
from cntkpy.commands.report.serve import LivePage, RunsServer
from cntkpy.commands.runs.find import find_runs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def write_run(folder: Path, name: str, epochs: int, status: int | None = 0) -> None:
    """Write the event file of a run."""
    start = {"time": "2026-01-01T00:00:00+00:00", "event": "run started", "words": ["configFile=digits.cntk", name]}
    start["settings"] = [{"name": "rate", "value": name}]
    events = [start, {"event": "action", "command": "train", "action": "train"}]
    for epoch in range(1, epochs + 1):
        value = 1 / (epoch + len(name))
        events.append({"event": "epoch finished", "epoch": epoch, "epochs": 20, "nodes": {"ce": value}, "seconds": 1})
    if status is not None:
        events.append({"event": "run finished", "status": status})
    path = folder / name / "log.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(event) + "\n" for event in events))


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[RunsServer, Path]]:
    """A server of two runs, and their folder."""
    folder = tmp_path / "runs"
    write_run(folder, "a", 3)
    write_run(folder, "bb", 3, None)
    (folder / "secret.txt").write_text("not served")
    with RunsServer(LivePage([str(folder)]), 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server, folder
        server.shutdown()
        thread.join(10)


def ask(server: RunsServer, target: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.putrequest(method, target, skip_host=True)
    for name, value in {"Host": f"127.0.0.1:{server.port}", **headers}.items():
        if value:
            connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, dict(answer.getheaders()), text


def test_the_page_and_its_newest_state(served: tuple[RunsServer, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    server, folder = served
    target = f"/?token={server.token}"
    status, headers, text = ask(server, target)
    assert status == 200
    assert "<title>digits: a, bb - cntkpy</title>" in text
    assert 'data-live="2"' in text
    assert "connect-src 'self'" in unescape(text)
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    monkeypatch.setattr(server.live, "_made", 0.0)
    status, _, same = ask(server, target, If_None_Match=headers["ETag"])
    assert (status, same) == (304, "")
    write_run(folder, "ccc", 5)
    monkeypatch.setattr(server.live, "_made", 0.0)
    status, _, text = ask(server, target, If_None_Match=headers["ETag"])
    assert status == 200
    assert "<title>digits: a, bb, ccc - cntkpy</title>" in text
    shutil.rmtree(folder)
    monkeypatch.setattr(server.live, "_made", 0.0)
    assert ask(server, target)[2] == text  # as it was last


def test_the_policy_of_a_page_holds_for_its_newer_states(tmp_path: Path) -> None:
    """The browser applies the policy of the page that is open to the text of the newer one, its style included."""
    policies: list[str] = []
    for name in ("a", "b", "c"):
        write_run(tmp_path, name, 3)
        policies += re.findall(r'Content-Security-Policy" content="([^"]*)"', page(find_runs([str(tmp_path)]), 2))
    assert len(policies) == 3
    assert len(set(policies)) == 1


def test_a_folder_that_has_no_runs_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    live = LivePage([str(tmp_path), str(tmp_path / "empty")])
    assert "<h1>No runs yet</h1>" in live.content().decode()
    write_run(tmp_path, "a", 3)
    monkeypatch.setattr(live, "_made", 0.0)
    assert "<h1>a</h1>" in live.content().decode()
    (tmp_path / "note").write_text("no run")
    with pytest.raises(UserError, match="is no run"):
        LivePage([str(tmp_path / "note")])


@pytest.mark.parametrize(
    "query",
    ["", "?", "?token", "?token=", "?token=x", "?token=TOKEN0", "?token=TOKEN&token=x", "?token=%FF", "?other=TOKEN"],
)
def test_without_the_token_there_is_nothing(served: tuple[RunsServer, Path], query: str) -> None:
    server, _ = served
    status, _, text = ask(server, "/" + query.replace("TOKEN", server.token))
    assert (status, text) == (403, "403 Forbidden\n")
    assert ask(server, "/" + query.replace("TOKEN", server.token), "HEAD")[0] == 403


def test_tokens_are_compared_in_constant_time(served: tuple[RunsServer, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    server, _ = served
    compared: list[tuple[bytes, bytes]] = []

    def compare(given: bytes, token: bytes) -> bool:
        compared.append((given, token))
        return False

    monkeypatch.setattr(serve.hmac, "compare_digest", compare)
    assert ask(server, f"/?token={server.token}")[0] == 403
    assert ask(server, "/nothing")[0] == 403
    assert compared == [(server.token.encode(),) * 2, (b"", server.token.encode())]


@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:PORT", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:PORT."]
)
def test_another_name_of_the_host_is_refused(served: tuple[RunsServer, Path], host: str) -> None:
    """A page of another site can make its own name lead here (DNS rebinding); the token does not help it, either."""
    server, _ = served
    target = f"/?token={server.token}"
    assert ask(server, target, Host=host.replace("PORT", str(server.port)))[0] == 403
    assert ask(server, target, Host=f"LocalHost:{server.port}")[0] == 200


@pytest.mark.parametrize("path", ["/secret.txt", "/../secret.txt", "//x/", "/a/log.jsonl", "/%2e%2e/etc/passwd"])
def test_nothing_else_is_served(served: tuple[RunsServer, Path], path: str) -> None:
    server, _ = served
    status, _, text = ask(server, f"{path}?token={server.token}")
    assert (status, text) == (404, "404 Not Found\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_it_is_read_only(served: tuple[RunsServer, Path], method: str) -> None:
    server, _ = served
    assert ask(server, f"/?token={server.token}", method)[0] == 501


def test_requests_that_are_none_end_nothing(served: tuple[RunsServer, Path], capfd: pytest.CaptureFixture[str]) -> None:
    server, _ = served
    for content in (b"", b"\r\n\r\n", b"GET\r\n\r\n", b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n", b"\xff" * 100_000):
        with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
            answer = b""
            with contextlib.suppress(OSError):  # the server may have closed it before all was sent
                connection.sendall(content)
                connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(1 << 16)
            assert b"digits" not in answer
    assert ask(server, f"/?token={server.token}")[0] == 200
    assert capfd.readouterr().err == ""


def test_it_listens_on_the_loopback_only(served: tuple[RunsServer, Path]) -> None:
    server, folder = served
    assert server.server_address[0] == "127.0.0.1"
    with pytest.raises(UserError, match=r"cannot listen on 127\.0\.0\.1:\d+: another program listens there"):
        RunsServer(LivePage([str(folder)]), server.port)


def test_tokens_are_new_with_each_start(served: tuple[RunsServer, Path]) -> None:
    server, folder = served
    with RunsServer(LivePage([str(folder)]), 0) as second:
        assert len(second.token) >= 32
        assert second.token != server.token


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it(tmp_path: Path, number: signal.Signals, status: int) -> None:
    write_run(tmp_path, "a", 3)
    command = [sys.executable, "-m", "cntkpy", "runs", "--serve"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        url = process.stdout.readline()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}\n", url)
        process.send_signal(number)
        out, err = process.communicate(timeout=10)
    finally:
        process.kill()
    assert process.returncode == status
    assert out == ""
    assert "Traceback" not in err


def test_the_browser_gets_a_file_that_only_this_user_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its command line, which all users of the machine see, has no token."""
    write_run(tmp_path, "a", 3)
    opened: list[tuple[str, str, int]] = []

    def open_(url: str) -> bool:
        file = Path(url.removeprefix("file://"))
        opened.append((url, file.read_text(), file.parent.stat().st_mode & 0o777))
        return False

    monkeypatch.setattr(serve.webbrowser, "open", open_)
    monkeypatch.setattr(RunsServer, "serve_forever", lambda self: None)
    serve.serve([str(tmp_path)], opens=True)
    (url, text, mode), said = opened[0], capsys.readouterr()
    assert said.out.strip() in text
    assert "token" not in url
    assert mode == 0o700
    assert "no browser was found" in said.err
    assert not Path(url.removeprefix("file://")).exists()
    serve.serve([str(tmp_path)])
    assert len(opened) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--port", "1"], "--port and --open go with --serve only"),
        (["--open"], "--port and --open go with --serve only"),
        (["--serve", "--wide"], "--serve goes with folders of runs"),
        (["--serve", "--format", "json"], "--serve goes with folders of runs"),
        (["--serve", "--port", "70000"], "70000 is not in the range"),
        (["--serve", "none"], "cannot read none"),
    ],
)
def test_mistakes(cntkpy, words: list[str], message: str) -> None:
    got = cntkpy("runs", *words)
    assert got.code == 2
    assert message in got.err


ACTS = """
const chart = () => document.querySelector("figure.chart"), table = () => document.querySelector("table.summary");
const fold = () => document.querySelector("details"), said = [], before = document.querySelector("main");
const press = (root, text) => [...root.querySelectorAll("button")].find((one) => one.textContent === text);
document.querySelector("#run0").click();
document.querySelector("#log").click();
fold().open = true;
press(table(), "epochs").click(); press(table(), "epochs").click();
press(chart(), "+").click();
window.scrollTo(0, 300);
const state = () => [
  ...["#run0", "#run1", "#log"].map((name) => document.querySelector(name).checked),
  fold().open, [...table().tHead.rows[0].cells].map((cell) => cell.getAttribute("aria-sort")).join(),
  window.scrollY, [...document.querySelectorAll(".run0")].every((line) => line.classList.contains("off")),
  chart().querySelector("svg.scale-log .plot").getAttribute("viewBox") !== "0 0 10000 10000",
];
const names = () => [...table().tBodies[0].rows].map((row) => row.cells[0].textContent.replace("\\u2605", "").trim());
said.push(["before", state(), names()]);
const waiting = setInterval(() => {
  if (document.querySelector("main") === before) return;
  clearInterval(waiting);
  said.push(["after", state(), names(), document.title, document.querySelector("#ended").hidden]);
  document.documentElement.dataset.said = JSON.stringify(said);
}, 50);
"""


class Scripted(LivePage):
    """The page with a script of the test; a third run is there after the first answer."""

    folder: Path
    answers = 0

    def content(self) -> bytes:
        self.answers += 1
        if self.answers > 1:
            write_run(self.folder, "ccc", 9)
        self._made = 0.0
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", super().content().decode())
        return text.replace("</body>", f"<script>{ACTS}</script></body>").encode()


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_a_refresh_in_chromium_keeps_what_the_reader_has_chosen(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    write_run(folder, "a", 3)
    write_run(folder, "bb", 7)
    live = Scripted([str(folder)])
    live.folder = folder
    with RunsServer(live, 0) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        options += ["--window-size=800,600", "--virtual-time-budget=20000", "--enable-logging=stderr", "--dump-dom"]
        command = [str(CHROMIUM), *options, server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        server.shutdown()
    attribute = re.search(r'data-said="([^"]*)"', done.stdout)
    assert attribute is not None, done.stderr
    said = {name: rest for name, *rest in json.loads(unescape(attribute[1]))}
    assert said["before"] == [[False, True, True, True, ",,descending,,,,,", 300, True, True], ["bb", "a"]]
    state, names, title, hidden = said["after"]
    assert state == said["before"][0]
    assert names == ["ccc", "bb", "a"]
    assert title == "digits: a, bb, ccc - cntkpy"
    assert hidden is True
    assert ":CONSOLE" not in done.stderr, done.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_the_policy_of_the_live_page_lets_it_ask_its_server(tmp_path: Path) -> None:
    """Without a script of the test: the page in Chromium takes newer states, and the console stays empty."""
    write_run(tmp_path, "a", 3)
    live = LivePage([str(tmp_path)])
    asked: list[float] = []
    original = live.content

    def content() -> bytes:
        asked.append(time.monotonic())
        write_run(tmp_path, "b" * len(asked), 3)
        live._made = 0.0
        return original()

    live.content = content
    with RunsServer(live, 0) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        options += ["--virtual-time-budget=9000", "--enable-logging=stderr", "--dump-dom"]
        command = [str(CHROMIUM), *options, server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, env=os.environ)
        server.shutdown()
    assert len(asked) >= 3
    assert re.search(r"<h1>(\d+ runs of digits|digits: a, b, bb.*?)</h1>", done.stdout)
    assert ":CONSOLE" not in done.stderr, done.stderr
