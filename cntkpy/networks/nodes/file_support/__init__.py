"""Support for the rules for CNTK's model files: primitives, records, the network to be made of them."""
