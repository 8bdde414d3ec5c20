"""The original's Python interface to data (its `cntk.io`): minibatch sources, deserializers, values.

Everything here is offered by `readers` itself: `from readers import MinibatchSource`.
"""
