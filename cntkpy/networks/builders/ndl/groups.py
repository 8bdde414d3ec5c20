"""Arrays of nodes with names of their own, which put nodes into the groups of a network."""

ARRAYS = {
    "featurenodes": "feature",
    "labelnodes": "label",
    "criterionnodes": "criterion",
    "evalnodes": "evaluation",
    "outputnodes": "output",
    "criterianodes": "criterion",
}
"""Groups by the arrays of nodes that a description may have, in the order in which CNTK reads them."""
GROUP_ARRAYS = ("FeatureNodes", "LabelNodes", "CriterionNodes", "EvalNodes", "OutputNodes")
