"""Generated pages: the reference, tables of parameters, the functions of networks, the outputs of messages."""
