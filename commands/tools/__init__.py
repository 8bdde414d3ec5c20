"""The subcommands beside running: show, explain, diff, format, convert, preview, plot."""
