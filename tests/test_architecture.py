"""The import directions of the architecture: downwards only, and the heavy libraries where they belong, on use."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

ALLOWED = {
    "grammar": set(),
    "cntk_config": {"grammar"},
    "readers": {"cntk_config"},
    "networks": {"cntk_config", "grammar"},
    "trainers": {"networks", "readers", "cntk_config"},
    "commands": {"trainers", "networks", "readers", "cntk_config", "grammar"},
    "cntkpy": {"commands", "trainers", "networks", "readers", "cntk_config"},
}
HEAVY = {
    "jax": {"networks", "trainers"},
    "jaxlib": set(),
    "numba": {"readers"},
    "safetensors": {"networks", "trainers"},
}
"""Which packages may import the heavy libraries at all."""


def sources(package: str) -> list[Path]:
    if package == "cntkpy":
        return [ROOT / "cntkpy.py"]
    return sorted((ROOT / package).rglob("*.py"))


def imports(path: Path) -> list[tuple[int, str]]:
    """Every import of a file, those inside functions too, and names given to importlib as a literal."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inside = path.relative_to(ROOT).parts[0]
            found.append((node.lineno, inside if node.level else node.module or ""))
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute | ast.Name)
            and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id) == "import_module"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            found.append((node.lineno, str(node.args[0].value)))
    return found


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_go_downwards(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {package} imports {name}"
        for path in sources(package)
        for line, name in imports(path)
        for top in [name.split(".")[0]]
        if top in ALLOWED and top != package and top not in ALLOWED[package]
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("package", ALLOWED)
def test_heavy_libraries_stay_in_their_packages(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {package} imports {name}"
        for path in sources(package)
        for line, name in imports(path)
        if package not in HEAVY.get(name.split(".")[0], {package})
    ]
    assert not wrong, "\n".join(wrong)


LIGHT = [
    "cntk_config",
    "cntkpy",
    "commands.checks.check",
    "commands.cli",
    "commands.runner.run",
    "commands.tools.show",
    "commands.actions.train",
    "networks.builders.ndl.front_end",
    "networks.nodes",
    "networks.builders.simple.front_end",
    "readers",
    "trainers.parameters.sgd",
]


@pytest.mark.parametrize("module", LIGHT)
def test_declarations_import_neither_jax_nor_numba(module: str) -> None:
    code = f"import sys, {module}; print([m for m in ('jax', 'jaxlib', 'numba', 'llvmlite') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_the_command_line_starts_without_numpy_rich_and_lark() -> None:
    code = "import sys, commands.cli; print([m for m in ('numpy', 'scipy', 'rich', 'lark') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_files_stay_small() -> None:
    """One idea to a file: about 400 lines at most."""
    long = [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for package in ALLOWED
        for path in sources(package)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 450
    ]
    assert not long, "\n".join(long)
