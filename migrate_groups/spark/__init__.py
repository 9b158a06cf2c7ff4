"""The Spark jobs behind reconcile and audit: DataFrame to DataFrame functions with a thin job on top."""
