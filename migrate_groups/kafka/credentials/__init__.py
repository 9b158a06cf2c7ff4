"""How a client shows who it is and whom it trusts, read from Kafka's client properties."""
