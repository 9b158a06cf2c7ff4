"""The Spark jobs behind the commands reconcile, audit, history and advise."""
