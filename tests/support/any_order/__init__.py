"""Stories of every verb that writes, in any order, while others act between any two requests."""
