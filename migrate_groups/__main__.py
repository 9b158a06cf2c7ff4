"""Run the command line as ``python -m migrate_groups``."""

from migrate_groups.cli.app import main

if __name__ == "__main__":
    main()
