#!/bin/sh
# kud: take away what plug.sh made
ovs-vsctl --timeout=20 --if-exists del-port br-int kv0
ip link delete kv0 2>/dev/null
ip netns delete kud-verify 2>/dev/null
exit 0
