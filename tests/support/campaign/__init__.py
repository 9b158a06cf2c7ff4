"""Runs of commands that write, each with one fault: `run` (one run), `scenarios` (what is run), `faults`, `must_hold`.

A run's seed chooses its scenario, its fault and the step of the fault. The command runs in a process of its own and
halts at that step (`tests.support.halted_at`). The fault happens before the step or during it. The cluster is repaired
while the command still runs, or after it has ended. Then the same command, run again, must complete. `must_hold` says
what is checked after each command, and at the end.
"""
