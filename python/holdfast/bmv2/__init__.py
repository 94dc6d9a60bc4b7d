"""BMv2's commands with Holdfast behind them, so that scripts written for BMv2 run with another ``PATH`` alone.

``compiler_options`` and ``switch_options`` read the options of ``p4c`` and ``simple_switch_grpc``; ``runtime_commands`` reads the
lines of ``simple_switch_CLI``, and ``runtime_cli`` carries them out; ``shims`` makes the directory for ``PATH``. None of it
compiles, forwards or speaks P4Runtime itself.
"""
