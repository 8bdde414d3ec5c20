"""SimpleNetworkBuilder: networks from a list of layer sizes (docs/specification/networks.md D)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError
from cntkpy.cntk_config.parameters import ConfigParameters
from cntkpy.networks.builders.simple.feed_forward import simple_network
from cntkpy.networks.builders.simple.parameters import SimpleNetworkBuilder
from cntkpy.networks.builders.simple.parts import Builder, Settings
from cntkpy.networks.builders.simple.recurrent import class_lm, class_lstm, log_bilinear, lstm_network, simple_rnn
from cntkpy.networks.graph.initialize import SeedCounter
from cntkpy.networks.graph.network import ValidatedNetwork

__all__ = ["Builder", "Settings", "SimpleNetworkBuilder", "build_simple", "simple_network"]

log = logging.getLogger("cntkpy.networks")

KINDS: dict[str, Callable[[Settings, str, SeedCounter], ValidatedNetwork]] = {
    "SIMPLENET": simple_network,
    "SIMPLERNN": simple_rnn,
    "LSTM": lstm_network,
    "CLASSLSTM": class_lstm,
    "CLASSLM": class_lm,
    "LBLM": log_bilinear,
    "CLSTM": lambda settings, precision, seeds: class_lstm(settings, precision, seeds, side_input=True),
}


def settings_of(p: SimpleNetworkBuilder) -> Settings:
    """Return all values, converted."""
    return Settings(
        layer_sizes=list(p.layer_sizes),
        training_criterion=str(p.training_criterion),
        eval_criterion=str(p.eval_criterion),
        layer_types=[str(word) for word in p.layer_types],
        init_value_scale=p.init_value_scale,
        uniform_init=p.uniform_init,
        apply_mean_var_norm=p.apply_mean_var_norm,
        need_prior=p.need_prior,
        add_dropout_nodes=p.add_dropout_nodes,
        recurrent_layer=list(p.recurrent_layer or ()),
        default_hidden_activity=p.default_hidden_activity,
        lookup_table_order=p.lookup_table_order,
        ma_order=p.ma_order,
        const_input_gate=p.const_input_gate,
        const_forget_gate=p.const_forget_gate,
        const_output_gate=p.const_output_gate,
        input_gate_init=p.input_gate_init,
        forget_gate_init=p.forget_gate_init,
        output_gate_init=p.output_gate_init,
        sparse_input=p.sparse_input,
        vocab_size=p.vocab_size,
        classes=p.classes,
        aux_dim=p.aux_dim,
    )


def outline_simple(section: ConfigParameters, precision: str) -> ValidatedNetwork:
    """Return the network without start values, for looking at its names and shapes; raises what `build_simple`
    raises.
    """
    return _build(section, precision, SeedCounter(), values=False)


def build_simple(section: ConfigParameters, precision: str, seeds: SeedCounter) -> ValidatedNetwork:
    """Return the network of a `SimpleNetworkBuilder` section.

    Args:
        section: its `ConfigParameters`.
        precision: a key of `cntkpy.networks.graph.precision.PRECISIONS`.
        seeds: says whether every seed is 1 (`forceConstantRandomSeed`); this builder has a counter of its own.

    Raises:
        ConfigError, UserError: a wrong value, at its place.
    """
    return _build(section, precision, SeedCounter(constant=seeds.constant))


def _build(section: ConfigParameters, precision: str, seeds: SeedCounter, values: bool = True) -> ValidatedNetwork:
    parameters = SimpleNetworkBuilder(section)
    name = parameters.kind()
    parameters.check_together()
    settings = replace(settings_of(parameters), values=values)
    try:
        return KINDS[name](settings, precision, seeds)
    except ConfigError:
        raise
    except UserError as error:
        raise parameters.located(error) from None
