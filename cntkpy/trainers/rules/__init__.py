"""Update rules: how a gradient changes a parameter."""
