"""`check` and the run agree about BrainScript: every construct of the language, every function of the library.

What runs is trained and written, has no error, and nothing in it is said to be unused. What cannot run is refused by
both with the same message at the same place.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cntkpy.networks.builders.brainscript.reference import documented
from cntkpy.networks.builders.ndl.front_end import parse_ndl
from cntkpy.networks.files.model_file import load_model, save_model

READER = "reader = [ readerType = CNTKTextFormatReader ; file = t.ctf ; randomize = false ; input = [ {} ] ]"
STREAMS = {"x": "dim = 3 ; format = dense", "l": "dim = 2 ; format = dense"}
CONFIG = """\
command = train:write
modelPath = m
{root}
train = [
    action = train
    BrainScriptNetworkBuilder = {block}
    SGD = [ maxEpochs = 1 ; minibatchSize = 8 ; learningRatesPerSample = 0.01 ]
    {reader}
]
write = [ action = write ; outputPath = out ; minibatchSize = 8 ; {reader} ]
"""
ROWS = ("0 |x 1 2 3 |l 1 0", "0 |x 2 1 0 |l 0 1", "0 |x 0 1 1 |l 1 0", "1 |x 3 0 1 |l 0 1", "1 |x 1 1 2 |l 1 0")
REST = f"|i {' '.join('0102030405060708')} |j 1 0 2 |k 1:1 |sp 0:1 |c 2 0 1 |gain 1 |query 2"
DATA = "".join(f"{row} {REST}\n" for row in ROWS)
INPUTS = "x = Input {3} ; l = Input {2, tag='label'}\n"
TRAINED = INPUTS + "z = DenseLayer {2} (x) ; ce = CrossEntropyWithSoftmax (l, z) ; criterionNodes = (ce)\n"
SQUARED = "ce = SquareError (l, z) ; criterionNodes = (ce)"
FILES = {"t.ctf": DATA, "w.txt": "1 2 3\n4 5 6\n", "more.bs": "half (v) = v .* 0.5\n"}


def config(block: str, root: str = "", **streams: str) -> str:
    reader = READER.format(" ; ".join(f"{name} = [ {what} ]" for name, what in {**STREAMS, **streams}.items()))
    return CONFIG.format(block=block, reader=reader, root=root)


def net(*texts: str) -> str:
    text = "\n".join(texts)
    output = "" if "output" in text else "\noutputNodes = (z)"
    return "{\n" + text + output + "\n}"


def outputs(*expressions: str, before: str = "") -> str:
    """A network whose outputs are these expressions."""
    members = [f"o{number:02} = {one}" for number, one in enumerate(expressions)]
    names = ":".join(member.partition(" ")[0] for member in members)
    return net(TRAINED + before, *members, f"outputNodes = ({names})")


def values(*pairs: str) -> str:
    """A network that is made only if every `expression --> value` is true."""
    members: list[str] = []
    for number, pair in enumerate(pairs):
        text, _, value = pair.partition(" --> ")
        quoted = "'" + pair.replace("'", "").replace('"', "") + "'"
        members.append(f"v{number:02} = if ({text}) == ({value}) then 0 else Fail ({quoted})")
    total = " + ".join(member.partition(" ")[0] for member in members)
    return net(
        INPUTS, *members, f"z = DenseLayer {{2 + {total}}} (x) ; ce = SquareError (l, z)", "criterionNodes = (ce)"
    )


LANGUAGE = {
    "comments": net("# one", TRAINED, "// two", "/* three\n four */ outputNodes = (z) // five"),
    "records in brackets": "[\n" + TRAINED + "outputNodes = (z)\n]",
    "an expression in parentheses": "(new ComputationNetwork {" + TRAINED + "outputNodes = (z) })",
    "numbers": values("12 --> 12.0", "1. --> 1", ".5 --> 0.5", "1e-3 --> 0.001", "0x1F --> 31", "2.*3 --> 6"),
    "strings": values("'a\"b' + \"c'd\" --> 'a\"bc' + \"'d\"", "'a#b' --> 'a#b'", "'b' > 'abc' --> true"),
    "operators": values(
        "2 + 3*4 --> 14",
        "10 - 4 - 3 --> 3",
        "2*3**2 --> 36",
        "2**3**2 --> 64",
        "-2**2 --> 4",
        "-7 % 4 --> -3",
        "+2 --> 2",
        "7/2 --> 3.5",
        "!true --> false",
        "1 < 2 --> true",
        "2 <= 2 --> true",
        "3 > 4 --> false",
        "3 >= 4 --> false",
        "1 != 2 --> true",
        "true && false --> false",
        "true || false --> true",
    ),
    "if": values("if true then 1 else 2 + 10 --> 1", "(if false then 1 else 2) + 10 --> 12"),
    "arrays": values(
        "(1:2:3)[1] --> 2",
        "((1:2):3)[2] --> 3",
        "(1:(2:3))[1][0] --> 2",
        "[| 7 |][0] --> 7",
        "[| 7 ; 8 |][1] --> 8",
        "Length ([| |]) --> 0",
        "(array [2..4] (i => i*i))[4] --> 16",
        "((1:2:3) << 1)[0] --> 2",
        "{ q[i:0..3] = if i == 0 then 1 else q[i-1]*2 }.q[3] --> 8",
    ),
    "records": values(
        "{ a = b + 1 ; b = 5 }.a --> 6", "{ a = { c = b } ; b = 5 }.a.c --> 5", "[ a = 1 b = 2 ].b --> 2"
    ),
    "functions": values(
        "{ f (x, k=2) = x*k }.f (4) --> 8",
        "{ f (x, k=2) = x*k }.f (k=3, 4) --> 12",
        "{ f {y} = y }.f (1) --> 1",
        "(x => y => x*10 + y) (4) (2) --> 42",
        "((x => x + 1) >> (x => x*2)) (3) --> 8",
        "{ g[i:0..1] (y) = y + i }.g[1] (1) --> 2",
        "{ f (n) = if n == 0 then 0 else n + f (n-1) }.f (9) --> 45",
    ),
    "macros": net(
        INPUTS,
        "Layer (in, dim, act) = { W = Parameter {dim, 0, init='uniform'} ; y = act (W * in) }",
        "z = Layer (x, 2, Sigmoid).y",
        SQUARED,
    ),
    "an include": net(
        'include "more.bs"', INPUTS, "z = DenseLayer {2} (half (x)) ; ce = SquareError (l, z)", "criterionNodes = (ce)"
    ),
    "variables": net(INPUTS, "z = DenseLayer {$width$} (x) ; ce = SquareError (l, z) ; criterionNodes = (ce)"),
    "names around the block": net(
        INPUTS, "z = DenseLayer {if precision == 'float' && deviceId < 99 && traceLevel < 9 then 2 else 3} (x)", SQUARED
    ),
    "operators on nodes": outputs(
        "x + x",
        "x + 1",
        "1 - x",
        "x * 2",
        "2 * x",
        "x .* x",
        "1 / p",
        "x / 2",
        "x < 1",
        "x == x",
        "x > 1",
        "x >= p",
        "x != p",
        "x <= p",
        "x && p",
        "x && true",
        "x || true",
        "-x",
        "+x",
        "!p",
        "if p then x else 0",
        "W * x",
        before="p = Sigmoid (x) ; W = Parameter {2, 3}",
    ),
    "members of nodes": net(
        INPUTS,
        "z = DenseLayer {l.dim} (x) ; w = z.inputs[0] ; v = z.PlusArgs[1]",
        "ce = if z.operation == 'Plus' && x.name == 'x' then SquareError (l, w + v) else Fail ('other')",
        "criterionNodes = (ce)",
    ),
    "special members": net(
        INPUTS,
        "z = DenseLayer {2} (x) ; ce = CrossEntropyWithSoftmax (l, z) ; errs = ClassificationError (l, z)",
        "featureNodes = (x) ; labelNodes = (l) ; criterionNodes = (ce) ; evaluationNodes = (errs) ; outputNodes = (z)",
    ),
    "tags": net(
        "x = Input {3} ; l = Input {2, tag='label'} ; z = DenseLayer {2} (x) ; y = Pass (z, tag='output')",
        "ce = SquareError (l, z, tag='criterion') ; errs = ClassificationError (l, z, tag='evaluation')",
    ),
    "new": outputs(
        "new ComputationNode [ operation = 'Sigmoid' ; inputs = x ; tag = '' ]",
        "new ComputationNode [ operation='Slice' ; inputs=x ; beginIndex=0 ; endIndex=2 ; axis=1 ; tag='' ]",
        "Slice (0, new NumericFunction ([ what = 'Length' ; arg = 1:2 ]), x)",
        "new ComputationNode [ operation='PastValue' ; inputs=x ; shape=new TensorShape [ dims=3 ] ; timeStep=1"
        " ; defaultHiddenActivation=0 ; tag='' ]",
    ),
}
"""Networks that show what the language has."""

LIBRARY = {
    "values": values(
        "Format (1.5, '.2') --> '1.50'",
        "Replace ('hello', 'l', '0') --> 'he00o'",
        "Substr ('hello', 1, 2) --> 'el'",
        "Chr (65) --> 'A'",
        "Length (1:2) --> 2",
        "Length (Repeat (3, 1)) --> 2",
        "Sign (-4) --> -1",
        "Min (3, 2) --> 2",
        "Max (3, 2) --> 3",
        "Fac (5) --> 120",
        "Mod (-17, 5) --> -2",
        "IntDiv (-17, 5) --> -3",
        "IsSameObject (x, x) --> true",
        "IsArray (1:2) --> true",
        "IsDouble (1) --> true",
        "IsBool (1) --> false",
        "IsNone (None) --> true",
        "Inferred --> 0",
        "BS.Constants.IsNone (BS.Constants.None) --> true",
        "BS.Constants.True + BS.Constants.False --> 1",
        "BS.Boolean.True + BS.Boolean.False --> 1",
    ),
    "printing": net(TRAINED, "a = Print (1:2) ; b = Debug (z, say='z') ; outputNodes = (z)"),
    "inputs": net(
        "x = Input {3} ; l = Input {2, tag='label'} ; sp = SparseInput {2}",
        "j = ImageInput (3, 1, 1) ; k = SparseImageInput (2, 1, 1)",
        "c = CNTK2.Input (3) ; t = EnvironmentInput ('isTraining')",
        "z = DenseLayer {2} (x .* c + t .* x) + DenseLayer {2} (j) + DenseLayer {2} (k) + DenseLayer {2} (sp)",
        SQUARED,
    ),
    "parameters": outputs(
        "Parameter {2, 3} * x",
        "Parameter {2, 3, init='heNormal', initValueScale=2, randomSeed=3} * x",
        "LearnableParameter {2, 3, initValue=1, learningRateMultiplier=0} * x",
        "Parameter {2, 3, init='fixedValue', value=2} * x",
        "Parameter {2, 3, init='fromFile', initFromFilePath='w.txt'} * x",
        "ParameterTensor {(2:3), init='xavier', initFilterRank=0, initOutputRank=1} * x",
        "ParameterTensor {(2:0), init='glorotNormal'} * x",
        "Constant {2} .* x",
        "Constant {1, rows=2, cols=3} * x",
        "ConstantTensor (1, (2:3)) * x",
        "ConstantFromString ('1 2 3') * x",
        "CNTK2._Parameter ((2:3), init='gaussian') * x",
        "BS.Parameters.WeightParam (2, 3) * x",
        "BS.Parameters.DiagWeightParam (3) .* x",
        "BS.Parameters.BiasParam (3) + x",
        "BS.Parameters.ScalarParam () .* x",
        "BS.Parameters.StabilizeElements (x, inputDim=3)",
        "BS.Parameters.Stabilize (x)",
        "BS.Constants.Zero + BS.Constants.One .* x",
        "BS.Constants.OnesTensor (3) + x",
        "BS.Constants.ZeroesLike (x)",
        "BS.Constants.ZeroSequenceLike (x)",
        "BS.Constants.ZeroesLike1 (x)",
        "BS.Constants.OnesLike (x)",
    ),
    "element by element": outputs(
        "Plus (x, 1)",
        "Minus (x, p)",
        "ElementTimes (x, 2)",
        "ElementDivide (x, p)",
        "Negate (x)",
        "Reciprocal (p)",
        "Abs (x)",
        "Exp (x)",
        "Log (p)",
        "Floor (x)",
        "Sigmoid (x)",
        "Tanh (x)",
        "Sqrt (p)",
        "Cosine (x)",
        "Acos (x)",
        "Asin (x)",
        "Sinh (x)",
        "Cosh (x)",
        "Asinh (x)",
        "Atanh (x)",
        "StopGradient (x)",
        "StraightThrough (x)",
        "Sin (x)",
        "RectifiedLinear (x)",
        "ReLU (x)",
        "LogSoftmax (x)",
        "Hardmax (x)",
        "Pass (x)",
        "Dropout (x)",
        "Ceil (x)",
        "Round (x)",
        "Softmax (x)",
        "Softmax (x, axis=1)",
        "Clip (0, 1, x)",
        "LogPlus (x, p)",
        "DiagTimes (Parameter {3, 1}, x)",
        "Scale (Constant (2), x)",
        "ColumnElementTimes (x, p)",
        "Less (x, p)",
        "Equal (x, p)",
        "Greater (x, p)",
        "GreaterEqual (x, p)",
        "NotEqual (x, p)",
        "LessEqual (x, p)",
        "Identity (x)",
        "BS.Boolean.And (p, x)",
        "BS.Boolean.Or (p, x)",
        "BS.Boolean.Xor (s, s)",
        "BS.Boolean.Not (x)",
        "BS.Boolean.If (p, x, 0)",
        "CNTK2.Identity (x)",
        "CNTK2.Relu (x)",
        "CNTK2.Square (x)",
        "CNTK2.Sqrt (p)",
        "CNTK2.Tanh (x)",
        "CNTK2.Softmax (x)",
        "CNTK2.Clip (x, 0, 1)",
        "Sign (x)",
        "Min (x, p)",
        "Max (x, p)",
        before="p = Sigmoid (x) ; s = Slice (0, 1, x)",
    ),
    "linear algebra and reductions": outputs(
        "Times (W, x)",
        "Times (W, x, outputRank=1)",
        "TransposeTimes (V, x)",
        "ReduceSum (x)",
        "ReduceLogSum (x)",
        "ReduceMean (x, axis=1)",
        "ReduceMin (x)",
        "ReduceMax (x)",
        "SumElements (x)",
        "SumColumnElements (x)",
        "MatrixL1Reg (W)",
        "MatrixL2Reg (W)",
        "KhatriRaoProduct (x, x)",
        "ColumnwiseCrossProduct (x, x)",
        "CosDistance (x, x)",
        "CosDistanceWithNegativeSamples (x, x, 1, 1)",
        "x - Mean (x)",
        "x .* InvStdDev (x)",
        "PerDimMeanVarNormalization (x, Mean (x), InvStdDev (x))",
        "PerDimMeanVarDeNormalization (x, Mean (x), InvStdDev (x))",
        "MeanVarNorm (x)",
        "z - LogPrior (l)",
        before="W = Parameter {2, 3} ; V = Parameter {3, 2}",
    ),
    "shapes": outputs(
        "Slice (0, 2, x)",
        "Slice (0, 1, m, axis=2)",
        "RowSlice (0, 2, x)",
        "Splice (x : x)",
        "Splice (m : m, axis=2)",
        "RowStack (x : z)",
        "RowRepeat (x, 2)",
        "TransposeDimensions (m, 1, 2)",
        "Transpose (m)",
        "NewReshape (x, (1:3))",
        "ReshapeDimension (x, 1, (1:3))",
        "FlattenDimensions (m, 1, 2)",
        "SplitDimension (x, 1, 3)",
        "Reshape (x, 3)",
        "BS.Seq2Seq.GetTopNTensor (1, m)",
        "CNTK2.Reshape (x, (1:3))",
        "CNTK2.Slice (x, 0, 2)",
        "CastAs (x, z)",
        "ReconcileDynamicAxis (x, z)",
        "ReconcileMBLayout (x, z)",
        before="m = NewReshape (x, (3:1))",
    ),
    "criteria": outputs(
        "CrossEntropyWithSoftmax (l, z, axis=1)",
        "ClassificationError (l, z)",
        "ClassificationError (l, z, topN=2)",
        "ClassificationError (l, z, axis=1)",
        "ErrorPrediction (l, z)",
        "CrossEntropy (l, Softmax (z))",
        "SquareError (l, z)",
        "Logistic (a, b)",
        "WeightedLogistic (a, b, b)",
        "LambdaRank (gain, b, query)",
        "NDCG1Eval (gain, b, query)",
        "ForwardBackward (LabelsToGraph (l), z, 1)",
        "ForwardBackward (LabelsToGraph (l), z, 0, delayConstraint=3)",
        "EditDistanceError (l, z)",
        "EditDistanceError (l, z, subPen=0, squashInputs=true, tokensToIgnore=1)",
        "EditDistanceError (l, z, tokensToIgnore=(0:1))",
        "CNTK2.CrossEntropyWithSoftmax_new (l, z)",
        "CNTK2.ClassificationError_new (l, z)",
        before="a = Slice (0, 1, l) ; b = Sigmoid (Slice (0, 1, z)) ; gain = Input {1} ; query = Input {1}",
    ),
    "images": outputs(
        "Convolution (K, i, (2:2), mapDims=2)",
        "Convolution (K, i, (2:2), mapDims=2, dilation=2)",
        "ConvolutionTranspose (K, i, (2:2:2), mapDims=1, autoPadding=(true:true:false))",
        "Pooling (i, 'max', (2:2))",
        "Pooling (i, 'average', (2:2), stride=2)",
        "MaxUnpooling (MaxPooling (i, 2, 2, 2, 2), i, (2:2), stride=2)",
        "MaxPooling (i, 2, 2, 1, 1)",
        "AveragePooling (i, 2, 2, 1, 1)",
        "ConvolutionalLayer {2, (2:2), pad=true, activation=ReLU} (i)",
        "MaxPoolingLayer {(2:2)} (i)",
        "AveragePoolingLayer {(2:2), stride=2} (i)",
        "MaxUnpoolingLayer {(2:2), stride=2} (MaxPooling (i, 2, 2, 2, 2), i)",
        "DeconvLayer {2, (3:3), 1, activation=ReLU} (i)",
        "ConvolutionTransposeLayer {1, (2:2), 1, stride=2, init='bilinear', bias=false} (i)",
        "BilinearUpsamplingLayer {1, 4, 2} (i)",
        "BatchNormalizationLayer {spatialRank=2} (i)",
        "BatchNormalization (i, Parameter {1, 1}, Parameter {1, 1}, Constant (0), Constant (1), true)",
        before="i = ImageInput (4, 4, 1) ; K = ParameterTensor {(2:2:1:2), init='heNormal', initFilterRank=2,"
        " initOutputRank=-1}",
    ),
    "layers": outputs(
        "LinearLayer {2} (x)",
        "BatchNormalizationLayer {reluFuse=true} (x)",
        "LinearLayer {(2:2), bias=false, inputRank=1} (x)",
        "DenseLayer {2, activation=Sigmoid} (x)",
        "EmbeddingLayer {2} (x)",
        "EmbeddingLayer {2, transpose=true} (x)",
        "BatchNormalizationLayer {} (x)",
        "LayerNormalizationLayer {} (x)",
        "StabilizerLayer {} (x)",
        "DelayLayer {} (x)",
        "DelayLayer {T=-1} (x)",
        "DropoutLayer {} (x)",
        "FeatureMVNLayer {} (x)",
        "z - LogPriorLayer {} (l)",
        "Sequential (DenseLayer {3} : ReLU : DenseLayer {2}) (x)",
        "Parallel (DenseLayer {2} : LinearLayer {2}, Splice) (x)",
        "MergeBinary (DenseLayer {2} : DenseLayer {2}, Plus) (x, z)",
        "LayerStack {2, i => DenseLayer {3}} (x)",
        "BFF (x, 2, 3).z",
        "SBFF (x, 2, 3).Eh",
        "Embedding (2, x, inputDim=3, sparseInput=true)",
        "Trace (x, say='x', logFirst=1)",
    ),
    "delays": outputs(
        "PastValue (3, x)",
        "Delay (0, x, timeStep=2, defaultHiddenActivation=0)",
        "FutureValue (3, x)",
        "PastValue (0, x, initialState=Constant (1))",
        "CNTK2.PastValue (x, 3)",
        "CNTK2.FutureValue (x, 3)",
        "BS.Loop.Previous (x)",
        "BS.Loop.Next (x)",
        "BS.Loop.IsFirst (x)",
        "BS.Loop.IsFirstN (2, x)",
        "BS.Loop.IsLast (x)",
        "BS.Loop.IsLastN (2, x)",
        "BS.Boolean.Toggle (BS.Loop.IsFirst (x))",
        "BS.Loop.Iteration (x)",
    ),
    "recurrences": outputs(
        "h",
        "RecurrentLSTMLayer {2} (x)",
        "RecurrentLSTMLayer {2, cellShape=3, goBackwards=true, usePeepholes=true, enableSelfStabilization=true} (x)",
        "RecurrentLSTMLayerStack {(2:2)} (x)",
        "BS.RNNs.RecurrentLSTMP (2, x, cellDim=3, inputDim=3).h",
        "BS.RNNs.RecurrentGRU (2, x, cellDim=2, inputDim=3).h",
        before="W = Parameter {2, 3} ; R = Parameter {2, 2} ; h = Tanh (W * x + R * PastValue (2, h))",
    ),
    "stacks of recurrences": outputs(
        "Last (BS.RNNs.RecurrentLSTMPStack ((2:2), x, cellDims=(2:2), inputDim=3))",
        "Last (BS.RNNs.RecurrentGRUStack ((2:2), x, cellDims=(2:2), inputDim=3))",
        "Last (BS.RNNs.RecurrentBidirectionalLSTMPStack ((2:2), x, cellDims=(2:2), inputDim=3))",
        "Last (BS.RNNs.RecurrentBidirectionalGRUStack ((2:2), x, cellDims=(2:2), inputDim=3))",
        before="Last (states) = states[Length (states) - 1].h",
    ),
    "blocks of recurrences": outputs(
        "s.h",
        "g.h",
        "t.h",
        "u.h",
        before="""
B = BS.RNNs.LSTMBlock {2} ; s = B (x, BS.RNNs.PreviousHC (s))
g = BS.RNNs.GRU (2, x, BS.RNNs.NextHC (g), cellDim=2, inputDim=3, auxDim=0)
t = BS.RNNs.LSTMP (2, x, hook (t), cellDim=2, inputDim=3, auxDim=0, aux=BS.RNNs.NoAuxInputHook (x, t))
hook = BS.RNNs.PreviousHCWithTrainedInitialState {shape=2}
u = B (x, BS.RNNs.NextHCWithTrainedInitialState {shape=2} (u))""",
    ),
    "sequences": outputs(
        "Gather (f, x)",
        "BS.Sequences.Scatter (f, Gather (f, x))",
        "BS.Sequences.First (x)",
        "BS.Sequences.Last (x)",
        "BS.Sequences.BroadcastSequenceAs (x, BS.Sequences.First (x))",
        "BS.Sequences.PastValueWindow (2, x).value",
        "BS.Sequences.Map (v => v + 1, x)",
        "BS.Sequences.FoldL (Add, 0, x)",
        "BS.Sequences.FoldR (Add, 0, x)",
        "Slice (0, 1, x, axis=-1)",
        "GatherPacked (PackedIndex (x, Where (f)), x)",
        "ScatterPacked (f, PackedIndex (f, Where (f)), Gather (f, x))",
        "BS.Loop.PreviousOrDefault (x, defaultValue=BS.Sequences.First (x))",
        "BS.Loop.Count (x)",
        "BS.Loop.NextOrDefault (x, defaultValue=BS.Sequences.First (x))",
        before="f = BS.Loop.IsFirst (x) ; Gather = BS.Sequences.Gather ; Add (a, b) = a + b",
    ),
    "several time axes": net(
        "t = DynamicAxis () ; x = Input {3, dynamicAxis=t} ; l = Input {2, dynamicAxis=t, tag='label'}",
        "z = DenseLayer {2} (x) ; last = BS.Sequences.Last (z) ; outputNodes = (last)",
        SQUARED,
    ),
    "random samples": outputs(
        "CNTK2.GetRandomSample (w, 2, false)",
        "CNTK2.GetInclusionFrequency (w, 2, true)",
        before="w = Constant (1, rows=3)",
    ),
}
"""Networks that have every function of the library."""
EDITING = {
    "loading": "(BS.Network.Load ('base.dnn'))",
    "editing": """({
    old = BS.Network.Load ('base.dnn')
    swap (n) = if n.operation == 'Sigmoid' then ReLU (n.inputs[0]) else n
    result = BS.Network.Edit (old, swap, BS.Constants.None)
}.result)""",
    "replacing links": """({
    old = BS.Network.Load ('base.dnn')
    links = BS.Network.Editing.ReplaceLinksToNode (old.h, Tanh (old.z))
    named = BS.Network.Editing.ReplaceLinksToNamedNode ('nobody', old.z)
    result = BS.Network.Edit (old, (links : named), (Pass (old.z, tag='output')))
}.result)""",
    "cloning": net(
        INPUTS,
        "old = BS.Network.Load ('base.dnn')",
        "deep = BS.Network.CloneFunction (old.x, old.h, parameters='constant')",
        "both = BS.Network.CloneFunction ((old.x : old.l), { h = old.h ; c = old.ce }, parameters='shared') (x, l)",
        "z = DenseLayer {2} (deep (x)) + both.h",
        SQUARED,
    ),
}
"""What is made of a model of a file."""
GOOD = {**LANGUAGE, **LIBRARY, **EDITING}
BASE = """
x = Input(3, tag=feature)
l = Input(2, tag=label)
W = Parameter(2, 3)
z = Times(W, x, tag=output)
h = Sigmoid(z)
ce = SquareError(l, h, tag=criterion)
"""
ONE = "dim = 1 ; format = dense"
MORE = {
    "inputs": {
        "j": "dim = 3 ; format = dense",
        "k": "dim = 2 ; format = sparse",
        "c": "dim = 3 ; format = dense",
        "sp": "dim = 2 ; format = sparse",
    },
    "criteria": {"gain": ONE, "query": ONE},
    "images": {"i": "dim = 16 ; format = dense"},
}
"""Streams beside `x` and `l`."""


BAD = {
    "a name": ("z = DenseLayer {2} (nobody)", "unknown identifier 'nobody'"),
    "a circle": ("z = a ; a = z + 1", "needed to compute itself"),
    "too many arguments": ("z = Sigmoid (x, x)", "takes 1 positional argument, 2 given"),
    "an option": ("z = DenseLayer {2, bais=false} (x)", "has no parameter 'bais'"),
    "an option by position": ("z = DenseLayer {2, false} (x)", "takes 1 positional argument"),
    "an option twice": ("z = DenseLayer {2, bias=true, bias=true} (x)", "given twice"),
    "an index": ("z = (x : x)[2]", "index 2 is out of range"),
    "a fraction as an index": ("z = (x : x)[0.5]", "expected integer"),
    "an index of no array": ("d = 5 ; z = x .* d[0]", "an index needs an array"),
    "an operator of values": ("z = x .* (1 + 'x')", "operator + cannot be applied"),
    "an operator of nodes": ("z = x ** 2", "operator **"),
    "a quotient of nodes": ("z = x / x", "operator /"),
    "a condition": ("z = if 1 then x else x", "must be a truth value"),
    "a sign": ("z = x .* (!5)", "operator !"),
    "with": ("z = { y = x } with { y = x }", "with"),
    "a member twice": ("z = x z = x", "two members 'z'"),
    "no value": ("z = DenseLayer {2}\n y 5", "'=' is expected"),
    "two semicolons": ("z = x ;; y = x", "';' is not expected here"),
    "a lambda of two": ("z = ((a, b) => a) (x, x)", "',' is not expected"),
    "an unknown character": ("z = x ^ 2", "unexpected character '^'"),
    "one bar": ("z = if true | false then x else x", "unexpected character '|'"),
    "a comment that is not closed": ("z = x /* never", "comment is not closed"),
    "a text that is not closed": ("z = DenseLayer {2, init='uniform} (x)", "not closed"),
    "a keyword": ("then = 3", "'then' is not expected here"),
    "a member of a record": ("z = { v = x }.w", "unknown identifier 'w'"),
    "a member of a node": ("z = x.colour", "colour"),
    "a member of a number": ("z = x .* (5 .b)", "needs a record"),
    "a class": ("z = new Wonder [ ]", "unknown class 'Wonder'"),
    "an operation": ("z = new ComputationNode [ operation='Wonder' ; inputs=x ; tag='' ]", "Wonder"),
    "an attribute": ("z = new ComputationNode [ operation='Slice' ; inputs=x ; tag='' ]", "required parameter"),
    "the bounds of an array": ("z = (array [0..1.5] (i => x))[0]", "expected integer"),
    "endless recursion": ("f (v) = f (v + 1) + 1 z = x .* f (0)", "never stops calling itself"),
    "an include without text": ("include more", "include needs the name of a file"),
    "a failure": ("z = if x.dim == 3 then Fail ('three') else x", "three"),
    "a tag": ("z = Pass (x, tag='colour')", "colour"),
    "a special member": ("z = DenseLayer {2} (x) ; outputNodes = (3)", "outputNodes"),
    "a start value": ("z = DenseLayer {2, init='best'} (x)", "best"),
    "shapes": ("z = Parameter {2, 4} * x", "4"),
    "an axis": ("z = ReduceSum (x, axis=4)", "axis"),
    "a slice": ("z = Slice (0, 9, x)", "9"),
    "a reshape": ("z = NewReshape (x, 5)", "5"),
    "a time axis": ("y = Input {3, dynamicAxis='nobody'} ; z = DenseLayer {2} (y)", "no DynamicAxis"),
    "an environment": ("z = x .* EnvironmentInput ('weather')", "weather"),
    "an operation of later versions": ("z = Argmax (x)", "Argmax"),
    "an operation that is not there": ("z = TimeReverse (x)", "TimeReverse"),
    "a kernel without axes": ("z = ConvolutionalLayer {2, 3} (x)", ""),
    "a node of a model": ("n = BS.Network.Load ('base.dnn') ; z = n.q", "q"),
    "a clone of nothing": ("n = BS.Network.Load ('base.dnn') ; z = BS.Network.CloneFunction (n.l, n.z) (x)", "l"),
    "parameters of a clone": (
        "n = BS.Network.Load ('base.dnn') ; z = BS.Network.CloneFunction (n.x, n.z, parameters='any') (x)",
        "any",
    ),
    "a loop without delay": ("z = Sigmoid (x + z2) ; z2 = Sigmoid (z)", "needed to compute itself"),
    "a window along the first axis": ("z = BS.Sequences.PastValueWindow (2, x, axis=1).value", "axis"),
    "two merged functions": ("z = MergeBinary (Sigmoid, Plus) (x, x)", "exactly two functions are needed"),
    "ranks": ("z = LinearLayer {2, inputRank=1, mapRank=1} (x)", "mapRank"),
}
"""Members that cannot be, beside those of a network that can be trained."""
MISSING = {
    "an included file": ("include 'none.bs'", "'none.bs' does not exist"),
    "start values": ("z = Parameter {2, 3, init='fromFile', initFromFilePath='none.txt'} * x", "none.txt"),
    "a model": ("n = BS.Network.Load ('none.dnn') ; z = n.z", "none.dnn"),
}
"""Files that are missing: an error of the run; of an included file also where one only looks, of the others a hint."""
NOT_HERE = dict.fromkeys(
    ("CreateAugmentWithFixedWindowAttentionHook", "GreedySequenceDecoderFrom", "BeamSearchSequenceDecoderFrom"),
    "tests/goldens/test_check_agrees.py has it, of tests/goldens/brainscript/editing",
)
NOT_HERE |= {
    "OptimizedRNNStack": "has weights of one length only; tests/goldens/test_check_agrees.py",
    "RNNStack": "the same",
    "ROIPooling": "needs regions",
    "ClassBasedCrossEntropyWithSoftmax": "needs classes; tests/goldens/test_check_agrees.py",
    "Shift": "never works, as in CNTK",
    "GMMLogLikelihood": "never works, as in CNTK",
}
THOROUGH = [name for number, name in enumerate(GOOD) if number % 7]


@pytest.fixture
def both(cntkpy, tmp_path: Path):
    """Check a configuration and run it, in a folder with a model."""

    def call(text: str):
        save_model(tmp_path / "base.dnn", parse_ndl(BASE).validate())
        checked = cntkpy("check", "m.cntk", files={**FILES, "m.cntk": text})
        return checked, cntkpy("configFile=m.cntk")

    return call


@pytest.mark.parametrize("name", [pytest.param(one, marks=[pytest.mark.thorough] * (one in THOROUGH)) for one in GOOD])
@pytest.mark.sampled
def test_what_runs_has_no_findings(both, tmp_path: Path, name: str) -> None:
    root = "width = 2" if "$width$" in GOOD[name] else ""
    checked, ran = both(config(GOOD[name], root, **MORE.get(name, {})))
    assert ran.code == 0, ran.err + checked.out
    assert checked.code == 0, checked.out
    assert "error" not in checked.out and "nothing" not in checked.out
    assert load_model(tmp_path / "m").nodes


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.thorough] * (number % 3 > 0)) for number, one in enumerate(BAD)]
)
def test_what_is_refused_has_the_same_error(both, name: str) -> None:
    members, message = BAD[name]
    ending = "" if "z = " not in members else "outputNodes = (z)"
    checked, ran = both(config(net(INPUTS, members, SQUARED, ending if "outputNodes" not in members else "")))
    assert ran.code != 0, checked.out
    assert checked.code == 2, checked.out + ran.err
    (place, *_) = re.findall(r"^ *--> (.+)$", ran.err.partition("EXCEPTION occurred")[2], re.MULTILINE)
    errors = [line for line in checked.out.splitlines() if ": error: " in line]
    assert any(error.startswith(f"{place}: error: {ran.message}") for error in errors), checked.out + ran.err
    assert message in ran.message


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_file_is_found_by_both(both, name: str) -> None:
    members, message = MISSING[name]
    checked, ran = both(config(net(INPUTS, members, SQUARED)))
    included = name == "an included file"
    assert (checked.code, ran.code != 0) == (2 * included, True)
    (place, *_) = re.findall(r"^ *--> (.+)$", ran.err, re.MULTILINE)
    assert checked.out.startswith(f"{place}: {'error' if included else 'hint'}: {ran.message}"), checked.out + ran.err
    assert message in ran.message


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.thorough] * (one != "a model")) for one in MISSING]
)
def test_a_missing_file_of_a_later_network_ends_the_run_at_once(both, name: str) -> None:
    members, message = MISSING[name]
    text = config(net(INPUTS, members, SQUARED)).replace("command = train:write", "command = edit:train")
    first = "edit = [ action = edit ; outputModelPath = first.dnn ; BrainScriptNetworkBuilder = "
    _, ran = both(f"{text}\n{first}{net(TRAINED)} ]\n")
    assert ran.code != 0 and message in ran.err
    assert "edit command" not in ran.err, ran.err


def test_every_function_has_an_example() -> None:
    text = "\n".join(GOOD.values())
    functions = [name for name, one in documented().items() if one.usage or one.alias]
    assert len(functions) > 200
    last = {name: name.rpartition(".")[2] for name in functions}
    missing = [name for name in functions if not re.search(rf"\b{last[name]}\b", text) and last[name] not in NOT_HERE]
    refused = "\n".join(members for members, _ in BAD.values())
    assert [name for name in missing if not re.search(rf"\b{last[name]}\b", refused)] == []
