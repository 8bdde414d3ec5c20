"""Mistakes in MEL scripts: every one has a kind, a message and the place; no text makes the editor fail otherwise."""

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mel_texts import edit_text

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.files.model_file import save_model

NET = """
x = Input(4, tag=feature)
l = Input(3, tag=label)
A = Parameter(3, 4)
b.c = Parameter(3, 1)
m1 = Times(A, x)
s = Plus(m1, b.c, tag=output)
ce = CrossEntropyWithSoftmax(l, s, tag=criterion)
"""
HEAD = "m = LoadModel(base.dnn)\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    save_model(tmp_path / "base.dnn", parse_ndl(NET).validate())
    (tmp_path / "bad.txt").write_text("1 2\n3\n")
    (tmp_path / "small.txt").write_text("1 2\n3 4\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


ERRORS = [
    # statements and commands
    ("Frobnicate(m)", "UnknownCommand", "unknown editor function 'Frobnicate'", 1, None),
    ("SetPropertie(A, output, true)", "UnknownCommand", "unknown editor function", 1, "did you mean 'SetProperty'?"),
    ("Re(A, B)", "UnknownCommand", "'Re'", 1, None),
    ("AddLayer(A)", "UnknownCommand", "AddLayer", 1, None),
    ("SaveModel", "InvalidStatement", "a command was expected: Name(...), not 'SaveModel'", 1, "SaveModel(...)"),
    ("SaveModel m", "InvalidStatement", "a command was expected", 1, None),
    ("q = Rename(A, B)", "InvalidStatement", "Rename gives no result", 5, "usage: Rename(from, to)"),
    ("q = LoadModle(a)", "UndefinedFunction", "'LoadModle'", 5, "did you mean 'LoadModel'?"),
    ("CreateModel()", "CommandArguments", "CreateModel needs a name", 1, "m = CreateModel()"),
    ("SetInput(m1, 1)", "CommandArguments", "SetNodeInput takes 3 arguments, 2 given", 1, "SetNodeInput(nodes, "),
    ("Rename(A, B, C)", "CommandArguments", "Rename takes 2 arguments, 3 given", 1, "Rename(from, to)"),
    ("SetInputs(m1)", "CommandArguments", "takes 2 or more arguments, 1 given", 1, None),
    ("SaveModel()", "CommandArguments", "SaveModel takes 1 to 2 arguments, 0 given", 1, None),
    ("Copy(A, B, mode=all)", "UnknownOption", "CopyNode has no optional argument 'mode'", 12, "valid: copy, copyFlag"),
    ("Rename(A, B, x=1)", "UnknownOption", "Rename has no optional argument 'x'", 14, "usage: Rename(from, to)"),
    ("k = LoadModel(base.dnn, format=other)", "BadValue", "'other' is not a value of 'format'", 32, None),
    ("Copy(A, B, copy=values)", "BadValue", "valid: all, value", 17, "did you mean 'value'?"),
    ("DumpModel(m, f, includeData=maybe)", "BadValue", "'maybe'", 29, None),
    ("Copy(A B)", "CommandArguments", "2 arguments, 1 given", 1, None),
    ("Rename((A), B)", "InvalidStatement", "'(' is not expected here", 8, None),
    ("Rename(A, B", "UnclosedBracket", "'(' is not closed", 7, None),
    ("Rename(A, B))", "StrayBracket", "')' closes nothing", 13, None),
    ("Rename(A, B]", "MismatchedBracket", "']' found", 12, None),
    ('Rename(A, "B)', "UnclosedBracket", "quote is not closed", 11, None),
    ("M(a) { z = Sin(a) }", "InvalidStatement", "'{' is not expected here", 6, "ndlMacros"),
    ("x y = Sin(x)", "InvalidName", "'x y' is not a name", 1, None),
    ("= 3", "InvalidStatement", "'=' is not expected here", 1, None),
    ("a =\n", "MissingValue", "nothing on the right", None, None),
    # models
    ("SetModel(m)", "UnknownCommand", "'SetModel'", 1, "use SetDefaultModel(m)"),
    ("CopySubTree(s, m)", "CommandArguments", "takes 3 arguments, 2 given", 1, "CopySubTree(from, m, prefix"),
    ("LoadNDLSnippet(n, bad.txt, section=z)", "UnknownSection", "'bad.txt' has no section 'z'", 36, None),
    ("b = CreateModel()\nSetProperty(b.c, output, true)", "UnknownNode", "'b.c' in the model 'b'", 13, "is m.b.c"),
    ("q = A", "UndefinedNode", "'A' is a node of the model", 5, "Rename(A, q)"),
    ("SetDefaultModel(k)", "UnknownModel", "there is no model 'k'", 17, "the models are: m"),
    ("SaveModel(m)", "CommandArguments", "'m' is a model, the name of a file is missing", 11, "SaveModel(m, file)"),
    ("SaveModel(k, f)", "UnknownModel", "there is no model 'k'", 11, None),
    ("UnloadModel(m)\nq = Sin(x)", "NoDefaultModel", "there is no default model", 1, "SetDefaultModel"),
    ("UnloadModel(m)\nRemove(x)", "NoDefaultModel", "there is no default model", 8, None),
    ("UnloadModel(m)\nSaveDefaultModel(f)", "NoDefaultModel", "there is no default model", 1, None),
    ("SaveModel(m, f, format=cntk_legacy_no_tensorlib)", "Unsupported", "is not supported", 1, None),
    ("LoadNDLSnippet(n, none.ndl)", "FileNotFound", "cannot read 'none.ndl'", 19, None),
    # nodes
    ("SetProperty(nosuch, output, true)", "UnknownNode", "could not find a symbol for 'nosuch'", 13, None),
    ("SetProperty(b.d, output, true)", "UnknownNode", "'b.d' in the model 'm'", 13, "did you mean 'b.c'?"),
    ("SetProperty(m.b.d, output, true)", "UnknownNode", "'m.b.d' in the model 'm'", 13, "did you mean 'm.b.c'?"),
    ("Remove(m.a*)", "UnknownNode", "no name fits", 8, "the letter case counts: there is 'm.A'"),
    ("Remove(Q*.z)", "UnknownNode", "'Q*.z'", 8, None),
    ("Remove(a*)", "UnknownNode", "no name fits", 8, "the letter case counts: there is 'A'"),
    ("Remove(b*c*)", "BadPattern", "at most one '*'", 8, None),
    ("SetInput(m1, 1, *1)\nSetInput(m1, 1, *)", "BadPattern", "must name one node, it names 7", 17, None),
    ("SetInputs(*, x, x)", "BadPattern", "must name one node", 11, None),
    ("Copy(nosuch, q)", "UnknownNode", "'nosuch'", 6, None),
    ("z = Sin(x)\nw = z\nCopy(z2*, q*)", "UnknownNode", "'z2*'", 6, None),
    ("Copy(A, Q*)", "UnknownNode", "'Q*'", 9, None),
    ("Copy(A, A)", "BadCopy", "onto itself", 1, None),
    ("Copy(m*, m*)", "BadCopy", "onto itself", 1, None),
    ("Copy(A, s)", "OperationMismatch", "LearnableParameter 'A' cannot be copied to Plus 's'", 1, None),
    ("Copy(A, Q, copy=value)", "UnknownNode", "there is no node 'Q'", 1, "copy=all makes new nodes"),
    ("Copy(b.*, Q)", "BadPattern", "do not agree", 11, None),
    ("Rename(b.*, *.q)", "BadPattern", "do not agree", 13, None),
    ("Copy(A, a(b))", "InvalidStatement", "'(' is not expected here", 10, None),
    ('Rename(A, "a b")', "InvalidName", "'a b' cannot be the name", 11, None),
    ("Rename(A, s)", "NodeExists", "already has a node", 1, None),
    ("k = LoadModel(base.dnn)\nRename(A, k.B)", "OtherModel", "both must be in one model", 8, "copy the nodes first"),
    ("k = LoadModel(base.dnn)\nSetInput(m1, 1, k.x)", "OtherModel", "both must be in one model", 17, None),
    ("CopyInputs(m1, s)", "OperationMismatch", "different operations", 1, None),
    ("CopyInputs(m1, q)", "UnknownNode", "there is no node 'q'", 16, None),
    ("SetInput(m1, 2, x)", "BadValue", "Times 'm1' has 2 inputs", 14, "counted from 0"),
    ("SetInput(m1, one, x)", "BadInteger", "not 'one'", 14, None),
    ("SetInput(m1, -1, x)", "BadInteger", "not '-1'", 14, None),
    ("r = RowStack(x, x)\nSetInput(r, 5, x)", "BadValue", "set input 2 first", 13, None),
    ("SetInputs(s, x, x, x)", "FunctionArguments", "Plus 's' expects 2 inputs, 3 given", 1, None),
    ("ReviseParameter(A, small.txt)", "BadShape", "does not fit the parameter's shape [3 x 4]", 1, None),
    ("ReviseParameter(A, bad.txt)", "BadFile", "bad.txt:2: row 2 has 1 numbers", 1, None),
    ("ReviseParameter(A, none.txt)", "CannotRead", "cannot read", 1, None),
    # properties
    ("SetProperty(A, colour, red)", "UnknownProperty", "'colour' is not a property", 16, "the properties are: "),
    ("SetProperty(A, outputs, true)", "UnknownProperty", "'outputs'", 16, "did you mean 'output'?"),
    ("SetProperty(A, output, yes)", "BadBoolean", "boolean expected", 24, "write true or false"),
    ("SetProperty(A, learningRateMultiplier, -1)", "BadValue", "must not be negative", 40, None),
    ("SetProperty(A, learningRateMultiplier, nan)", "BadValue", "must not be negative", 40, None),
    ("SetProperty(A, learningRateMultiplier, fast)", "BadNumber", "number expected", 40, None),
    ("SetProperty(s, feature, true)", "BadValue", "Plus 's' is not an input; it cannot be called feature", 16, None),
    ("SetProperty(s, freezeParameters, true)", "BadValue", "Plus 's' has no parameters to freeze", 16, None),
    ("SetPropertyForSubTree(s, output, true)", "UnknownProperty", "'output'", 26, None),
    # in-line NDL
    ("q = Foo(x)", "UndefinedFunction", "undefined function or macro 'Foo'", 5, None),
    ("q = Tanh(nosuch)\nSaveModel(m, f)", "UndefinedNode", "'nosuch' in 'Tanh(nosuch)'", None, None),
    ("A = Parameter(3, 4)", "Redefinition", "there is already a node 'A'", 5, None),
    ("q = Sin(x)\nq = Cosine(x)", "Redefinition", "already defined", 1, None),
    ("q = 3x4", "UndefinedNode", "'3x4'", 5, None),
    ("n = [ x = Input(3)\n y = Foo(x) ]", "UndefinedFunction", "'Foo'", 6, None),
    ("n = [ x = ]", "MissingValue", "nothing on the right", None, None),
    ("H = Sin(x)\nq = Sin(H)\nRemove(H)\nSaveModel(m, f)", "BadShape", "input 0 is not connected", None, "SetInput(q"),
    ("M(v) = Sin(v)", "InvalidStatement", "'=' is not expected here", 6, "macros are defined in the files"),
    ("SaveModel(m, .)", "CannotWrite", "'.' cannot be a model file: there is a folder", 1, "name of a file"),
    ("__metadata__ = Parameter(2, 2)\nSaveModel(m, f)", "CannotWrite", "can be called '__metadata__'", None, "another"),
    ("R = Plus(x, l)\nSaveModel(m, f)", "BadShape", "Plus 'R' of 'x' [4], 'l' [3]", 5, None),
]


@pytest.mark.parametrize(("script", "kind", "message", "column", "hint"), ERRORS, ids=[e[0][:40] for e in ERRORS])
def test_errors(folder, script, kind, message, column, hint):
    with pytest.raises(UserError) as caught:
        edit_text(HEAD + script, "edit.mel", macros=["Lin(x, o, i) { A = Parameter(o, i)\n t = Times(A, x) }"])
    found = caught.value.diagnostic
    assert found.kind == kind, found.render()
    assert message in found.message
    if column is not None:
        assert found.span is not None
        assert found.span.column == column, found.render()
        assert found.span.line == 2 + script.count("\n") - script.startswith("R ="), found.render()
    if hint is not None:
        assert hint in (found.hint or ""), found.render()
    assert caught.value.exit_code == (1 if kind in ("BadShape", "BadFile", "CannotRead", "CannotWrite") else 2)


def test_a_model_that_is_not_there_is_located(folder):
    with pytest.raises(UserError) as caught:
        edit_text("m = LoadModel(none.dnn)", "edit.mel")
    assert caught.value.diagnostic.one_line() == "edit.mel:1:5: error: there is no model none.dnn"
    assert caught.value.exit_code == 1


def test_an_error_leaves_the_model_as_it_was(folder):
    from cntkpy.networks.builders.ndl.front_end import plain_document
    from cntkpy.networks.mel.script import Editor, run

    editor = Editor()
    run(editor, plain_document(HEAD, "1"))
    network = next(iter(editor.models)).network
    before = list(network.nodes), {n.name: [i and i.name for i in n.inputs] for n in network.nodes.values()}
    for script in (
        "Remove(A, Q)",
        "Rename(*, q*)",
        "Copy(b.*, *.c)",
        "Copy(*, m.*)",
        "SetProperty(*, freezeParameters, true)",
        "SetInput(*, 1, x)",
        "CopyInputs(m1, s)",
    ):
        with pytest.raises(ConfigError):
            run(editor, plain_document(script, "2"))
        after = list(network.nodes), {n.name: [i and i.name for i in n.inputs] for n in network.nodes.values()}
        assert after == before


def test_a_removed_node_cannot_be_an_input(folder):
    script = HEAD + "H = Lin(x, 3, 4)\nRemove(H.t)\nz = Sin(H.t)\nSaveModel(m, new.dnn)"
    with pytest.raises(UserError, match="was removed"):
        edit_text(script, macros=["Lin(x, o, i) { A = Parameter(o, i)\n t = Times(A, x) }"])


# ---- any text

COMMANDS = """Copy CopySubTree CopyInputs Rename Remove SetInput SetInputs SetProperty SetPropertyForSubTree
CreateModel LoadModel SaveModel DumpModel DumpNode SetDefaultModel UnloadModel LoadNDLSnippet"""
NAMES = "m k x A s b.c b.* * m.* A* *c output learningRateMultiplier true 0 1 copy=all copy=value value q r q r"
OTHERS = "( ) [ ] { } = , ; # Input(3) Parameter(2,3) Sin(x) Times(A,x) PastValue(3,s)"
WORDS = [*COMMANDS.split(), *NAMES.split(), *OTHERS.split(), "\n", "\n", '"', " "]


@settings(max_examples=100)
@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(WORDS), max_size=40).map("".join)))
@example("a = ()")
@example("a=[]")
@example("F()")
@example("a = F()")
@example("m = CreateModel(")
def test_any_text_is_edited_or_refused(folder, text):
    # nothing is read or written outside the folder of the test
    text = re.sub(r"[/\\~]", "_", text)
    try:
        edit_text("m = LoadModel(base.dnn)\n" + text)
    except UserError as problem:
        assert problem.diagnostic.render()


ARGUMENT = st.sampled_from(
    ["m", "x", "A", "b.c", "b.*", "*", "m.*", "A*", "*c", "s", "ce", "q", "q.*", "Z*", "k", "k.*"]
)
EDIT = st.one_of(
    st.tuples(st.sampled_from(["Copy", "CopyInputs", "Rename"]), ARGUMENT, ARGUMENT).map(
        lambda t: f"{t[0]}({t[1]}, {t[2]})"
    ),
    st.tuples(ARGUMENT, ARGUMENT).map(lambda t: f"Copy({t[0]}, {t[1]}, copy=value)"),
    ARGUMENT.map(lambda a: f"Remove({a})"),
    st.tuples(ARGUMENT, st.integers(0, 3), ARGUMENT).map(lambda t: f"SetInput({t[0]}, {t[1]}, {t[2]})"),
    st.tuples(ARGUMENT, ARGUMENT).map(lambda t: f"SetInputs({t[0]}, {t[1]}, x)"),
    ARGUMENT.map(lambda a: f"CopySubTree({a}, k, p.)"),
    ARGUMENT.map(lambda a: f"SetProperty({a}, output, true)"),
    ARGUMENT.map(lambda a: f"SetPropertyForSubTree({a}, needGradient, false)"),
    st.sampled_from(["q = Sin(x)", "q = Plus(s, r)", "r = PastValue(3, q)", "q.c = Parameter(3, 1)"]),
    st.just("k = CreateModel()"),
    ARGUMENT.map(lambda a: f"DumpNode({a}, d.txt)"),
    st.just("SaveModel(m, n.dnn)"),
)


@settings(max_examples=30)
@given(st.lists(EDIT, max_size=12))
def test_any_edits_keep_the_network_in_order(folder, edits):
    from cntkpy.networks.builders.ndl.front_end import plain_document
    from cntkpy.networks.mel.script import Editor, run

    editor = Editor()
    run(editor, plain_document("m = LoadModel(base.dnn)\nk = CreateModel()\n", "1"))
    values = {n.name: n.value for n in editor.models.default.network.nodes.values() if n.value is not None}  # type: ignore
    touched = any(e.startswith(("Copy", "Rename")) for e in edits)
    for text in edits:
        try:
            run(editor, plain_document(text, "2"))
        except UserError as problem:
            assert problem.diagnostic.render()
        for model in editor.models:
            nodes = model.network.nodes
            assert len({name.lower() for name in nodes}) == len(nodes)
            for node in nodes.values():
                assert nodes[node.name] is node
            for members in model.network.groups.values():
                assert all(nodes.get(node.name) is node for node in members)
    model = editor.models.get("m")
    if model is not None and not touched:
        for name, value in values.items():
            if name in model.network and model.network[name].value is not None:
                assert (model.network[name].value == value).all()
