"""The output of commands, for people and for programs: terminal, Markdown, HTML and JSON."""
