#!/usr/bin/env bash
# Start isrflow with the given arguments. Each way ends with exec, so that SIGTERM reaches what runs.
set -euo pipefail

# Spark on Kubernetes, and so each operator for it, starts a driver's container with "driver" and spark-submit's options.
if [ "${1:-}" = driver ]; then
    shift
    exec spark-submit --conf "spark.driver.bindAddress=${SPARK_DRIVER_BIND_ADDRESS:?set by Spark on Kubernetes}" \
        --deploy-mode client "$@"
fi
exec isrflow "$@"
