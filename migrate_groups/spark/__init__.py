"""The data pipeline: DataFrame to DataFrame functions with a thin job on top."""
