"""The command line: commands and their options, output, questions to the user, and exit codes."""
