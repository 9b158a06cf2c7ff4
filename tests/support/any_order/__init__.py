"""Stories: random sequences of the commands that write (verbs), while other clients act between any two requests.

After each story no record may be skipped or processed twice, but for the cases in `exceptions`.
"""
