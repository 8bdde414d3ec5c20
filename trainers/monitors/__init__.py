"""What looks on while a network trains: log lines, traces, checks of gradients."""
