"""`cntkpy export --to pytorch`: what it prints and writes, and its errors."""

import shutil
import sys
from pathlib import Path

import pytest
from safetensors.numpy import load_file

ROOT = Path(__file__).parents[3]


@pytest.fixture
def samples(tmp_path):
    shutil.copytree(ROOT / "sample_configs", tmp_path / "sample_configs", ignore=shutil.ignore_patterns("output"))
    return tmp_path


def test_a_configuration_before_training(cntkpy, samples):
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "pytorch", "--output", "HLast", "--no-check")
    assert got.code == 0, got
    assert got.out.splitlines() == [
        "out: class Digits, 23 lines, 4 tensors",
        "files: model.py, weights.safetensors, README.md",
    ]
    assert "there is no model sample_configs/output/digits.model yet" in got.err
    tensors = load_file(samples / "out/weights.safetensors")
    assert {name: array.shape for name, array in tensors.items()} == {
        "h1.weight": (100, 64),
        "h1.bias": (100,),
        "h_last.weight": (10, 100),
        "h_last.bias": (10,),
    }
    text = (samples / "out/README.md").read_text()
    assert "from model import Digits" in text
    assert "| `features` | `features` | (batch, 64) |" in text


def test_another_command(cntkpy, samples):
    got = cntkpy(
        "export", "sample_configs/brainscript_slots.cntk", "out", "--to", "PyTorch", "--command", "ndl", "--no-check"
    )
    assert got.code == 0, got
    assert "self.h = " not in (samples / "out/model.py").read_text()


def test_functions_of_jax(cntkpy, samples):
    """They are compared with the network, as JAX is there."""
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "JAX", "--output", "HLast")
    assert got.code == 0, got
    lines = got.out.splitlines()
    assert lines[0].startswith("HLast: largest difference ")
    assert lines[-2:] == ["out: function apply, 40 lines, 4 tensors", "files: model.py, weights.safetensors, README.md"]
    tensors = load_file(samples / "out/weights.safetensors")
    assert {name: array.shape for name, array in tensors.items()} == {
        "h1.weight": (64, 100),
        "h1.bias": (100,),
        "h_last.weight": (100, 10),
        "h_last.bias": (10,),
    }
    text = (samples / "out/README.md").read_text()
    assert "from model import apply, load" in text
    assert "outputs = apply(params, features)" in text
    assert "gradient by h1.weight" in text


def test_functions_of_jax_that_compute_other_values(cntkpy, samples, monkeypatch):
    """They are not written."""
    from cntkpy.networks.source.export import FORMS

    monkeypatch.setitem(FORMS["jax"].dialect.words, "sigmoid", "jax.nn.tanh({0})")
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "jax", "--check")
    assert got.code == 1
    assert "the source computes other values than the network: 'ScaledLogLikelihood' by " in got.err
    assert not (samples / "out").exists()


def test_functions_of_jax_that_do_not_run(cntkpy, samples, monkeypatch):
    from cntkpy.networks.source.export import FORMS

    monkeypatch.setitem(FORMS["jax"].dialect.words, "sigmoid", "jnp.concatenate({0})")
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "jax", "--check")
    assert got.code == 1
    assert "the source cannot be computed: " in got.err
    assert "Traceback" not in got.err
    assert not (samples / "out").exists()


def test_a_training_is_written_for_pytorch_alone(cntkpy, samples):
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "jax", "--training")
    assert got.code == 2
    assert "--training writes a program of PyTorch. Use --to pytorch, or leave out --training" in got.err
    assert not (samples / "out").exists()


def test_an_unknown_form(cntkpy, samples):
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "pytorc")
    assert got.code == 2
    assert "a network cannot be written as 'pytorc'" in got.err
    assert "pytorch" in got.err


def test_a_file_in_the_place_of_the_folder(cntkpy, samples):
    (samples / "out").write_text("")
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "pytorch")
    assert got.code == 2
    assert "'out' is a file; a folder is written" in got.err


def test_an_edited_program_is_kept(cntkpy, samples):
    words = ("export", "sample_configs/digits.cntk", "out", "--to", "pytorch", "--no-check")
    assert [cntkpy(*words).code, cntkpy(*words).code] == [0, 0]
    edited = (samples / "out/model.py").read_text() + "# mine\n"
    (samples / "out/model.py").write_text(edited)
    got = cntkpy(*words)
    assert got.code == 1
    assert "out has model.py already, with another text; nothing is written" in got.err
    assert (samples / "out/model.py").read_text() == edited


def test_a_command_without_a_network(cntkpy, samples):
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "pytorch", "--command", "trian")
    assert got.code == 2
    assert "no command 'trian' describes a network" in got.err
    assert "train" in got.err


def test_a_node_that_the_network_lacks(cntkpy, samples):
    words = ("export", "sample_configs/digits.cntk", "out", "--to", "pytorch", "--no-check", "--output")
    got = cntkpy(*words, "Nope")
    assert got.code == 2
    assert "the network has no node 'Nope'" in got.err
    assert "name an output, for instance ScaledLogLikelihood, HLast" in got.err
    got = cntkpy(*words, "HLst")
    assert got.code == 2
    assert "HLast" in got.err
    got = cntkpy(*words, "HLast", "--training")
    assert got.code == 2
    assert "--training chooses the outputs" in got.err
    assert not (samples / "out").exists()


def test_a_configuration_is_no_model(cntkpy, samples):
    got = cntkpy("export", "sample_configs/digits.cntk", "d.onnx")
    assert got.code == 2
    assert "sample_configs/digits.cntk is a configuration; d.onnx is made of a model file" in got.err
    assert "--to pytorch" in got.err
    got = cntkpy("export", "sample_configs/digits.cntk", "digits")
    assert got.code == 2
    assert "--to pytorch" in got.err


@pytest.mark.parametrize(("framework", "package"), [("pytorch", "torch"), ("jax", "jax")])
def test_without_the_framework_values_are_not_compared(cntkpy, samples, monkeypatch, framework, package):
    monkeypatch.setattr("cntkpy.networks.source.check.installed", lambda _: False)
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", framework)
    assert got.code == 0
    line = f"not compared with the network: {package} is not installed (pip install {package}; then --check)"
    assert got.out.splitlines()[-1] == line


def test_a_comparison_without_pytorch(cntkpy, samples, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "pytorch", "--check")
    assert got.code == 1
    assert "comparing the source with the network needs PyTorch" in got.err
    assert "pip install" in got.err
    assert not (samples / "out").exists()


@pytest.mark.torch
@pytest.mark.filterwarnings("default")
def test_the_written_module(cntkpy, samples):
    """It is imported in a process of its own, without this package."""
    import subprocess

    pytest.importorskip("torch")
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "pytorch", "--check")
    assert got.code == 0, got
    assert got.out.startswith("ScaledLogLikelihood: largest difference ")
    assert "gradient by h1.weight" in (samples / "out/README.md").read_text()
    assert "note: compared on random data alone" not in got.err
    program = (
        "import sys, torch; from model import Digits; from safetensors.torch import load_file\n"
        "model = Digits(); model.load_state_dict(load_file('weights.safetensors'))\n"
        "assert model(torch.zeros(2, 64)).shape == (2, 10)\n"
        "assert not any(name.split('.')[0] in ('cntkpy', 'jax') for name in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=samples / "out", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.torch
@pytest.mark.filterwarnings("default")
def test_data_of_the_reader_are_tried(cntkpy, samples):
    """Where the reader cannot be opened, a note says so; what it reads is compared like random data."""
    pytest.importorskip("torch")
    (samples / "sample_configs/data/digits_train.ctf").rename(samples / "elsewhere.ctf")
    got = cntkpy("export", "sample_configs/digits.cntk", "out", "--to", "pytorch", "--check")
    assert got.code == 0, got
    assert "note: compared on random data alone; the data of the reader: " in got.err


def test_the_first_sequences_of_a_reader(cntkpy, samples):
    """Each is in a slot of its own; lengths are by time axis."""
    from cntkpy.cntk_config import load
    from cntkpy.commands.described_network import describe_network
    from cntkpy.commands.tools.export_check import SEQUENCES, reader_data
    from cntkpy.networks.onnx import ours
    from cntkpy.networks.source.export import Settings, export

    path = samples / "sample_configs/sequence_classifier.cntk"
    root = load([f"configFile={path}", f"SampleDir={path.parent}"])
    network = describe_network(root, "train").network
    network.values = True
    source = export(network.validate(), ours.constants, Settings())
    data, why = reader_data(root.section("train"), source)
    assert why == ""
    assert len(data) == 2
    values, lengths = data[0].values["x"], data[0].lengths["letters"]
    assert 1 < len(lengths) <= SEQUENCES
    assert values.shape == (max(lengths), len(lengths), 17)
    assert [int(values[:, slot].sum()) for slot in range(len(lengths))] == lengths.tolist()
