"""Run reconcile by spark-submit; --py-files has the package as a zip."""

import sys

from migrate_groups.spark.reconciliation.job import main

sys.exit(main(sys.argv[1:], sys.stdout, sys.stderr))
