"""The Spark jobs of the commands reconcile, audit, history and advise, and the functions of which they are made."""
