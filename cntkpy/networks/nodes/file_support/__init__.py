"""What rules for CNTK's model files share: primitives, records, the network to be made of them."""
