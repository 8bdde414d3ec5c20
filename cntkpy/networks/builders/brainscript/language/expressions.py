"""Meaning of each kind of expression: a step of the evaluation for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from cntkpy.cntk_config.base.diagnostics import ConfigError, UserError, suggestion
from cntkpy.cntk_config.base.source import Text
from cntkpy.networks.builders.brainscript.language.arithmetic import (
    LEFT,
    ON_EQUAL_TYPES,
    PREFIX,
    RIGHT,
    at_hand,
    bad_operands,
)
from cntkpy.networks.builders.brainscript.language.evaluate import (
    MAX_ELEMENTS,
    MAX_TEXT,
    Class,
    Evaluator,
    Result,
    Step,
    usage,
    wrong_count,
)
from cntkpy.networks.builders.brainscript.language.parameters import whole_number
from cntkpy.networks.builders.brainscript.language.source import Place
from cntkpy.networks.builders.brainscript.language.syntax import (
    ArrayLiteral,
    Call,
    Conditional,
    Infix,
    Lambda,
    Literal,
    Name,
    New,
    Prefix,
    Range,
    RecordLiteral,
    Select,
    Subscript,
    Unparsed,
    parsed,
)
from cntkpy.networks.builders.brainscript.language.values import (
    PENDING,
    Applied,
    Array,
    Delayed,
    Function,
    Object,
    Operand,
    Origin,
    Path,
    Record,
    Scope,
    kind_of,
)


def _literal(evaluator: Evaluator, e: Literal, scope: Scope, path: Path | None) -> Result:
    return e.value


def _name(evaluator: Evaluator, e: Name, scope: Scope, path: Path | None) -> Result:
    value = scope.find(e.name)
    if value is None:
        raise _unknown(evaluator, e, scope)
    return evaluator.force(value, e.place) if type(value) is Delayed else value


def _unknown(evaluator: Evaluator, e: Name, scope: Scope) -> ConfigError:
    if e.name in evaluator.unsupported:
        message, instead = f"'{e.name}' is not supported", evaluator.unsupported[e.name]
        return evaluator.messages.error("Unsupported", message, e.place, scope, instead)

    def hint() -> str | None:
        if e.name.lower() in ("true", "false"):
            return f"a truth value is written in small letters: {e.name.lower()}"
        if e.name in evaluator.texts:
            return f"a text is written in quotes: '{e.name}'"
        visible = scope.visible()
        if any(name.lower() == e.name.lower() for name in visible):
            return suggestion(e.name, visible)
        return _elsewhere(e.name, scope) or suggestion(e.name, visible)

    return evaluator.messages.error("UnknownName", f"unknown identifier '{e.name}'", e.place, scope, hint)


def _elsewhere(name: str, scope: Scope) -> str | None:
    """`did you mean 'BS.Sequences.Gather'?` if a record that can be seen, or one not deep inside it, has that name."""
    seen = [
        (outer, value)
        for outer_scope in scope.chain()
        for outer, value in outer_scope.names.items()
        if type(value) is Delayed
    ]
    level: list[tuple[str, Any]] = [(outer, parsed(value.expression)) for outer, value in seen]
    for _ in range(3):
        records = [(outer, value) for outer, value in level if type(value) is RecordLiteral]
        for outer, record in records:
            if name in record.members:
                return f"did you mean '{outer}.{name}'?"
        level = [
            (f"{outer}.{inner}", parsed(member.value))
            for outer, record in records
            for inner, member in record.members.items()
        ]
    return None


def _prefix(evaluator: Evaluator, e: Prefix, scope: Scope, path: Path | None) -> Step:
    value = yield evaluator.step(e.operand, scope, (path, PREFIX[e.operator]) if e.operator in PREFIX else path)
    if isinstance(value, Operand):
        result = value.prefix(e.operator, Origin(path, e.place, scope))
        if result is not PENDING:
            return result
    elif type(value) is float and e.operator in "+-":
        return -value if e.operator == "-" else value
    elif type(value) is bool and e.operator == "!":
        return not value
    hint = "'!' takes truth values, '-' and '+' take numbers; both take nodes"
    message = f"operator {e.operator} cannot be applied to {kind_of(value)}"
    raise evaluator.messages.error("BadOperand", message, e.place, scope, hint)


def _infix(evaluator: Evaluator, e: Infix, scope: Scope, path: Path | None) -> Step:
    operator = e.operator
    left = at_hand(e.left, scope)
    if left is PENDING:
        left = yield evaluator.step(e.left, scope, (path, LEFT[operator]))
    right = at_hand(e.right, scope)
    if right is PENDING:
        right = yield evaluator.step(e.right, scope, (path, RIGHT[operator]))
    kind: Any = type(left)  # pyright: ignore[reportUnknownVariableType]
    if kind is type(right):
        compute = ON_EQUAL_TYPES.get(kind, {}).get(operator)
        if compute is not None:
            if kind is str and operator == "+" and len(left) + len(right) > MAX_TEXT:
                raise evaluator.messages.error("TooMany", f"a text of more than {MAX_TEXT} characters", e.place, scope)
            return compute(left, right)
        if kind is Function and operator == ">>":
            for default in left.defaults.values():
                yield evaluator.forced(default, e.place)
            return _composed(evaluator, left, right, e.place, scope)
    node = left if isinstance(left, Operand) else right
    if isinstance(node, Operand):
        result = node.infix(operator, left, right, Origin(path, e.place, scope))
        if result is not PENDING:
            return result
    if operator == "<<" and isinstance(left, Array) and type(right) is float:
        return _shifted(evaluator, left, right, e, scope)
    raise evaluator.messages.error("BadOperand", *bad_operands(operator, left, right, e.place, scope))


def _shifted(evaluator: Evaluator, array: Array, by: float, e: Infix, scope: Scope) -> Array:
    count = whole_number(evaluator, by, "the number of elements to drop", e.place, scope)
    if array.first != 0:
        raise evaluator.messages.error("BadIndex", "'<<' needs an array that starts at index 0", e.place, scope)
    if count < 0:
        raise evaluator.messages.error("BadIndex", f"'<<' cannot drop {count} elements", e.place, scope)
    return Array(array.items[count:])


def _composed(evaluator: Evaluator, first: Function, second: Function, place: Place, scope: Scope) -> Function:
    def body(evaluator: Evaluator, arguments: dict[str, object], path: Path | None, inside: Scope) -> Step:
        positional = tuple(arguments[name] for name in first.parameters)
        named = {name: arguments[name] for name in first.defaults}
        inner = Delayed(Applied(place, first, positional, named), inside, (path, ".arg"))
        return (yield evaluator.apply(second, (inner,), {}, place, inside, path))

    return Function(f"{first.name} >> {second.name}", first.parameters, first.defaults, body, scope, place)


def _conditional(evaluator: Evaluator, e: Conditional, scope: Scope, path: Path | None) -> Step:
    condition = at_hand(e.condition, scope)
    if condition is PENDING:
        condition = yield evaluator.step(e.condition, scope, (path, ".if"))
    if condition is True or condition is False:
        return (yield evaluator.step(e.yes if condition else e.no, scope, path))
    if isinstance(condition, Operand):
        yes = yield evaluator.step(e.yes, scope, (path, ".then"))
        no = yield evaluator.step(e.no, scope, (path, ".else"))
        result = condition.choose(yes, no, Origin(path, e.place, scope))
        if result is not PENDING:
            return result
        message = f"'if' of a node chooses between nodes or numbers, not {kind_of(yes)} and {kind_of(no)}"
        raise evaluator.messages.error("BadOperand", message, e.place, scope)
    message = f"the condition of 'if' must be a truth value or a node, not {kind_of(condition)}"
    hint = "write if x != 0 then ..." if type(condition) is float else None
    raise evaluator.messages.error("BadCondition", message, e.place, scope, hint)


def _select(evaluator: Evaluator, e: Select, scope: Scope, path: Path | None) -> Step:
    value = at_hand(e.value, scope)
    if value is PENDING:
        value = yield evaluator.step(e.value, scope, path)
    if type(value) is Record:
        member = value.names.get(e.name)
        if member is None:
            member = value.outer.find(e.name) if value.outer is not None else None
            if member is None:
                raise _no_member(evaluator, e, value, scope)
            if (
                value.place.text not in evaluator.messages.library
            ):  # in a namespace of the library it is meant: CNTK2.Plus
                evaluator.messages.warn(
                    "OuterMember",
                    f"the record has no member '{e.name}'; the '{e.name}' of the scopes around it is taken",
                    e.place,
                    f"write {e.name} without the record",
                )
        return (yield evaluator.force(member, e.place)) if type(member) is Delayed else member
    if isinstance(value, Object):
        try:
            member = value.member(e.name)
        except UserError:
            raise
        except ValueError as problem:
            raise evaluator.messages.error("UnknownMember", str(problem), e.place, scope) from None
        if member is None:
            message = f"unknown identifier '{e.name}': {value.kind} has no such member"
            raise evaluator.messages.error(
                "UnknownMember", message, e.place, scope, suggestion(e.name, value.members())
            )
        return member
    message = f"'.{e.name}' needs a record, not {kind_of(value)}"
    raise evaluator.messages.error("NoRecord", message, e.place, scope)


def _no_member(evaluator: Evaluator, e: Select, record: Record, scope: Scope) -> ConfigError:
    def hint() -> str | None:
        return (
            _elsewhere(e.name, scope)
            or suggestion(e.name, record.names)
            or (f"it has {', '.join(sorted(record.names)[:12])}" if record.names else "the record is empty")
        )

    message = f"unknown identifier '{e.name}': the record has no such member"
    return evaluator.messages.error("UnknownMember", message, e.place, scope, hint)


def _subscript(evaluator: Evaluator, e: Subscript, scope: Scope, path: Path | None) -> Step:
    array = yield evaluator.step(e.array, scope, (path, "._vector"))
    index = yield evaluator.step(e.index, scope, (path, "._index"))
    if isinstance(array, Object) and isinstance(index, str):
        element = array.member(index)
        if element is not None:
            return element
        message = f"{array.kind} has no '{index}'"
        raise evaluator.messages.error("UnknownMember", message, e.place, scope, suggestion(index, array.members()))
    if type(array) is not Array:
        raise evaluator.messages.error("NoArray", f"an index needs an array, not {kind_of(array)}", e.place, scope)
    number = whole_number(evaluator, index, "an index", e.place, scope)
    if not 0 <= number - array.first < len(array.items):
        last = array.first + len(array.items) - 1
        valid = f"valid are {array.first} to {last}" if array.items else "the array is empty"
        raise evaluator.messages.error("BadIndex", f"index {number} is out of range; {valid}", e.place, scope)
    element = array.items[number - array.first]
    return (yield evaluator.force(element, e.place)) if type(element) is Delayed else element


def _call(evaluator: Evaluator, e: Call, scope: Scope, path: Path | None) -> Result:
    function = at_hand(e.function, scope)
    return (
        _awaited_call(evaluator, e, scope, path)
        if function is PENDING
        else _called(evaluator, function, e, scope, path)
    )


def _awaited_call(evaluator: Evaluator, e: Call, scope: Scope, path: Path | None) -> Step:
    function = yield evaluator.step(e.function, scope, path)
    return (yield _called(evaluator, function, e, scope, path))


def _called(evaluator: Evaluator, function: Any, e: Call, scope: Scope, path: Path | None) -> Result:
    if type(function) is not Function:
        message = f"only functions can be called, not {kind_of(function)}"
        hint = "a bracket at the start of a line continues the line before" if "\n" in e.place.string else None
        raise evaluator.messages.error("NoFunction", message, e.place, scope, hint)
    parameters = function.parameters
    if len(e.positional) != len(parameters):
        raise wrong_count(evaluator, function, e, len(e.positional), scope)
    names = {
        parameter: evaluator.delayed(argument, scope, (path, "." + parameter))
        for parameter, argument in zip(parameters, e.positional, strict=True)
    }
    if function.defaults:
        names.update(function.defaults)
    for name, argument, place in e.named:
        if name not in function.defaults:
            raise _unknown_argument(evaluator, function, name, place, scope)
        names[name] = evaluator.delayed(argument, scope, (path, "." + name))
    return evaluator.enter(function, names, e.place, scope, path)


def _lambda(evaluator: Evaluator, e: Lambda, scope: Scope, path: Path | None) -> Result:
    defaults = {name: evaluator.delayed(default, scope, (path, "." + name)) for name, default in e.defaults}
    return Function(e.name, e.parameters, defaults, e.body, scope, e.place)


def _new(evaluator: Evaluator, e: New, scope: Scope, path: Path | None) -> Step:
    class_ = evaluator.classes.get(e.name)
    if class_ is None:
        hint = suggestion(e.name, evaluator.classes)
        raise evaluator.messages.error("UnknownClass", f"unknown class '{e.name}' after 'new'", e.place, scope, hint)
    record = yield evaluator.step(e.record, scope, None if class_.own_names else path)
    if type(record) is not Record:
        message = f"'new {e.name}' needs a record of its parameters, not {kind_of(record)}"
        raise evaluator.messages.error("NoRecord", message, e.place, scope)
    return (yield class_.make(evaluator, record, Origin(path, e.place, scope)))


def _record(evaluator: Evaluator, e: RecordLiteral, scope: Scope, path: Path | None) -> Result:
    names: dict[str, Any] = {}
    record = Record(names, scope, e.place, path)
    for name, member in e.members.items():
        value = member.value
        names[name] = value.value if type(value) is Literal else Delayed(value, record, (path, "." + name))
    return record


def _array(evaluator: Evaluator, e: ArrayLiteral, scope: Scope, path: Path | None) -> Result:
    items = [evaluator.delayed(item, scope, (path, f"[{i}]")) for i, item in enumerate(e.items)]
    if evaluator.failures is not None:
        evaluator.failures.neighbours.update((item, items) for item in items if type(item) is Delayed)
    return Array(items)


def _range(evaluator: Evaluator, e: Range, scope: Scope, path: Path | None) -> Step:
    first = yield evaluator.step(e.first, scope, (path, ".array_first"))
    last = yield evaluator.step(e.last, scope, (path, ".array_last"))
    begin = whole_number(evaluator, first, "the first index of an array", e.place, scope)
    end = whole_number(evaluator, last, "the last index of an array", e.place, scope)
    if end - begin >= MAX_ELEMENTS:
        message = f"an array of {end - begin + 1} elements; at most {MAX_ELEMENTS} are possible"
        raise evaluator.messages.error("TooMany", message, e.place, scope)
    function = yield evaluator.step(e.function, scope, (path, "._initializer"))
    if type(function) is not Function:
        message = f"an array needs a function of the index, not {kind_of(function)}"
        raise evaluator.messages.error("NoFunction", message, e.place, scope, "write array [0..n] (i => ...)")
    items = [
        Delayed(Applied(e.place, function, (float(i),), {}), scope, (path, f"[{i}]")) for i in range(begin, end + 1)
    ]
    return Array(items, begin)


def _unparsed(evaluator: Evaluator, e: Unparsed, scope: Scope, path: Path | None) -> Step:
    return (yield evaluator.step(e.expression, scope, path))


def _applied(evaluator: Evaluator, e: Applied, scope: Scope, path: Path | None) -> Result:
    return evaluator.apply(e.function, e.positional, e.named, e.place, scope, path)


def _unknown_argument(evaluator: Evaluator, function: Function, name: str, place: Place, scope: Scope) -> ConfigError:
    subject = f"'{function.name}'" if function.name else "the function"
    if name in function.parameters:
        message = f"the parameter '{name}' of {subject} is passed by position, without its name"
        return evaluator.messages.error("UnknownArgument", message, place, scope, f"usage: {usage(function)}")
    hint = suggestion(name, function.defaults) or f"usage: {usage(function)}"
    return evaluator.messages.error("UnknownArgument", f"{subject} has no parameter '{name}'", place, scope, hint)


MEANING: dict[type, Callable[..., Result]] = {
    Literal: _literal,
    Name: _name,
    Prefix: _prefix,
    Infix: _infix,
    Conditional: _conditional,
    Select: _select,
    Subscript: _subscript,
    Call: _call,
    Lambda: _lambda,
    New: _new,
    RecordLiteral: _record,
    ArrayLiteral: _array,
    Range: _range,
    Applied: _applied,
    Unparsed: _unparsed,
}


def evaluator_of(
    classes: Mapping[str, Class],
    library: Iterable[Text] = (),
    unsupported: Mapping[str, str] | None = None,
    texts: Collection[str] = (),
) -> Evaluator:
    """Return an evaluator of the language; see `Evaluator` for the arguments."""
    return Evaluator(MEANING, classes, library, unsupported, texts)
