"""Stories: random sequences of the tool's commands, with acts of other clients between any two requests.

After each story no record may be skipped or processed twice, except in the cases that `exceptions` lists.
"""
