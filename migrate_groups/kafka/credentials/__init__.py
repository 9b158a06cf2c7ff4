"""TLS and SASL settings, read from Kafka's client properties."""
