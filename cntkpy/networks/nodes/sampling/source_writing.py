"""Random numbers as tensor code."""

from __future__ import annotations

from cntkpy.networks.nodes.source_support.dialect import Spellings, Word
from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import ATOM, PRODUCT, SUM, NotExpressible, Value


def _random_like(use: Use) -> Value:
    first, second = float(use.options["first"]), float(use.options["second"])
    how = str(use.options["distribution"])
    if how not in ("uniform", "normal", "bernoulli", "gumbel"):
        raise NotExpressible(f"it draws from the distribution '{how}'")
    text = use.say(f"random_{how}", use.values[0], first, second)
    return use.value(text, use.values[0].dims, level=ATOM if how in ("uniform", "bernoulli") else SUM)


def _sample(use: Use) -> Value:
    weights = use.reshaped(use.values[0], ((use.node.shape or (1,))[0],))
    count, repeated = int(use.options["numSamples"]), bool(use.options["sampleWithReplacement"])
    text = use.say("random_classes", weights, count, repeated)
    return use.finished(use.value(text, (count, weights.dims[0])))


def _frequency(use: Use) -> Value:
    if not use.options["sampleWithReplacement"]:
        raise NotExpressible("it simulates the drawing of random numbers")
    weights = use.body.bound(use.flat())
    count = int(use.options["numSamples"])
    constant = use.say("detach", weights)
    text = f"{count} * {constant} / {constant}.sum()"
    return use.value(text, weights.dims, PRODUCT)


def _drawn(function: str) -> Word:
    """Return the spelling of random numbers in JAX; the last argument of the function may be left out."""

    def word(use: Use, x: Value, first: float, second: float) -> str:
        name, use.body.must_draw = use.body.bound(x).text, True
        return function.format(key=use.body.key(), x=name, first=first, second=second)

    return word


def _torch_classes(use: Use, weights: Value, count: int, repeated: bool) -> str:
    drawn = f"torch.multinomial({weights.text}.detach(), {count}, replacement={repeated})"
    return f"F.one_hot({drawn}, {weights.dims[0]}).to({weights.text}.dtype)"


def _jax_classes(use: Use, weights: Value, count: int, repeated: bool) -> str:
    size, name = weights.dims[0], use.body.bound(weights).text
    use.body.must_draw = True
    options = f"({count},), {repeated}, {name} / {name}.sum()"
    return f"jax.nn.one_hot(jax.random.choice({use.body.key()}, {size}, {options}), {size}, dtype={name}.dtype)"


SPELLINGS: Spellings = {
    "random_uniform": (
        "torch.empty_like({0}).uniform_({1}, {2})",
        _drawn("jax.random.uniform({key}, {x}.shape, {x}.dtype, {first}, {second})"),
    ),
    "random_normal": (
        "torch.empty_like({0}).normal_({1}, {2})",
        _drawn("{first} + {second} * jax.random.normal({key}, {x}.shape, {x}.dtype)"),
    ),
    "random_bernoulli": (
        "torch.empty_like({0}).bernoulli_({1})",
        _drawn("jax.random.bernoulli({key}, {first}, {x}.shape).astype({x}.dtype)"),
    ),
    "random_gumbel": (
        "{1} - {2} * torch.empty_like({0}).exponential_().log()",
        _drawn("{first} + {second} * jax.random.gumbel({key}, {x}.shape, {x}.dtype)"),
    ),
    "random_classes": (_torch_classes, _jax_classes),
}

RULES: dict[str, Rule] = {
    "RandomLike": _random_like,
    "RandomSample": _sample,
    "RandomSampleInclusionFrequency": _frequency,
}
