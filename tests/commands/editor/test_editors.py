"""The settings of the page of editors in these editors themselves, where they are: NVIM and EMACS name their programs.

Neovim has to be 0.11 or later; Emacs needs Eglot. Neither is installed with the tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SAMPLE = """\
command = train
modelPath = "m.dnn"
Layers = 2:3:2
train = [
    action = train
    SimpleNetworkBuilder = [ layerSizes = $Layers$ ; trainingCriterion = SquareError ; evalCriterion = SquareError ]
    SGD = [
        maxEpochs = 2
        minibatchSiz = 10
    ]
]
"""
LUA = r"""
local function say(...) io.stdout:write(table.concat({...}, ' '), '\n') end
local function wait(what) vim.wait(20000, what, 20) end
vim.cmd.edit('sample.cntk')
wait(function() return #vim.diagnostic.get(0) > 0 end)
for _, d in ipairs(vim.diagnostic.get(0)) do say('finding', d.lnum + 1, d.code) end
vim.api.nvim_win_set_cursor(0, { 8, 10 })
vim.lsp.buf.hover()
local function window()
  for _, one in ipairs(vim.api.nvim_list_wins()) do
    if vim.api.nvim_win_get_config(one).relative ~= '' then return one end
  end
end
wait(window)
say('hover', vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window()), 0, 1, false)[1])
vim.api.nvim_win_set_cursor(0, { 3, 2 })
vim.lsp.buf.rename('Sizes')
wait(function() return vim.fn.getline(3):find('Sizes') end)
say('renamed', vim.fn.getline(3), vim.fn.getline(6):match('%$%w+%$'))
vim.lsp.buf.references()
wait(function() return #vim.fn.getqflist() > 0 end)
say('references', #vim.fn.getqflist())
vim.cmd('silent! cclose')
vim.api.nvim_win_set_cursor(0, { 9, 10 })
vim.lsp.buf.code_action({ apply = true })
wait(function() return vim.fn.getline(9):find('minibatchSize') end)
say('corrected', vim.trim(vim.fn.getline(9)))
vim.fn.setline(8, '        maxEpochs   =2')
vim.lsp.buf.format({ timeout_ms = 20000 })
say('laid out', vim.trim(vim.fn.getline(8)))
vim.cmd('qa!')
"""
LISP = r"""
(setq last-nonmenu-event ?x eglot-sync-connect 20 eglot-confirm-server-initiated-edits nil)
(defun say (&rest words) (princ (apply #'format words)) (terpri))
(defun await (test)
  (let ((n 0)) (while (and (< n 200) (not (funcall test))) (accept-process-output nil 0.1) (setq n (1+ n)))))
(defun line (n) (goto-char (point-min)) (forward-line (1- n))
  (string-trim (buffer-substring (line-beginning-position) (line-end-position))))
(find-file "sample.cntk")
(apply #'eglot (append (eglot--guess-contact) nil))
(await (lambda () (flymake-start) (flymake-diagnostics)))
(dolist (one (flymake-diagnostics))
  (say "finding %d %s" (line-number-at-pos (flymake-diagnostic-beg one))
       (and (string-match "CK[0-9]+" (flymake-diagnostic-text one)) (match-string 0 (flymake-diagnostic-text one)))))
(goto-char (point-min)) (search-forward "maxEpoch")
(let ((got nil))
  (eglot-hover-eldoc-function (lambda (text &rest _) (setq got text))) (await (lambda () got))
  (say "hover %s" (car (split-string got "\n"))))
(goto-char (point-min)) (search-forward "$Lay")
(eglot-rename "Sizes")
(say "renamed %s %s" (line 3) (nth 1 (split-string (line 6) "\\(layerSizes =\\|;\\)" t " +")))
(goto-char (point-min)) (search-forward "$Siz")
(say "references %d" (length (xref-backend-references 'eglot (xref-backend-identifier-at-point 'eglot))))
(line 9)
(cl-letf (((symbol-function 'completing-read) (lambda (_ all &rest _) (caar all))))
  (eglot-code-actions (line-beginning-position) (line-end-position) nil t))
(say "corrected %s" (line 9))
(line 8) (delete-region (point) (line-end-position)) (insert "        maxEpochs   =2")
(eglot-format-buffer)
(say "laid out %s" (line 8))
"""
SAID = {
    "finding 9 CK010",
    "renamed Sizes = 2:3:2 $Sizes$",
    "references 2",
    "corrected minibatchSize = 10",
    "laid out maxEpochs = 2",
}


def settings(language: str) -> str:
    """The settings for an editor, as they stand on its page."""
    page = (ROOT / "docs/editors.md").read_text(encoding="utf-8")
    found = re.search(rf"```{language}\n(.*?)```", page, re.DOTALL)
    assert found is not None
    return found[1]


def program(name: str) -> str:
    found = os.environ.get(name)
    if not found:
        pytest.skip(f"{name} names no editor")
    return found


def ask(folder: Path, *command: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    (folder / "sample.cntk").write_text(SAMPLE)
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=120, check=False
    )
    lines = set(done.stdout.splitlines())
    assert lines >= SAID, (done.stdout, done.stderr)
    assert any(line.startswith("hover ") and "maxEpochs = 2" in line for line in lines), done.stdout


def test_neovim_with_the_settings_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "init.lua").write_text(settings("lua"))
    (tmp_path / "probe.lua").write_text(LUA)
    ask(tmp_path, program("NVIM"), "--headless", "--clean", "-u", "init.lua", "-c", "luafile probe.lua")


def test_emacs_with_the_settings_of_the_page(tmp_path: Path) -> None:
    (tmp_path / "init.el").write_text(f"(package-initialize)\n(require 'eglot)\n{settings('elisp')}\n{LISP}")
    ask(tmp_path, program("EMACS"), "--batch", "-q", "-l", "init.el")
