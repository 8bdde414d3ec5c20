"""The import directions of the architecture: downwards only, without circles; the heavy libraries on use."""

import ast
import functools
import re
import subprocess
import sys
from pathlib import Path

import pytest
from syntax import imports_and_calls, nodes_of

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
PACKAGES = tuple(package for package in ALLOWED if package != "cntkpy")


def sources(package: str) -> list[Path]:
    """Return the files of a package; those of `cntkpy` are the files and folders that belong to no other package."""
    if package != "cntkpy":
        return sorted((ROOT / "cntkpy" / package).rglob("*.py"))
    paths = sorted((ROOT / "cntkpy").rglob("*.py"))
    return [path for path in paths if path.relative_to(ROOT / "cntkpy").parts[0] not in PACKAGES]


def local(name: str) -> str:
    """Return a module's name as the diagram has it: `readers.pipeline` of `cntkpy.readers.pipeline`."""
    inside = name.removeprefix("cntkpy.")
    return inside if inside.split(".")[0] in PACKAGES else name


def nodes(path: Path) -> list[ast.Import | ast.ImportFrom | ast.Call]:
    """What the tests look at in a file: its imports and calls."""
    return imports_and_calls(path.read_text(encoding="utf-8"))


@functools.cache
def imports(path: Path) -> list[tuple[int, str]]:
    """Every import of a file, those inside functions too, and names given to importlib as a literal."""
    found = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found += [(node.lineno, local(alias.name)) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"cntkpy.{alias.name}" for alias in node.names if alias.name != "__version__"]
            inside = module_of(path) if path.name == "__init__.py" else module_of(path).rpartition(".")[0]
            modules = [inside] if node.level else names if node.module == "cntkpy" else [node.module or ""]
            found += [(node.lineno, local(name)) for name in modules]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute | ast.Name)
            and (node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id) == "import_module"
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            found.append((node.lineno, local(str(node.args[0].value))))
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


PRIVATE = re.compile(
    r"\b(jax|jaxlib|numba|numpy|scipy|safetensors|cv2)(\.\w+)*\._(?!_)\w+|\bjax\.(interpreters|lib|core)\b"
)
"""Modules of other packages that are theirs alone: they may be gone in the next version."""
INTERNALS = "cntkpy/trainers/parallel/jax_internals.py"
"""Where they may be used: in one place, whose test names what a new version lacks."""


@pytest.mark.parametrize("package", ALLOWED)
def test_private_modules_of_others_are_used_in_one_place(package: str) -> None:
    """Imports, names given to importlib, and texts or attributes with such a name."""
    wrong = [
        f"{name}:{line}: {found[0]}"
        for path in sources(package)
        if (name := path.relative_to(ROOT).as_posix()) != INTERNALS
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := PRIVATE.search(text))
    ] + [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sources(package)
        for line, name in imports(path)
        if name.split(".")[0] == "jaxlib"
    ]
    assert not wrong, f"use a public interface, or {INTERNALS}:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    "text", ["from jax._src import a", "import jax.interpreters.xla", 'import_module("jax._src.lib")', "numpy._core.x"]
)
def test_private_modules_are_found(text: str) -> None:
    assert PRIVATE.search(text)


LIGHT = [
    "cntkpy.cntk_config",
    "cntkpy",
    "cntkpy.commands.checks.check",
    "cntkpy.commands.cli",
    "cntkpy.commands.runner.run",
    "cntkpy.commands.tools.show",
    "cntkpy.commands.actions.train",
    "cntkpy.networks.builders.ndl.front_end",
    "cntkpy.networks.nodes",
    "cntkpy.networks.builders.simple.front_end",
    "cntkpy.readers",
    "cntkpy.trainers.parameters.sgd",
]


def test_declarations_import_neither_jax_nor_numba() -> None:
    """One process imports them in turn: what is not there after all of them, none of them has imported."""
    heavy = "[m for m in ('jax', 'jaxlib', 'numba', 'llvmlite') if m in sys.modules]"
    code = f"import importlib, sys\nfor name in {LIGHT}: importlib.import_module(name); print(name, {heavy})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{module} []" for module in LIGHT]


def test_the_command_line_starts_without_numpy_rich_and_lark() -> None:
    code = "import sys, cntkpy.commands.cli; print([m for m in ('numpy', 'scipy', 'rich', 'lark') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_training_on_dense_data_imports_neither_scipy_nor_numba() -> None:
    names = (
        "trainers.fronts.config.training",
        "trainers.step.axes",
        "trainers.evaluation.write",
        "readers.formats.text.deserializer",
    )
    modules = ", ".join(f"cntkpy.{name}" for name in names)
    code = f"import sys, {modules}; print([m for m in ('scipy', 'numpy.f2py', 'numba') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# ------------------------------------------------------------------------------------------ files and packages


def module_of(path: Path) -> str:
    """The name by which a file is imported."""
    return local(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))


FILES = {module_of(path): path for package in ALLOWED for path in sources(package)}


@functools.cache
def imported_files(module: str) -> set[str]:
    """The files that a file imports, inside functions and for types only as well; its own package does not count."""
    path, found = FILES[module], set()
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {local(alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            full = ".".join([*above, *([node.module] if node.module else [])])
            base = local(full)
            names = {local(f"{full}.{alias.name}"): alias.name for alias in node.names}
            found |= {name if name in FILES else base for name in names if names[name] != "__version__"}
    return {name for name in found if name in FILES and name != module and not module.startswith(f"{name}.")}


def circles(graph: dict[str, set[str]]) -> list[str]:
    """One line for every circle that a search in depth meets."""
    done: set[str] = set()
    found: list[str] = []

    def visit(node: str, path: list[str]) -> None:
        if node in path:
            found.append(" -> ".join([*path[path.index(node) :], node]))
        elif node not in done:
            for other in sorted(graph.get(node, ())):
                visit(other, [*path, node])
            done.add(node)

    for node in sorted(graph):
        visit(node, [])
    return found


def test_circles_are_found() -> None:
    graph = {"a": {"b", "c"}, "b": {"d"}, "c": {"d"}, "d": set[str]()}
    assert circles(graph) == []
    assert circles({**graph, "d": {"b"}}) == ["b -> d -> b"]


def test_no_file_needs_another_that_needs_it() -> None:
    assert not (found := circles({name: imported_files(name) for name in FILES})), "\n".join(found)


def assigned_classes(text: str) -> list[str]:
    """The attributes that a file assigns on classes which it imports: `Class.attribute`."""
    nodes_of_text = nodes_of(text)
    imported = {
        alias.asname or alias.name
        for node in nodes_of_text
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if (alias.asname or alias.name).lstrip("_")[:1].isupper()
    }
    targets = [
        target
        for node in nodes_of_text
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    calls = [node for node in nodes_of_text if isinstance(node, ast.Call) and len(node.args) > 1]
    found = [
        f"{one.value.id}.{one.attr}"
        for one in targets
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id in imported
    ]
    return found + [
        f"{node.args[0].id}.{ast.unparse(node.args[1])}"
        for node in calls
        if isinstance(node.func, ast.Name)
        and node.func.id == "setattr"
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id in imported
    ]


def test_assigned_classes_are_found() -> None:
    text = 'from a import B, c\nB.x = 1\nc.x = 1\nsetattr(B, "y", 2)\nclass D: pass\nD.z = 3\nB.w: int = 4'
    assert assigned_classes(text) == ["B.x", "B.w", "B.'y'"]


def test_no_file_assigns_attributes_of_a_class_of_another_file() -> None:
    wrong = [f"{name}: {one}" for name, path in FILES.items() for one in assigned_classes(path.read_text("utf-8"))]
    assert not wrong, "\n".join(wrong)


def package_of(module: str) -> str:
    """The folder of a file, or the file itself where it stands directly in its package."""
    return ".".join(module.split(".")[:2])


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_folders_do_not_need_each_other(package: str) -> None:
    """Among the folders of a package imports go one way: what is side by side does not know each other."""
    graph: dict[str, set[str]] = {}
    for name in FILES:
        if name.split(".")[0] == package and name != package:
            inside = {package_of(other) for other in imported_files(name) if other.startswith(f"{package}.")}
            graph.setdefault(package_of(name), set()).update(inside - {package_of(name)})
    assert not (found := circles(graph)), "\n".join(found)


HANDS = re.compile(r"^\| `(cntkpy/\S+\.py):(\w+)\.(\w+)` \|", re.MULTILINE)


def test_a_record_passes_few_hands_and_all_of_them_exist() -> None:
    """The page names the class and the method of every hand between the bytes of a record and the step."""
    hands = HANDS.findall((ROOT / "docs/architecture.md").read_text(encoding="utf-8"))
    assert 6 <= len(hands) <= 8
    for path, name, method in hands:
        classes = [n for n in ast.parse((ROOT / path).read_text(encoding="utf-8")).body if isinstance(n, ast.ClassDef)]
        methods = [n.name for c in classes if c.name == name for n in c.body if isinstance(n, ast.FunctionDef)]
        assert method in methods, f"{path} has no {name}.{method}"
