"""The command line: the only place that prints, asks, exits, or reads the clock and the environment."""
