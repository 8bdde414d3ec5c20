"""Rules of source: tensor code of nodes, a file for each family of kinds."""
