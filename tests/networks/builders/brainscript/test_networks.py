"""Networks: which nodes a description makes, under which names, in which order their parameters draw seeds."""

import pytest

from cntkpy.cntk_config.base.diagnostics import ConfigError
from cntkpy.networks.builders.brainscript.graph import graph_of
from cntkpy.networks.builders.brainscript.language.source import text_of_string
from cntkpy.networks.builders.brainscript.program import (
    UNSUPPORTED,
    evaluate_network,
    evaluator_with,
    library,
    parse_network,
)
from cntkpy.networks.graph.initialize import SeedCounter

NAMES = {"deviceId": -1.0, "traceLevel": 0.0, "precision": "double"}


def lines(network):
    return {
        f"{node.name} = {node.operation.name}" + (f"({', '.join(i.name for i in node.inputs)})" if node.inputs else "")
        for node in network.nodes.values()
    }


def test_names_come_from_the_place_in_the_tree(network):
    assert lines(
        network("x = Input {2}\nf (first, second) = first .* second\nz = f (Exp (x), Tanh (Sigmoid (x)))")
    ) == {
        "x = InputValue",
        "z = ElementTimes(z.first, z.second)",
        "z.first = Exp(x)",
        "z.second = Tanh(z.second.z)",
        "z.second.z = Sigmoid(x)",
    }


def test_a_layer_is_made_where_it_is_called(network):
    found = lines(
        network("x = Input {2}\nmodel = Sequential (DenseLayer {3, activation=ReLU} : LinearLayer {2})\nz = model (x)")
    )
    assert "z.x = RectifiedLinear(z.x._)" in found
    assert "z.x._.PlusArgs[0] = Times(model.arrayOfFunctions[0].arrayOfFunctions[0].W, x)" in found
    assert "z = Plus(z.PlusArgs[0], model.arrayOfFunctions[1].b)" in found


def test_the_last_name_of_a_node_wins(network):
    assert "b = Sigmoid(x)" in lines(network("x = Input {2}\na = Sigmoid (x)\nb = a\nA = a"))


def test_a_number_beside_a_node_at_the_top(network):
    """CNTK refuses it: the constant and the sum have the same name."""
    assert lines(network("x = Input {2}\nz = x + 1")) == {
        "x = InputValue",
        "z = Plus(x, _z)",
        "_z = LearnableParameter",
    }


def test_names_that_differ_in_case_only(network):
    with pytest.raises(ConfigError, match="duplicated name: two nodes are called 'w' and 'W'"):
        network("x = Input {2}\nw = Pass (x)\nW = Pass (x)")


def test_delays_make_loops(network):
    found = network("x = Input {2}\nh = Tanh (x + BS.Loop.Previous (h))")
    assert "h.z.PlusArgs[1] = PastValue(h)" in lines(found)


def test_groups(network):
    found = network(
        "x = Input {2}\nl = Input {2, tag='label'}\nce = SquareError (x, l, tag='criterion')\noutputNodes = (x : ce)"
    )
    assert {group: [node.name for node in nodes] for group, nodes in found.groups.items()} == {
        "feature": ["x"],
        "label": ["l"],
        "criterion": ["ce"],
        "evaluation": [],
        "output": ["x", "ce"],
    }


def test_seeds_are_drawn_in_the_order_of_evaluation(network):
    found = network(
        "x = Input {2}\nz = Sequential (LinearLayer {2, bias=false} : LinearLayer {3, bias=false}) (x)\n"
        "a = Parameter {2, 2, randomSeed=7}"
    )
    seeds = {name: node.start.seed for name, node in found.nodes.items() if node.start is not None}
    # the weights of the second layer come first: its product asks for them before it asks for its input
    assert seeds == {"a": 7, "z.arrayoffunctions[1].w": 1, "z.arrayoffunctions[0].w": 2}


def test_an_error_inside_the_library_is_shown_at_the_call(network):
    with pytest.raises(ConfigError) as caught:
        network("x = Input {2}\nz = LinearLayer {3, inputRank=1, mapRank=1} (x)")
    assert str(caught.value.span) == "test.bs:3:5"
    assert any("inside the library" in note for note in caught.value.notes)


def test_a_text_without_quotes(network):
    with pytest.raises(ConfigError, match="unknown identifier 'uniform'") as caught:
        network("x = Input {2}\nz = LinearLayer {3, init=uniform} (x)")
    assert caught.value.hint == "a text is written in quotes: 'uniform'"


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ("value=0", "write init='fixedValue', or leave out value"),
        ("init='gaussian', value=2", "write init='fixedValue', or leave out value"),
        ("init='gaussian', value=0", None),
        ("init='fixedValue', value=2", None),
        ("init='gaussian', initValue=2", "leave out init, or leave out initValue"),
        ("initValue=2", None),
        ("initFromLiteral='1 2'", "write init='fromLiteral', or leave out initFromLiteral"),
        ("init='zero', initFromFilePath='w.txt'", "write init='fromFile', or leave out initFromFilePath"),
        ("initFromFilePath='w.txt'", None),
    ],
)
@pytest.mark.parametrize("function", ["ParameterTensor {2, ", "Parameter (2, 1, "])
def test_a_start_value_that_nothing_reads(function, options, hint):
    """As in CNTK, which says nothing: a parameter with value=0 alone starts at random."""
    evaluator = evaluator_with(SeedCounter())
    program = parse_network(
        text_of_string(f"{{ w = {function}{options}{'}' if '{' in function else ')'} }}", "test.bs")
    )
    evaluate_network(program, evaluator, NAMES)
    assert [one.hint for one in evaluator.messages.warnings] == ([hint] if hint else [])
    assert all(str(one.span) == "test.bs:1:7" for one in evaluator.messages.warnings)


def test_shapes_that_do_not_fit_are_shown_at_their_place(network):
    value = network("x = Input {2}\nb = ParameterTensor {3}\nf (u) = u + b\nz = f (x)")
    with pytest.raises(ConfigError) as caught:
        graph_of(value, evaluator_with(SeedCounter()), "float")
    assert "the shapes do not match" in caught.value.message
    assert str(caught.value.span) == "test.bs:4:11"
    assert "called at test.bs:5:5: f" in caught.value.notes


def test_a_kernel_that_is_too_large_is_told_before_what_follows_it(network):
    """A bias of one map has as many axes as the convolution, whose shape is not known."""
    made = network(
        "x = Input {(4:4:1)}\nc = ConvolutionalLayer {1, (5:5), pad=true} (x)\nz = MaxPoolingLayer {(2:2)} (c)"
    )
    with pytest.raises(ConfigError, match=r"Convolution 'c\.c' .*: the kernel \[5 x 5 x 1\] is larger than the input"):
        graph_of(made, evaluator_with(SeedCounter()), "float")


def test_members_of_nodes(value):
    assert value("x = Input {3:4}\nz = x.dim") == 12
    assert value("x = Input {3}\ns = x + x\nz = s.PlusArgs[0].operation") == "InputValue"
    with pytest.raises(ConfigError, match="'dim' of 'n' is not known"):
        value("x = Input {3}\nn = Sigmoid (x)\nz = n.dim")


FUNCTIONS = {
    "Min (3, 2)": 2,
    "Max (3, 2)": 3,
    "Sign (-4)": -1,
    "Fac (5)": 120,
    "Mod (-17, 5)": -2,
    "IntDiv (-17, 5)": -3,
    "Substr ('hello world', -5, 3)": "wor",
    "Substr ('hello', 50, 2)": "",
    "Replace ('hello', 'l', '00')": "he0000o",
    "Chr (65) + Chr (66)": "AB",
    "Length (Repeat (3, 1))": 2,
    "Length (None)": 0,
    "Format (1.5, '.2')": "1.50",
    "Format (7, '3')": "  7",
    "Format (-7, '05.3')": " -007",
    "Format (1/0, '+8.2')": "    +inf",
    "Format (0/0, '-6') + '|'": "-nan  |",  # the sign of a not-a-number prints
    "Format (-(0/0), '06')": "   nan",
    "Format (-0**-1, '')": "-inf",
    "Format (5 % 0, '') + Format ((0-8)**(1/3), '')": "-nan-nan",
    "Format (1 / Mod (-6, 3), '')": "inf",  # whole numbers have no zero below 0
    "Format ([||], '')": "(  )",
    "Format ({}, '')": "[\n  \n]",
    "IsArray (1:2) && IsDouble (3) && !IsBool (3)": True,
    "IsNone (None)": True,
    "Inferred + BS.Constants.True": 1,
}


@pytest.mark.parametrize("text", FUNCTIONS)
def test_functions_on_values(value, text):
    assert value(f"z = {text}") == FUNCTIONS[text]


def test_the_same_number_is_one_that_was_computed_once(value):
    names = "n = 3\nm = 3\nf (v) = IsSameObject (v, n)\na = 1:n"
    for text, same in {
        "IsSameObject (n, n)": True,
        "f (n)": True,
        "f (m)": False,
        "IsSameObject (a[1], n)": True,
    }.items():
        assert value(f"{names}\nz = {text}") is same


def test_dimensions_of_images(value):
    for layout, channels in {"CHW": 2, "hwc": 0, "legacy": 0, "cudnn": 2}.items():
        dims = value(f"z = ImageInput {{5, 4, 3, imageLayout='{layout}'}}").shape
        assert (len(dims), dims[channels]) == (3, 3)
    with pytest.raises(ConfigError, match="imageLayout cannot be 'WHC'; possible: CHW"):
        value("z = SparseImageInput {5, 4, 3, imageLayout='WHC'}")


def test_values_print(value, caplog):
    caplog.set_level("INFO", "cntkpy.networks")
    value("z = Print (1:(2:0.5))")
    value("z = Print ({ b = 'x' ; a = { c = true } })")
    assert caplog.messages == ["( 1\n  ( 2\n    0.500000 ) )", "[\n  a = [\n    c = true\n  ]\n  b = x\n]"]


def test_every_member_of_the_library_evaluates(value):
    """No misspelt name in a namespace; functions are evaluated by the other tests."""
    for name in library()[1].members:
        assert value(f"z = {name}") is not None, name
    for namespace in ("Constants", "Boolean", "Loop", "Sequences", "Parameters", "RNNs"):
        record = value(f"z = BS.{namespace}")
        for name in record.names:
            assert value(f"z = BS.{namespace}.{name}") is not None, name


def test_a_deep_stack_of_layers(network):
    """As deep as ResNet-152: two hundred layers, each a composition."""
    found = network("x = Input {2}\nz = LayerStack {200, i => Sequential (LinearLayer {2} : ReLU)} (x)")
    assert len(found.nodes) == 200 * 5 + 1


def test_the_last_steps_as_one(network):
    """Along another axis than the second, the window is moved there."""
    found = lines(network("x = Input {3}\no = BS.Sequences.PastValueWindow (2, x).value"))
    assert "o = Reshape(o.value.x)" in found
    found = lines(network("x = Input {3}\no = BS.Sequences.PastValueWindow (2, x, axis=3).value"))
    assert {"o = TransposeDimensions(o.value._)", "o.value._ = Reshape(o.value._.x)"} <= found
    with pytest.raises(ConfigError, match="axis must be at least 2"):
        network("x = Input {3}\no = BS.Sequences.PastValueWindow (2, x, axis=1).value")


def test_folds_start_with_a_number_or_a_node(network):
    left = lines(network("x = Input {3}\nz = BS.Sequences.FoldL (Plus, 0, x)"))
    assert {"z.before = PastValue(z.state)", "z.state = Plus(z.before, x)"} <= left
    right = lines(network("x = Input {3}\nh = Parameter {3, 1}\nz = BS.Sequences.FoldR (Minus, h, x)"))
    assert {"z.after = FutureValue(z.state, h)", "z.state = Minus(z.after, x)"} <= right


def test_layers_of_later_releases(network):
    head = "x = Input {(8:8:3)}\nc = ConvolutionalLayer {2, (5:5), pad=true} (x)\n"
    head += "p = MaxPoolingLayer {(4:4), stride=4} (c)\n"
    back = lines(
        network(
            head + "u = MaxUnpoolingLayer {(4:4), stride=4} (p, c)\n"
            "z = DeconvLayer {3, (5:5), 2, bias=false, lowerPad=(2:2:0), upperPad=(2:2:0)} (u)"
        )
    )
    assert {"u = MaxUnpooling(p, c)", "z = Convolution(z.W, u)"} <= back
    assert "z = Convolution(z.W, c)" in lines(network(head + "z = BilinearUpsamplingLayer {2, 4, 2} (c)"))
    fused = lines(network(head + "z = BatchNormalizationLayer {spatialRank=2, reluFuse=true} (c)"))
    assert "z = RectifiedLinear(z._)" in fused
    assert any(line.startswith("z._ = BatchNormalization(c,") for line in fused)


@pytest.mark.parametrize(
    "call",
    [
        "Constant {3, tag='output'}",
        "ConstantTensor (3, (2), tag='output')",
        "ConstantFromString ('1 2', tag='output')",
        "RowSlice (0, 1, x, tag='output')",
        "Softmax (x, axis=1, tag='output')",
        "Slice (1, 0, x, axis=-1, tag='output')",
        "Slice (0, 0, x, axis=-1, tag='output')",
    ],
)
def test_a_tag_reaches_the_node(network, call):
    assert [node.name for node in network(f"x = Input {{2}}\nz = {call}").groups["output"]] == ["z"]


@pytest.mark.parametrize("name", [*UNSUPPORTED, "SequenceWithSoftmax", "NCEBasedCrossEntropyWithSoftmax"])
def test_functions_that_only_cntk_has(network, name):
    with pytest.raises(ConfigError, match=f"'{name}' is not supported") as caught:
        network(f"x = Input {{2}}\nz = {name} (x, x)")
    assert caught.value.diagnostic.hint
    assert lines(network(f"x = Input {{2}}\n{name} (x) = Tanh (x)\nz = {name} (x)")) == {
        "x = InputValue",
        "z = Tanh(x)",
    }


def test_later_names_of_options(network):
    gain = "z = LayerNormalizationLayer {%s} (Input {2})"
    starts = [
        next(node for name, node in network(gain % option).nodes.items() if name.endswith("gain")).start.value
        for option in ("", "initScale=3", "initialScale=4")
    ]
    assert starts == [1, 3, 4]


def test_the_functions_of_a_namespace_are_those_of_the_library(value):
    """Without the warning that a member is taken from the scopes around."""
    assert value("x = Input {3}\nz = CNTK2.Plus (x, 1).operation") == "Plus"
    assert value("x = Input {3}\nz = DropoutLayer {} (x).operation") == "Dropout"
    assert value("x = Input {3}\nz = BS.Sequences.IsLast (x).operation") == "FutureValue"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Pooling (x, 'median', (1))", "Pooling 'z': poolKind cannot be 'median'"),
        ("MaxPooling (x, 1, 1, 1, 1, imageLayout='CWH')", "imageLayout cannot be 'CWH'"),
        ("OptimizedRNNStack (ParameterTensor {(0:0)}, x, 3, recurrentOp='lstmm')", "recurrentOp cannot be 'lstmm'"),
    ],
)
def test_a_word_that_an_option_does_not_know(network, text, message):
    value = network(f"x = Input {{2:2:1}}\nz = {text}")
    with pytest.raises(ConfigError, match=message) as caught:
        graph_of(value, evaluator_with(SeedCounter()), "float")
    assert str(caught.value.span) == "test.bs:3:5"
    assert caught.value.hint


@pytest.mark.parametrize("product", ["W * BS.Loop.Previous (z)", "TransposeTimes (W, BS.Loop.Previous (z))"])
def test_the_weights_give_the_shape_in_a_loop_whose_other_operand_is_a_single_row(network, product):
    """What the loop begins with has the shape of the row; the product does not wait for the right one."""
    text = f"s = Input {{1}}\nW = ParameterTensor {{(3:3)}}\nz = s .* Tanh ({product})"
    assert graph_of(network(text), evaluator_with(SeedCounter()), "float").network.find("z").shape == (3,)


def test_weights_behind_a_loop_get_its_final_shape(network):
    """What is known of the loop at first is a single element, with fewer axes than what it is joined with."""
    text = "x = Input {2}\nn = BS.Constants.OnesLike (x) + BS.Loop.Previous (n)\n"
    text += "h = LinearLayer {(2:3), inputRank=1} (Splice ((n : LinearLayer {1} (x)), axis=3))\n"
    text += "z = LinearLayer {4} (h)"
    built = graph_of(network(text), evaluator_with(SeedCounter()), "float").network
    assert built.find("z.W").shape == (4, 2, 3, 1, 2)
    assert built.find("z").shape == (4,)


def test_a_stack_of_units_and_a_window_in_brain_script(network):
    text = "x = Input {4}\nz = RecurrentLSTMLayerStack {(3:3), allowOptimizedEngine=true} (x)\n"
    text += "p = ImageInput {8, 8, 1}\ny = ConvolutionalLayer {2, (3:3)} (p)\n"
    text += "c = new ComputationNode [ operation='Crop' ; inputs=(p:y) ; tag='' ]\n"
    text += "d = new ComputationNode [ operation='Crop' ; inputs=(p:y) ; xOffset=0 ; yOffset=2 ; tag='' ]"
    built = graph_of(network(text), evaluator_with(SeedCounter()), "float").network
    assert built.find("z.arrayOfFunctions[0].W").shape == (3, 36)  # 4 gates of 3 (4 + 3) weights and 2 * 3 biases
    assert built.find("z.arrayOfFunctions[1].W").shape == (3, 32)
    assert built.find("c").shape == (6, 6, 1)
    assert built.find("d").options["offsetY"] == 2


def test_a_composition_evaluates_the_defaults_of_its_first_function(value):
    """Each once, when the composition is evaluated: a default is missed even where the function is never called."""
    text = "f (x, k=Fail ('a default')) = x\ng = f >> (x => x)"
    with pytest.raises(ConfigError, match="a default"):
        value(f"{text}\nz = if IsArray (g) then 1 else 0")
    assert value("f (x, k=Fail ('a default')) = x\nz = if IsArray (f) then 1 else 0") == 0


def test_an_operation_that_is_not_supported_says_so(network):
    members = "x = Input {2}\nz = new ComputationNode [ operation = 'LSTM' ; inputs = x ; tag = '' ]"
    with pytest.raises(ConfigError, match="LSTM is not supported") as error:
        graph_of(network(members), evaluator_with(SeedCounter()), "double")
    assert "PastValue" in error.value.hint
