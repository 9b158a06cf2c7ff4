"""``python -m migrate_groups`` is ``migrate-groups``."""

from migrate_groups.cli.app import main

if __name__ == "__main__":
    main()
