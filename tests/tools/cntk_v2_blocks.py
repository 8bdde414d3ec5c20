"""Blocks of CNTK's later format as CNTK's layers write them, and what they compute, step by step."""

import cntk_v2_writer as v
import numpy as np

RANDOM = np.random.default_rng(8)


def dense(f, uid, x, outputs, inputs, name="", weight="W"):
    """A block Dense: W x + b."""
    formal = f.placeholder(f"{uid}_x", inputs)
    w = f.parameter(weight, RANDOM.normal(size=(outputs, inputs)).round(2), uid=f"Parameter{uid}0")
    b = f.parameter("b", RANDOM.normal(size=outputs).round(2), uid=f"Parameter{uid}1")
    f.function(31, f"{uid}_Times", w, formal, outputRank=1, inferInputRankToMap=v.Int(-1))
    f.function(19, f"{uid}_Plus", f"{uid}_Times_Output_0", b)
    return f.block(uid, "Dense", f"{uid}_Plus", {formal: x}, name)


def values(f, uid):
    return next(entry["value"] for entry in f.variables if entry["uid"] == uid)


def lstm(f, uid, x, width, steps=1, op=37):
    """A block LSTM with its recurrence, as the layers library writes it; h, and the parameters."""
    names = ("x", "h", "c")
    formal = {name: f.placeholder(f"{uid}_{name}", width) for name in names}
    w = f.parameter("W", RANDOM.normal(size=(4 * width, 2)), uid=f"{uid}W")
    r = f.parameter("H", RANDOM.normal(size=(4 * width, width)), uid=f"{uid}H")
    b = f.parameter("b", RANDOM.normal(size=4 * width), uid=f"{uid}b")
    initial = f.constant("initial", 0.1) if not any(e["uid"] == "Parameter_initial" for e in f.variables) else None
    initial = initial or "Parameter_initial"

    def function(op, name, *inputs, **attributes):
        return f.function(op, f"{uid}_{name}", *inputs, **attributes)

    total = function(19, "p1", b, function(31, "t1", w, formal["x"], outputRank=1))
    total = function(19, "p2", total, function(31, "t2", r, formal["h"], outputRank=1))
    gates = [
        function(
            14,
            f"s{i}",
            total,
            axis=v.static(0),
            beginIndex=v.Int(i * width),
            endIndex=v.Int((i + 1) * width),
            sliceStrides=v.Int(1),
        )
        for i in range(4)
    ]
    i = function(1, "i", gates[0])
    candidate = function(2, "g", gates[1])
    forget = function(1, "f", gates[2])
    output = function(1, "o", gates[3])
    cell = function(19, "c1", function(21, "m1", forget, formal["c"]), function(21, "m2", i, candidate))
    h = function(21, "h1", output, function(2, "tc", cell))
    function(44, "both", h, cell)
    # outside: both states come back through placeholders that have the names of the block's outputs
    states = {
        key: f.function(op, f"{uid}_past_{key}", f.placeholder(f"{uid}_Output_{k}", width), initial, offset=steps)
        for k, key in enumerate("hc")
    }
    arguments = {formal["x"]: x, formal["h"]: states["h"], formal["c"]: states["c"]}
    return f.block(uid, "LSTM", f"{uid}_both", arguments, name="lstm" + uid), (w, r, b)


def run_lstm(x, w, r, b, width, steps=1, backwards=False):
    """The formulas, step by step."""
    start = float(np.float32(0.1))
    x = x[::-1] if backwards else x
    h, c = [np.full(width, start)] * steps, [np.full(width, start)] * steps

    def sigmoid(a):
        return 1 / (1 + np.exp(-a))

    for cell in x:
        i, g, f, o = np.split(b + w @ cell + r @ h[-steps], 4)
        c.append(sigmoid(f) * c[-steps] + sigmoid(i) * np.tanh(g))
        h.append(sigmoid(o) * np.tanh(c[-1]))
    found = np.array(h[steps:])
    return found[::-1] if backwards else found


# ---- sequences: what CNTK's functions on sequences are made of


def is_within(f, uid, x, steps):
    """1 in the first steps (negative: the last ones) of each sequence, else 0: zeros, delayed, with an initial 1."""
    zeros = f.function(50, f"{uid}_zeros", f.constant(f"{uid}_zero", 0.0), x)
    one = f.constant(f"{uid}_one", 1.0)
    return f.function(37 if steps > 0 else 38, f"{uid}_within", zeros, one, offset=abs(steps))


def sequence_slice(f, uid, x, begin, end, width, name=""):
    """A block Sequence::Slice: steps `begin` to `end` (negative ones, and an end of 0, count from the end)."""
    formal = f.placeholder(f"{uid}_operand", width)

    def outside(part, steps):
        return f.function(20, f"{part}_not", f.constant(f"{part}_all", 1.0), is_within(f, part, formal, steps))

    flags = []
    if begin:
        part = f"{uid}_begin"
        flags.append(outside(part, begin) if begin > 0 else is_within(f, part, formal, begin))
    if end:
        part = f"{uid}_end"
        flags.append(is_within(f, part, formal, end) if end > 0 else outside(part, end))
    flag = flags[0] if len(flags) == 1 else f.function(21, f"{uid}_both", *flags)
    single = (begin >= 0) == (end > 0) and end - begin == 1
    axes = [v.BATCH] if single else [v.Axis(2147483647, f"{uid}_axis", True), v.BATCH]
    where = f.function(13, f"{uid}_where", flag, newDynamicAxes=axes)
    index = f.function(28, f"{uid}_index", formal, where)
    f.function(29, f"{uid}_gather", formal, index)
    return f.block(uid, "Sequence::Slice", f"{uid}_gather", {formal: x}, name)


def last(f, uid, x, width, name=""):
    """C.sequence.last."""
    return sequence_slice(f, uid, x, -1, 0, width, name)


def broadcast_as(f, uid, x, like, width, name=""):
    """A block Sequence::BroadcastAs."""
    formal = f.placeholder(f"{uid}_operand", width)
    layout = f.placeholder(f"{uid}_as", width)
    f.function(50, f"{uid}_reconcile", formal, layout)
    return f.block(uid, "Sequence::BroadcastAs", f"{uid}_reconcile", {formal: x, layout: like}, name)
