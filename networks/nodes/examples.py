"""What the examples of the node kinds are about."""

NAMES = """\
x = Input(4, tag=feature)
y = Input(4)
labels = Input(3, tag=label)
words = SparseInput(10)
picture = ImageInput(8, 6, 3, imageLayout=CHW)
W = Parameter(3, 4)
b = Parameter(3, 1)
z = Plus(Times(W, x), b)
"""
"""The nodes that examples name, in the network description language."""
