"""Run reconcile with spark-submit. Pass the package as a zip with ``--py-files``."""

import sys

from migrate_groups.spark.reconciliation.job import main

sys.exit(main(sys.argv[1:], sys.stdout, sys.stderr))
