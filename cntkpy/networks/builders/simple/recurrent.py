"""The recurrent kinds of SimpleNetworkBuilder (docs/specification/networks.md D.4 to D.6)."""

from __future__ import annotations

from cntkpy.cntk_config.base.diagnostics import UserError
from cntkpy.networks.builders.simple.parameters import find_criterion
from cntkpy.networks.builders.simple.parts import CLASS_BASED, Builder, Settings
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import Node, ValidatedNetwork


class _Recurrent(Builder):
    """Parts that only the recurrent kinds have."""

    def __init__(self, settings: Settings, precision: str, seeds: SeedCounter | None) -> None:
        super().__init__(settings, precision, seeds)
        self.sizes = list(settings.layer_sizes)
        self.hidden = len(self.sizes) - 2
        if self.hidden < 1:
            raise UserError(
                "BadValue", "this kind of network needs a hidden layer: at least three entries in layerSizes"
            )
        self._recurrent = list(settings.recurrent_layer)

    def is_recurrent(self, index: int) -> bool:
        """Consume the next entry of `recurrentLayer` if it is this index; return whether it was."""
        if self._recurrent and self._recurrent[0] == index:
            self._recurrent.pop(0)
            return True
        return False

    def layer(self, i: int, x: Node, recurrent: bool, random_bias: bool = False) -> Node:
        """Return an Elman or a plain hidden layer."""
        weights = self.weights(f"U{i}", self.sizes[i + 1], self.sizes[i])
        if recurrent:
            feedback_weights = self.weights(f"W{i}", self.sizes[i + 1], self.sizes[i + 1])
            past = self.past(weights)  # the real input is attached below
            feedback = self.times(None, feedback_weights, past)
            total = self.plus(None, self.times(None, weights, x), feedback)
            out = self.nonlinearity(0, total)
            past.inputs = [out]
            return self.dropout(out)
        make = self.weights if random_bias else self.constant
        bias = make(f"B{i}", self.sizes[i + 1], 1)
        return self.dropout(self.nonlinearity(i, self.plus(None, self.times(None, weights, x), bias)))

    def lookup(self, features: Node, name: str = "LookupTable") -> Node:
        """Return the embedding layer."""
        order = self.settings.lookup_table_order
        if self.sizes[0] % order:
            raise UserError(
                "BadValue",
                f"the first entry of layerSizes is not a multiple of lookupTableOrder: {self.sizes[0]}, {order}",
            )
        table = self.weights("E0", self.sizes[1], self.sizes[0] // order)
        return self.node("LookupTable", name, table, features)

    def lstm(self, i: int, x: Node, dim: int, out: int) -> Node:
        """Return one LSTM layer of index i, from `dim` to `out` elements."""
        s = self.settings
        wxo, wxi, wxf, wxc = (self.weights(f"WX{gate}{i}", out, dim) for gate in "OIFC")
        bo = self.constant(f"bo{i}", out, 1, value=s.output_gate_init)
        bc = self.constant(f"bc{i}", out, 1)
        bi = self.constant(f"bi{i}", out, 1, value=s.input_gate_init)
        bf = self.constant(f"bf{i}", out, 1, value=s.forget_gate_init)
        whi = self.weights(f"WHI{i}", out, out)
        wci = self.weights(f"WCI{i}", out, 1)
        whf = self.weights(f"WHF{i}", out, out)
        wcf = self.weights(f"WCF{i}", out, 1)
        who = self.weights(f"WHO{i}", out, out)
        wco = self.weights(f"WCO{i}", out, 1)
        whc = self.weights(f"WHC{i}", out, out)
        past_h = [self.past(bo) for _ in range(4)]  # for input, forget, output gate and cell; attached below
        past_c = [self.past(bo) for _ in range(3)]

        def gate(wx: Node, bias: Node, wh: Node, h: Node, wc: Node, c: Node) -> Node:
            peephole, feedback = self.node("DiagTimes", None, wc, c), self.times(None, wh, h)
            total = self.plus(None, self.times(None, wx, x), bias)
            return self.nonlinearity(0, self.plus(None, self.plus(None, total, feedback), peephole))

        input_gate = None if s.const_input_gate else gate(wxi, bi, whi, past_h[0], wci, past_c[0])
        bias = self.plus(None, self.times(None, whc, past_h[3]), bc)
        cell = self.node("Tanh", None, self.plus(None, self.times(None, wxc, x), bias))
        if input_gate is not None:
            cell = self.node("ElementTimes", None, input_gate, cell)
        kept = past_c[2]
        if not s.const_forget_gate:
            kept = self.node("ElementTimes", None, gate(wxf, bf, whf, past_h[1], wcf, past_c[1]), past_c[2])
        cell = self.plus(None, kept, cell)
        output_gate = None if s.const_output_gate else gate(wxo, bo, who, past_h[2], wco, cell)
        output = self.node("Tanh", None, cell)
        if output_gate is not None:
            output = self.node("ElementTimes", None, output_gate, output)
        for node in past_h:
            node.inputs = [output]
        for node in past_c:
            node.inputs = [cell]
        return self.dropout(output)

    def lstm_stack(self, features: Node, always: bool) -> Node:
        """Embedding, first LSTM (index 0) and the further layers; `always`: all of them LSTMs."""
        order, offset = self.settings.lookup_table_order, 0
        x, dim = self.normalised(features), self.sizes[0]
        if order > 0:
            x, offset = self.lookup(x), 1
            dim = self.sizes[1] * order
        if self.hidden < offset + 1:
            raise UserError(
                "BadValue", "layerSizes needs one more hidden layer: the first one is the embedding (lookupTableOrder)"
            )
        x = self.lstm(0, x, dim, self.sizes[offset + 1])
        for i in range(offset + 1, self.hidden):
            if always or self.is_recurrent(i):
                x = self.lstm(i, x, self.sizes[i], self.sizes[i + 1])
            else:
                x = self.layer(i, x, recurrent=False)
        return x

    def class_based_top(self, h: Node) -> Node:
        """Class-based criterion and its parameters; returns the word weights."""
        s, n = self.settings, self.hidden
        if s.vocab_size != self.sizes[-1]:
            raise UserError(
                "Conflict", f"vocabSize ({s.vocab_size}) must equal the last entry of layerSizes ({self.sizes[-1]})"
            )
        if s.classes < 1:
            raise UserError("MissingParameter", "this kind of network needs nbrClass, the number of word classes")
        weights = self.weights(f"W{n}", self.sizes[-2], self.sizes[-1])
        labels = self.input("labels", 4, group="label")
        classes = self.weights("WeightForClassPostProb", s.classes, self.sizes[-2])
        posterior = self.times("ClassPostProb", classes, h)
        operation, _ = find_criterion("trainingCriterion", s.training_criterion)
        eval_operation, _ = find_criterion("evalCriterion", s.eval_criterion)
        created: list[Node] = []
        for key, word, used, name in (
            ("trainingCriterion", s.training_criterion, operation, "TrainNodeClassBasedCrossEntropy"),
            ("evalCriterion", s.eval_criterion, eval_operation, "EvalNodeClassBasedCrossEntrpy"),
        ):
            if used == "NoiseContrastiveEstimation" or (used not in CLASS_BASED and self.sizes[-2] != 4):
                message = f"{key} = {word} does not fit this kind of network (rnnType)"
                if used not in CLASS_BASED:
                    message += f": labels have the shape [4], the last hidden layer [{self.sizes[-2]}]"
                raise UserError("BadChoice", message, hint="use classCrossEntropyWithSoftmax")
            if created and used == operation:
                created.append(created[0])
            elif used in CLASS_BASED:
                created.append(self.node(used, name, labels, h, weights, posterior))
            else:
                created.append(self.node(used, name, labels, h))
        self.network.add_to_group("criterion", created[0])
        self.network.add_to_group("evaluation", created[1])
        self.network.add_to_group("output", created[1])
        if s.need_prior:
            self.node("Mean", None, labels)
        return weights

    def finished(self) -> ValidatedNetwork:
        """Return the validated network."""
        return self.network.validate()


def simple_rnn(settings: Settings, precision: str = "float", seeds: SeedCounter | None = None) -> ValidatedNetwork:
    """`rnnType = SIMPLERNN`: Elman layers where `recurrentLayer` says so, sparse features."""
    build = _Recurrent(settings, precision, seeds)
    n = build.hidden
    x = build.normalised(build.input("features", build.sizes[0], group="feature", sparse=True))
    for i in range(n):
        x = build.layer(i, x, build.is_recurrent(i + 1))
    weights = build.weights(f"W{n}", build.sizes[-1], build.sizes[-2])
    labels = build.input("labels", build.sizes[-1], group="label")
    build.criteria(labels, build.times(None, weights, x), ("criterion", "eval"))
    build.network.add_to_group("output", build.times("outputs", weights, x))
    if settings.need_prior:
        build.node("Mean", None, labels)
    return build.finished()


def class_lm(settings: Settings, precision: str = "float", seeds: SeedCounter | None = None) -> ValidatedNetwork:
    """`rnnType = CLASSLM`: class-based language model over Elman layers."""
    build = _Recurrent(settings, precision, seeds)
    x = build.normalised(build.input("features", build.sizes[0], group="feature", sparse=True))
    for i in range(build.hidden):
        x = build.layer(i, x, build.is_recurrent(i + 1), random_bias=i == 0)
    build.class_based_top(x)
    return build.finished()


def lstm_network(settings: Settings, precision: str = "float", seeds: SeedCounter | None = None) -> ValidatedNetwork:
    """`rnnType = LSTM`: a stack of LSTM layers with peepholes."""
    build = _Recurrent(settings, precision, seeds)
    n = build.hidden
    features = build.input("features", build.sizes[0], group="feature", sparse=settings.sparse_input)
    x = build.lstm_stack(features, always=False)
    weights = build.weights(f"W{n}", build.sizes[-1], build.sizes[-2])
    labels = build.input("labels", build.sizes[-1], group="label")
    build.criteria(labels, build.times(None, weights, x))
    output = build.times("outputs", weights, x)
    build.node("Softmax", "PosteriorProb", output)
    if settings.need_prior:
        logarithm = build.node("Log", "LogOfPrior", build.node("Mean", None, labels))
        output = build.node("Minus", "ScaledLogLikelihood", output, logarithm)
    build.network.add_to_group("output", output)
    return build.finished()


def class_lstm(
    settings: Settings, precision: str = "float", seeds: SeedCounter | None = None, side_input: bool = False
) -> ValidatedNetwork:
    """`rnnType = CLASSLSTM`, and with a side input `CLSTM`: class-based language models over LSTM layers."""
    if settings.lookup_table_order < 1:
        raise UserError(
            "MissingParameter", "this kind of network needs an embedding: give lookupTableOrder, at least 1"
        )
    build = _Recurrent(settings, precision, seeds)
    n = build.hidden
    x = build.lstm_stack(build.input("features", build.sizes[0], group="feature", sparse=True), always=True)
    if side_input:
        side = build.input("binaryFeature", settings.aux_dim, group="feature")
        weights = build.weights("AuxTrans0", build.sizes[-2], settings.aux_dim)
        side = build.nonlinearity(n, build.times(None, weights, side), "TimesToGetGlobalBias")
        x = build.plus("PlusGlobalBias", x, side)
    weights = build.class_based_top(x)
    output = build.node("TransposeTimes", "outputs", weights, x)
    build.network.add_to_group("output", output)
    build.node("Softmax", "PosteriorProb", output)
    return build.finished()


def log_bilinear(settings: Settings, precision: str = "float", seeds: SeedCounter | None = None) -> ValidatedNetwork:
    """`rnnType = LBLM`: log-bilinear language model; past words added linearly, no nonlinearities."""
    build = _Recurrent(settings, precision, seeds)
    n, sizes = build.hidden, build.sizes
    x = build.normalised(build.input("features", sizes[0], group="feature"))
    offset = 0
    if settings.lookup_table_order > 0:
        x, offset = build.lookup(x, "Lookuptatble"), 1  # CNTK's spelling
    total, dim = x, sizes[1] * settings.lookup_table_order if offset else sizes[0]
    for k in range(1, settings.ma_order + 1):
        past = build.node(
            "PastValue", f"pastValue{k}", x, timeStep=k, defaultHiddenActivity=settings.default_hidden_activity
        )
        total = build.plus(None, build.times(None, build.weights(f"DD{k}", dim, dim), past), total)
    x = total
    for i in range(offset, n):
        weights = build.weights(f"U{i}", sizes[i + 1], dim)
        dim = sizes[i + 1]
        product = build.times(None, weights, x)
        if build.is_recurrent(i + 1):
            recurrent = build.weights(f"R{i + 1}", dim, dim)
            past = build.past(product)
            x = build.plus(None, build.times(None, recurrent, past), product)
            past.inputs = [x]
        else:
            x = product
        x = build.dropout(build.plus(None, x, build.constant(f"bi{i}", dim, 1)))
    weights = build.weights(f"W{n}", sizes[-1], dim)
    labels = build.input("labels", sizes[-1], group="label")
    build.criteria(labels, build.times(None, weights, x))
    output = build.times("outputs", weights, x)
    build.network.add_to_group("output", output)
    if settings.need_prior:
        build.node("Mean", None, labels)
    return build.finished()
