"""Runs of commands that write committed offsets, each with one fault of the brokers or of the tool.

A run's seed chooses its scenario (`scenarios`), its fault (`faults`) and the step of the fault. The command runs in its
own process and halts at that step (`tests.support.halted_at`). The fault happens before the step or during it. The
cluster is repaired while the command still runs, or after it has ended. Then the same command, run again, must
complete. `must_hold` contains the checks after each command and at the end.
"""
