"""What would be written and why it may be: plans, checks, receipts. Pure."""
