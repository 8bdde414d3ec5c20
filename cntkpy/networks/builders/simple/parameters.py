"""The parameters of SimpleNetworkBuilder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, nearest, suggestion
from cntkpy.cntk_config.declare import BOOLEAN, INTEGER, REAL, TEXT, Declared, Parameter, Type, among, array
from cntkpy.cntk_config.parameters import ConfigValue

KINDS = {
    "SIMPLENET": "",
    "SIMPLERNN": "",
    "LSTM": "",
    "CLASSLSTM": "",
    "NCELSTM": "noise-contrastive estimation is not supported; use CLASSLSTM or LSTM",
    "CLASSLM": "",
    "LBLM": "",
    "NPLM": "use LBLM, or describe the network with NDLNetworkBuilder",
    "CLSTM": "",
    "CRF": "use LSTM, or describe the network with NDLNetworkBuilder",
}
"""The kinds in the order in which a list in `rnnType` is matched; why, if one is not supported."""

TRAINING_CRITERIA = {
    "crossentropywithsoftmax": ("CrossEntropyWithSoftmax", "CrossEntropyWithSoftmax"),
    "squareerror": ("SquareError", "SquareError"),
    "logistic": ("Logistic", "Logistic"),
    "classcrossentropywithsoftmax": ("ClassBasedCrossEntropyWithSoftmax", "ClassCrossEntropyWithSoftmax"),
    "noisecontrastiveestimation": ("NoiseContrastiveEstimation", "NoiseContrastiveEstimationNode"),
}
EVALUATION_CRITERIA = {
    **TRAINING_CRITERIA,
    "classificationerror": ("ClassificationError", "EvalClassificationError"),
    "errorprediction": ("ClassificationError", "EvalClassificationError"),
}
CRITERION_WORDS = {
    "trainingCriterion": (
        "crossEntropyWithSoftmax",
        "squareError",
        "logistic",
        "classCrossEntropyWithSoftmax",
        "noiseContrastiveEstimation",
    ),
    "evalCriterion": (
        "classificationError",
        "crossEntropyWithSoftmax",
        "squareError",
        "logistic",
        "classCrossEntropyWithSoftmax",
        "noiseContrastiveEstimation",
    ),
}
NONLINEARITIES = ("Sigmoid", "RectifiedLinear", "Tanh", "None")
_PLACES = (
    "layerTypes",
    "initValueScale",
    "trainingCriterion",
    "evalCriterion",
    "vocabSize",
    "nbrClass",
    "lookupTableOrder",
    "layerSizes",
)
"""Words in messages: the parameter to point at."""


def _criteria(key: str) -> Type[ConfigValue]:
    return among(TEXT, *CRITERION_WORDS[key])


_UNUSED = "CNTK reads it and makes nothing of it."
_GATES = (
    "constInputGateValue",
    "constForgetGateValue",
    "constOutputGateValue",
    "inputGateInitVal",
    "forgetGateInitVal",
    "outputGateInitVal",
)
_CLASSES = ("vocabSize", "nbrClass")
_RECURRENT = ("recurrentLayer", "defaultHiddenActivity")
_IDLE: dict[str, tuple[str, ...]] = {
    "SIMPLENET": (*_RECURRENT, "lookupTableOrder", "maOrder", *_GATES, "sparseinput", *_CLASSES, "auxfeatdim"),
    "SIMPLERNN": ("lookupTableOrder", "maOrder", *_GATES, "sparseinput", *_CLASSES, "auxfeatdim"),
    "CLASSLM": ("lookupTableOrder", "maOrder", *_GATES, "sparseinput", "auxfeatdim"),
    "LSTM": ("maOrder", *_CLASSES, "auxfeatdim"),
    "CLASSLSTM": ("maOrder", "sparseinput", "auxfeatdim"),
    "CLSTM": ("maOrder", "sparseinput"),
    "LBLM": ("recurrentLayer", *_GATES, "sparseinput", *_CLASSES, "auxfeatdim"),
}
"""Parameters that a kind of network has no use for."""


class SimpleNetworkBuilder(Declared):
    """A feed-forward or recurrent network described by the sizes of its layers."""

    layer_sizes = Parameter("layerSizes", array(INTEGER), default="100", help="Sizes of all layers, input to output.")
    training_criterion = Parameter("trainingCriterion", _criteria("trainingCriterion"), help="Criterion to train with.")
    eval_criterion = Parameter("evalCriterion", _criteria("evalCriterion"), help="Criterion to report.")
    rnn_type = Parameter(
        "rnnType",
        array(among(TEXT, *(name for name, reason in KINDS.items() if not reason))),
        default="SIMPLENET",
        help="Kind of network.",
    )
    layer_types = Parameter(
        "layerTypes",
        array(among(TEXT, *NONLINEARITIES)),
        default="Sigmoid",
        help="Nonlinearity per hidden layer, the last one repeats.",
    )
    init_value_scale = Parameter("initValueScale", REAL, default="1", help="Factor of the random range.")
    uniform_init = Parameter("uniformInit", BOOLEAN, default="true", help="Uniform start values instead of gaussian.")
    apply_mean_var_norm = Parameter(
        "applyMeanVarNorm", BOOLEAN, default="false", help="Normalise features by their mean and variance."
    )
    need_prior = Parameter("needPrior", BOOLEAN, default="false", help="Divide the output by the class priors.")
    add_dropout_nodes = Parameter("addDropoutNodes", BOOLEAN, default="false", help="Dropout after hidden layers.")
    recurrent_layer = Parameter(
        "recurrentLayer", array(INTEGER), default=None, help="Which hidden layers are recurrent, from 1."
    )
    default_hidden_activity = Parameter(
        "defaultHiddenActivity", REAL, default="0.1", help="Value of recurrent layers before a sequence starts."
    )
    lookup_table_order = Parameter(
        "lookupTableOrder", INTEGER, default="0", help="Words per frame for the embedding layer; 0: none."
    )
    ma_order = Parameter("maOrder", INTEGER, default="0", help="Context length of LBLM.")
    const_input_gate = Parameter("constInputGateValue", BOOLEAN, default="false", help="LSTM without input gate.")
    const_forget_gate = Parameter("constForgetGateValue", BOOLEAN, default="false", help="LSTM without forget gate.")
    const_output_gate = Parameter("constOutputGateValue", BOOLEAN, default="false", help="LSTM without output gate.")
    input_gate_init = Parameter("inputGateInitVal", REAL, default="-1", help="Start value of input gate biases.")
    forget_gate_init = Parameter("forgetGateInitVal", REAL, default="-1", help="Start value of forget gate biases.")
    output_gate_init = Parameter("outputGateInitVal", REAL, default="-1", help="Start value of output gate biases.")
    sparse_input = Parameter("sparseinput", BOOLEAN, default="false", help="LSTM: sparse features.")
    vocab_size = Parameter("vocabSize", INTEGER, default="-1", help="Class-based kinds: number of words.")
    classes = Parameter("nbrClass", INTEGER, default="-1", help="Class-based kinds: number of word classes.")
    aux_dim = Parameter("auxfeatdim", INTEGER, default="20", help="CLSTM: dimension of the side input.")
    noise_number = Parameter("noise_number", INTEGER, default="-1", help="NCELSTM: noise samples (not supported).")
    output_layer_size = Parameter("outputLayerSize", TEXT, default=None, ignored=_UNUSED)
    device = Parameter("deviceId", TEXT, default=None, ignored="the device of the command is used.")
    direct_connect = Parameter("directConnect", array(INTEGER), default=None, help="NCELSTM (not supported).")
    word_to_class = Parameter("word2cls", TEXT, default=None, ignored=_UNUSED)
    class_to_index = Parameter("cls2index", TEXT, default=None, ignored=_UNUSED)
    stream_sizes = Parameter("streamSizes", TEXT, default=None, ignored=_UNUSED)
    lookup_sizes = Parameter("lookupTableOrderSizes", TEXT, default=None, ignored=_UNUSED)
    label_embedding = Parameter("labelEmbeddingSize", TEXT, default=None, ignored=_UNUSED)

    def kind(self) -> str:
        """Return the chosen kind of network.

        Raises:
            ConfigError: none of the words of `rnnType` is known.
        """
        words = [str(word) for word in self.rnn_type]
        for name in KINDS:
            if name in words:
                return name
        raise self.error(
            "rnnType",
            f"unknown rnnType '{':'.join(words)}'",
            "use one of " + ", ".join(name for name, reason in KINDS.items() if not reason) + " (upper case)",
        )

    def mistakes(self) -> Iterator[UserError]:
        """Yield the errors in the kind, the sizes, the nonlinearities and the criteria."""
        for check in (
            self._check_kind,
            lambda: check_sizes(self.layer_sizes),
            lambda: check_types(list(map(str, self.layer_types))),
            lambda: find_criterion("trainingCriterion", str(self.training_criterion)),
            lambda: find_criterion("evalCriterion", str(self.eval_criterion)),
        ):
            try:
                check()
            except UserError as error:
                yield error if isinstance(error, ConfigError) else self.located(error)

    def check_together(self) -> None:
        """Raise the first of the `mistakes`."""
        for error in self.mistakes():
            raise error

    def _check_kind(self) -> None:
        name = self.kind()
        if KINDS[name]:
            raise self.error("rnnType", f"rnnType {name} is not supported", KINDS[name])

    def without_effect(self) -> Iterator[tuple[str, str]]:
        """Yield the parameters that have no effect on this kind of network, each with the reason."""
        kind = self.kind()
        for name in _IDLE.get(kind, ()):
            if self.given(name) is not None:
                hint = "; add rnnType = SIMPLERNN or LSTM" if name == "recurrentLayer" and kind == "SIMPLENET" else ""
                yield name, f"rnnType = {kind} makes nothing of it{hint}"

    def located(self, error: UserError) -> UserError:
        """Return the same error with the place of the parameter that it names."""
        if error.span is not None:
            return error
        place = next((name for name in _PLACES if name in str(error)), "rnnType")
        return self.error(place, str(error), error.diagnostic.hint)


def check_sizes(sizes: Sequence[int]) -> None:
    """Raise a `UserError` for too few layers, or a layer without elements."""
    if len(sizes) < 2:
        raise UserError(
            "BadValue",
            "layerSizes needs at least two entries: the input and the output dimension",
            hint="entries are separated by ':', as in layerSizes = 784:200:10",
        )
    if wrong := [size for size in sizes if size < 1]:
        raise UserError("BadValue", f"the entries of layerSizes are at least 1, not {wrong[0]}")


def check_types(types: Sequence[str]) -> None:
    """Raise a `UserError` for an unknown nonlinearity."""
    for word in types:
        if word not in (*NONLINEARITIES, "none", ""):
            raise UserError(
                "BadChoice",
                f"unknown nonlinearity '{word}' in layerTypes",
                hint=suggestion(word, NONLINEARITIES) or "use one of " + ", ".join(NONLINEARITIES),
            )


def find_criterion(key: str, word: str) -> tuple[str, str]:
    """Operation and node name of a criterion. `key` is the parameter: `trainingCriterion` or `evalCriterion`."""
    table = TRAINING_CRITERIA if key == "trainingCriterion" else EVALUATION_CRITERIA
    criterion = table.get(word.lower())
    if word.lower() == "sequencewithsoftmax":
        raise UserError(
            "NotSupported", f"{key} {word} is not supported: it needs lattices", hint="use crossEntropyWithSoftmax"
        )
    if criterion is None:
        words = CRITERION_WORDS[key]
        meant = nearest(word, table, 0.8)
        known = next((word for word in words if meant and table[word.lower()] == table[meant]), None)
        hint = suggestion(word, words) or (f"did you mean '{known}'?" if known else "use one of " + ", ".join(words))
        raise UserError("BadChoice", f"unknown {key} '{word}'", hint=hint)
    return criterion
