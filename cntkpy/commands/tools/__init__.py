"""The subcommands besides running: show, explain, diff, format, convert, preview, plot."""
