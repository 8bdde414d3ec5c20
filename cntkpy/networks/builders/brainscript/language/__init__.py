"""The language: text -> syntax tree (parse) -> lazily evaluated values (evaluate).

`source` joins the text of a program and remembers where each character comes from. `syntax` is the tree, `values` what
expressions evaluate to, `standard` the classes that `new` makes of numbers and texts, `printing` how values print.
"""
