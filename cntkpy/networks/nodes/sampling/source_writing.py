"""Random numbers as tensor code."""

from __future__ import annotations

from cntkpy.networks.nodes.source_support.use import Rule, Use
from cntkpy.networks.nodes.source_support.values import PRODUCT, NotExpressible, Value

_RANDOM = {
    "uniform": "torch.empty_like({x}).uniform_({first}, {second})",
    "normal": "torch.empty_like({x}).normal_({first}, {second})",
    "bernoulli": "torch.empty_like({x}).bernoulli_({first})",
    "gumbel": "{first} - {second} * torch.empty_like({x}).exponential_().log()",
}


def _random_like(use: Use) -> Value:
    first, second = float(use.options["first"]), float(use.options["second"])
    options = {"x": use.values[0].text, "first": first, "second": second}
    how = str(use.options["distribution"])
    if how not in _RANDOM:
        raise NotExpressible(f"it draws from the distribution '{how}'")
    return use.value(_RANDOM[how].format(**options), use.values[0].dims, level=1 if how == "gumbel" else 3)


def _sample(use: Use) -> Value:
    weights = use.reshaped(use.values[0], ((use.node.shape or (1,))[0],))
    count, repeated = int(use.options["numSamples"]), bool(use.options["sampleWithReplacement"])
    drawn = f"torch.multinomial({weights.text}.detach(), {count}, replacement={repeated})"
    text = f"F.one_hot({drawn}, {weights.dims[0]}).to({weights.text}.dtype)"
    return use.finished(use.value(text, (count, weights.dims[0])))


def _frequency(use: Use) -> Value:
    if not use.options["sampleWithReplacement"]:
        raise NotExpressible("it simulates the drawing of random numbers")
    weights = use.body.bound(use.flat())
    count = int(use.options["numSamples"])
    text = f"{count} * {weights.text}.detach() / {weights.text}.detach().sum()"
    return use.value(text, weights.dims, PRODUCT)


RULES: dict[str, Rule] = {
    "RandomLike": _random_like,
    "RandomSample": _sample,
    "RandomSampleInclusionFrequency": _frequency,
}
