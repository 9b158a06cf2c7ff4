"""Stories: random sequences of commands that write, while other clients act between any two requests.

After each story no record may be skipped or processed twice, except in the cases that `exceptions` lists.
"""
