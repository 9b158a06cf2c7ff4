#!/bin/sh
# scale.sh stop NAME... | restart NAME... | start NAME=REPLICAS...
set -eu
verb=$1
shift
for each; do
    name=${each%%=*}
    kept="$MIGRATE_GROUPS_RUN_DIR/replicas-$name"
    case $verb in
    stop)
        found=$(kubectl get deployment "$name" --output 'jsonpath={.spec.replicas}')
        # A re-run finds 0, and keeps the number of the first run.
        [ "$found" = 0 ] || echo "$found" >"$kept"
        replicas=0
        ;;
    restart)
        [ -f "$kept" ] || continue
        replicas=$(cat "$kept")
        ;;
    start) replicas=${each#*=} ;;
    *)
        echo "unknown verb: $verb" >&2
        exit 2
        ;;
    esac
    kubectl scale deployment "$name" --replicas="$replicas"
done
