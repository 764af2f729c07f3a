#!/bin/sh
# Runs on each host of script_hosts, over SSH. Standard input is a JSON document, in which
# "parameters" has the operation, the VNF, the inputs and the parameters of the request.
# Lines of standard error are the log.
set -eu
umask 077
cat >"$HOME/vnf.json"
echo "$SITE_HOST knows the VNF" >&2
