"""From a validated graph to a pure function of parameters, state and minibatch."""
