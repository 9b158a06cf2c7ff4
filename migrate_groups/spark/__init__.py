"""The Spark jobs of reconcile, audit, history and advise: functions from DataFrame to DataFrame, and a job for each."""
