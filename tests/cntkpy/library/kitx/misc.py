import cntk as C
from cntk.logging.graph import depth_first_search


def count(model, op_name):
    return len(depth_first_search(model, lambda node: getattr(node, "op_name", "") == op_name, depth=-1))


def parameters_by_name(model):
    return {p.name: p for p in model.parameters}


def converter(model, old, new):
    return C.misc.convert(model, lambda f: f.op_name == old, lambda f: new(f.inputs[0]))


class Argmax(C.ops.functions.UserFunction):
    def __init__(self, operand, name="Argmax"):
        super().__init__([operand], as_numpy=True, name=name)

    def forward(self, argument, device=None, outputs_to_retain=None):
        return None, argument.argmax(axis=-1, keepdims=True).astype(argument.dtype)

    def backward(self, state, root_gradients):
        return root_gradients * 0

    def infer_outputs(self):
        operand = self.inputs[0]
        return [C.output_variable(operand.shape[:-1] + (1,), operand.dtype, operand.dynamic_axes)]

    @staticmethod
    def deserialize(inputs, name, state):
        return Argmax(inputs[0], name)
