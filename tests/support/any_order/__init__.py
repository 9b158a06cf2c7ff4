"""Stories of every verb that writes, in any order, while other clients act between any two requests."""
