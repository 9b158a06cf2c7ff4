"""The Spark jobs behind reconcile, audit and history: functions from DataFrame to DataFrame, and a job for each."""
