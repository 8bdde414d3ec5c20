"""The names of samplers and pruners; those after the first two samplers and the first pruner are Optuna's."""

GRID, RANDOM, NO_PRUNER = "grid", "random", "none"
SAMPLERS = (GRID, RANDOM, "tpe", "gp", "cmaes", "qmc")
PRUNERS = (NO_PRUNER, "median", "halving", "hyperband")
