# Sourced by quickstart and test: makes .venv in the checkout, or reuses it. POSIX sh.

fail() {
    echo "error: $*" >&2
    exit 2
}

# Print the newest Python, 3.11 or later, that can make a virtual environment. Each candidate is run, because a name on
# the PATH may be a version manager's shim that runs nothing, and because some systems package ensurepip separately.
find_python() {
    found=""
    for python in python3.13 python3.12 python3.11 python3; do
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
        found=$python
        "$python" -c 'import ensurepip, venv' 2>/dev/null && echo "$python" && return
    done
    [ -z "$found" ] || fail "$found can't make a virtual environment: install its venv package (python3-venv)"
    fail "no Python 3.11 or later on the PATH: install one (python3.11 to python3.13)"
}

check_java() {
    PYTHONPATH=$root "$1" -c '
import os, sys
from migrate_groups.errors import MissingDependency
from migrate_groups.sandbox.java import find_java
try:
    find_java(os.environ)
except MissingDependency as error:
    sys.exit(f"error: {error}")
' || exit 2
}

# Install the project with one of its extras in the versions of constraints.txt, unless it is installed already.
# A file in .venv records what is installed. It is removed before a change and written after a success, so an
# environment without this file is incomplete and is made anew.
environment() {
    extra=$1
    root=$(cd "$(dirname "$0")/.." && pwd)
    python=$(find_python) || exit
    check_java "$python"
    cd "$root"
    base="$("$python" -c 'import sys; print(sys.version, sys.base_prefix)') $root"
    wanted="$base $(cat pyproject.toml scripts/constraints.txt | cksum)"
    # The test extra includes the spark extra.
    for installed in "$extra" test; do
        [ "$(cat ".venv/installed-$installed" 2>/dev/null)" != "$wanted" ] || return 0
    done
    case "$(cat .venv/installed-* 2>/dev/null)" in
    "$base "*) rm -f .venv/installed-* ;;
    *)
        echo "making .venv with $python; the first time this downloads some 500 MB, mostly PySpark" >&2
        rm -rf .venv
        "$python" -m venv .venv
        ;;
    esac
    # Environment variables reach the build of the project, too. Newer versions of pip read the second one there.
    constraints="${PIP_CONSTRAINT:+$PIP_CONSTRAINT }scripts/constraints.txt"
    PIP_CONSTRAINT=$constraints PIP_BUILD_CONSTRAINT=$constraints .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -e ".[$extra]"
    echo "$wanted" >".venv/installed-$extra"
}
