"""What would be written and why it may be: decisions, checks, plans, and the receipt as the record of a run. Pure."""
