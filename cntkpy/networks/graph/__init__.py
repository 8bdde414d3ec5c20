"""Networks as data: nodes, shapes, groups, start values, pictures."""
