"""What spark-submit runs; the package comes along as a zip in --py-files."""

import sys

from migrate_groups.spark.reconciliation.job import main

sys.exit(main(sys.argv[1:], sys.stdout, sys.stderr))
