"""Values and gradients of functions, which a backend computes."""

# What programs give is of any type.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cntkpy.cntk_config.base.diagnostics import CallError, UserError, shorten

if TYPE_CHECKING:
    from cntkpy.networks.builders.brainscript.node_values import NodeValue


class Backend(Protocol):
    """Computes and trains functions; `install` chooses it."""

    def evaluate(self, function: Any, arguments: object, outputs: Sequence[Any], as_numpy: bool = True) -> Any:
        """See `Evaluated.eval`."""
        ...

    def forward(
        self, arguments: object, outputs: Sequence[Any], kept: Sequence[Any], as_numpy: bool
    ) -> tuple[Any, dict[Any, Any]]:
        """See `Evaluated.forward`."""
        ...

    def backward(
        self, state: object, roots: Mapping[Any, object], variables: Iterable[Any], as_numpy: bool
    ) -> dict[Any, Any]:
        """See `Evaluated.backward`."""
        ...

    def grad(self, function: Any, at: object, wrt: Any, outputs: Any, root: Any, as_numpy: bool) -> Any:
        """See `Evaluated.grad`."""
        ...

    @property
    def train(self) -> Callable[..., Any]:
        """See `Evaluated.train`."""
        ...

    @property
    def test(self) -> Callable[..., Any]:
        """See `Evaluated.test`."""
        ...

    @property
    def print_node_timing(self) -> Callable[[Any], None]:
        """See `Evaluated.print_node_timing`."""
        ...


_installed: list[Backend] = []


def install(backend: Backend) -> None:
    """Install the backend that computes functions. `cntkpy.training` calls it: this package knows no trainer."""
    _installed[:] = [backend]


def installed() -> Backend:
    """Return the backend that computes functions.

    Raises:
        UserError: Nothing does yet.
    """
    if not _installed:
        raise UserError("MissingPackage", "functions are computed by cntkpy.training", hint="import it first")
    return _installed[0]


class Evaluated:
    """A function that can be evaluated and trained.

    Attributes:
        roots: Its nodes.
        outputs: Its values, a function each.
        output: Its only value.
    """

    roots: tuple[NodeValue, ...]

    @property
    def outputs(self) -> tuple[Any, ...]:
        """Its values, a function each."""
        raise NotImplementedError

    @property
    def output(self) -> Any:
        """Its only value."""
        raise NotImplementedError

    def _all(self) -> list[NodeValue]:
        """Return the nodes that it depends on, and its own."""
        raise NotImplementedError

    def _wanted(self, outputs: Evaluated | Iterable[Evaluated] | None) -> Sequence[Any]:
        """Return the functions to compute.

        Raises:
            UserError: one of them is not a part of this function.
        """
        if outputs is None:
            return self.outputs
        wanted = functions_of("outputs", outputs)
        nodes = set(self._all())
        for function in wanted:
            if not nodes.issuperset(function.roots):
                message = f"outputs: {function!r} is not a part of {self!r}"
                hint = "combine([f, g]) has the outputs of both; f.outputs are those of f"
                raise UserError("NoNode", message, hint=hint)
        return wanted

    def eval(
        self,
        arguments: object = None,
        outputs: Evaluated | Iterable[Evaluated] | None = None,
        device: object = None,
        as_numpy: bool = True,
    ) -> Any:
        """Return its values for some data.

        Args:
            arguments: the data of every input, by input; of a single input also the data alone. Data are arrays
                (n, *sample), or for sequences a list of arrays (length, *sample), sparse matrices, or values of a
                minibatch source.
            outputs: what to compute; by default this function.
            device: accepted; changes nothing.
            as_numpy: False: values come as `Value`s.

        Returns:
            An array (n, *sample), a list of arrays (length, *sample) for sequences; by output a dictionary of them
            where there are several.
        """
        del device
        is_whole = outputs is None and len(self.roots) == 1  # most often; its only output is equal to it
        wanted = (self,) if is_whole else self._wanted(outputs)
        return installed().evaluate(self, arguments, wanted, bool(as_numpy))

    def forward(
        self,
        arguments: object,
        outputs: Evaluated | Iterable[Evaluated] | None = None,
        keep_for_backward: Evaluated | Iterable[Evaluated] | None = None,
        device: object = None,
        as_numpy: bool = True,
    ) -> tuple[Any, dict[Any, Any]]:
        """Return the values by output; with `keep_for_backward` in training mode, and in front of them what `backward`
        needs.

        In training mode dropout is active, with another mask each time, and batch normalisation takes the statistics of
        the minibatch and updates the running ones.

        Args:
            arguments: the data, see `eval`.
            outputs: what to compute; by default this function.
            keep_for_backward: the outputs that `backward` starts from; None: it is not called.
            device: accepted; changes nothing.
            as_numpy: see `eval`.

        Returns:
            The state for `backward`, None without `keep_for_backward`; and a dictionary of the values by output.
        """
        del device
        wanted = self._wanted(outputs)
        kept = () if keep_for_backward is None else functions_of("keep_for_backward", keep_for_backward)
        return installed().forward(arguments, wanted, kept, as_numpy)

    def backward(
        self, state: object, root_gradients: object, variables: Iterable[Evaluated], as_numpy: bool = True
    ) -> Any:
        """Gradients of the sum of outputs, each multiplied by what is given for it.

        They belong to the values that `forward` gave: the same parameters, data, masks and random numbers.

        Args:
            state: what `forward` with `keep_for_backward` gave first.
            root_gradients: by output, an array like its value; of a single output also the array alone.
            variables: parameters or inputs.
            as_numpy: False: gradients come as `Value`s.

        Returns:
            A dictionary: for each variable an array, see `grad`.
        """
        several = isinstance(root_gradients, Mapping)
        gradients: dict[Any, Any] = (
            {output.output: each for output, each in root_gradients.items()}
            if several
            else {self.output: root_gradients}
        )
        if not gradients:
            raise CallError("WrongArguments", "backward needs the gradient of an output", hint="{f.output: gradient}")
        return installed().backward(state, gradients, variables, as_numpy)

    def grad(
        self,
        at: object = None,
        wrt: Evaluated | Iterable[Evaluated] | None = None,
        outputs: Evaluated | Iterable[Evaluated] | None = None,
        device: object = None,
        as_numpy: bool = True,
        grad_root: Evaluated | None = None,
    ) -> Any:
        """Return the gradient of the sum of this function over some data, in training mode; see `forward`.

        Args:
            at: the data by input, see `eval`.
            wrt: a parameter or an input, or several; by default the inputs that need a gradient, all where none was
                said to. (Inputs are dense then.)
            outputs: functions whose values for the data are wanted, too, of the same computation.
            device: accepted; changes nothing.
            as_numpy: False: gradients and values come as `Value`s.
            grad_root: the function to differentiate, if it is another one.

        Returns:
            An array in the shape of the parameter, or of the data of the input; of several by function; with
            `outputs` a pair of that and the value of the output, or the values by output.
        """
        del device
        if grad_root is not None:
            (grad_root,) = functions_of("grad_root", grad_root)
        return installed().grad(self, at, wrt, outputs, grad_root, bool(as_numpy))

    def train(
        self,
        minibatch_source: object,
        minibatch_size: object = 32,
        streams: object = None,
        model_inputs_to_streams: object = None,
        parameter_learners: object = (),
        callbacks: object = (),
        progress_frequency: object = None,
        max_epochs: int | None = None,
        epoch_size: int | None = None,
        max_samples: int | None = None,
    ) -> Any:
        """Train by this function, a loss or `combine([loss, metric])`; see
        `cntkpy.trainers.fronts.cntk2.functions.train`."""
        return installed().train(
            self,
            minibatch_source,
            minibatch_size,
            streams,
            model_inputs_to_streams,
            parameter_learners,
            callbacks,
            progress_frequency,
            max_epochs,
            epoch_size,
            max_samples,
        )

    def test(
        self,
        minibatch_source: object,
        minibatch_size: object = 32,
        streams: object = None,
        model_inputs_to_streams: object = None,
        callbacks: object = (),
    ) -> Any:
        """The value of this function, a metric, on data; see `cntkpy.trainers.fronts.cntk2.functions.test`."""
        return installed().test(
            self, minibatch_source, minibatch_size, streams, model_inputs_to_streams, callbacks or ()
        )

    def print_node_timing(self) -> None:
        """Print the time of each node for the data of the last `eval`, `forward` or `grad`.

        Each node is compiled and run alone, so that the sum is more than the time of the whole. After `forward` with
        `keep_for_backward` or `grad` the table has gradients as well.

        Raises:
            UserError: no data were kept: `cntk.debugging.set_node_timing(True)` comes before.
        """
        installed().print_node_timing(self)


def functions_of(subject: str, functions: object) -> tuple[Any, ...]:
    """Return some functions; one alone is its values."""
    several: Any = functions.outputs if isinstance(functions, Evaluated) else functions
    listed: list[Any] = list(several) if isinstance(several, Iterable) and not isinstance(several, str) else [several]
    for function in listed:
        if not isinstance(function, Evaluated):
            raise CallError(
                "NoFunction",
                f"{subject}: {shorten(repr(function))} is not a function",
                hint="give functions: [z, loss]",
            )
    return tuple(listed)
