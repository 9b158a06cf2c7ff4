"""The adapters behind the ports: kafka-python, the second client, credentials, logs of records."""
