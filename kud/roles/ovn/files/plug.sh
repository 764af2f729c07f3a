#!/bin/sh
# kud: plug a network namespace into the logical port kud-verify-$1, with the addresses $2 and $3
set -eu
ip netns list | grep -q '^kud-verify' || ip netns add kud-verify
ip netns exec kud-verify ip link set lo up
if ! ip netns exec kud-verify ip link show kv1 >/dev/null 2>&1; then
  ip link add kv0 type veth peer name kv1
  ip link set kv1 netns kud-verify
fi
ip link set kv0 up
ip netns exec kud-verify ip link set kv1 address "$2"
ip netns exec kud-verify ip address replace "$3/24" dev kv1
ip netns exec kud-verify ip link set kv1 up
ip netns exec kud-verify ethtool --offload kv1 tx off >/dev/null 2>&1 || true
ovs-vsctl --timeout=20 --may-exist add-port br-int kv0 -- set interface kv0 external_ids:iface-id="kud-verify-$1"
