#!/bin/sh
# Removes Kubernetes from a host. It runs on each host, on the control planes last.
set -eu
if [ "$(id -u)" != 0 ]; then
  exec sudo -n SITE_HOST="$SITE_HOST" "$0"
fi
echo "resetting $SITE_HOST" >&2
kubeadm reset --force >&2
