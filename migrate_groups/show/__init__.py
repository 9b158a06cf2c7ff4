"""Views for people and programs: terminal, Markdown, HTML and JSON."""
