"""The command line. Only this package prints, asks the user, exits, and reads the clock and the environment."""
