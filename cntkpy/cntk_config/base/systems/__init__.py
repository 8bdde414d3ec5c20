"""Features of single operating systems, and their replacements on the others.

No other file of the distribution names a module, a function or a folder that one of Linux, macOS and Windows lacks;
`tests/test_systems.py` holds that, and runs the tool with everything that Windows lacks taken away. docs/systems.md
says where the systems differ for users.
"""
