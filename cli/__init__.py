"""The ``retriage`` command.

Each command is one module, loaded when it is asked for: ``retriage --help`` loads none of them.

Invariants: what a command answers goes to stdout, all else to stderr; an expected failure is one
clear line with the way out, never a traceback; text of strangers is cleaned before it is shown.
"""
