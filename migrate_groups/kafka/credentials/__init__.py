"""TLS and SASL settings of the Kafka clients, read from Kafka's client properties."""
