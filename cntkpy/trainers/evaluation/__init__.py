"""Networks applied to data without training: criteria, values of nodes, statistics."""
