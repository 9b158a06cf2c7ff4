"""TLS and SASL settings of the Kafka clients, read from Kafka's client properties.

The entry is ``client_properties``. It looks properties up with ``properties`` and returns a ``security.Security``.

- TLS: ``tls``. It reads certificates and keys with ``pem`` and ``stores`` (``jks``, ``pkcs12``, ``der``).
- Logins: ``security.Password``, ``kerberos``, and ``oauth``, whose tokens come from ``tokens`` or ``msk``. ``grants``
  has the ways to ask a token server. ``jaas`` and ``oauth_properties`` read their properties.
"""
