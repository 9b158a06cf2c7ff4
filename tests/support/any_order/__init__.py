"""Stories: random sequences of the commands that write (verbs), while other clients act between any two requests.

After each story no record may be skipped or processed twice, except in the cases that `exceptions` lists.
"""
