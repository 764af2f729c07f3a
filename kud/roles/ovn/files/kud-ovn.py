#!/usr/bin/python3
"""kud: CNI plugin that puts a pod's interface on a port of a logical switch of OVN.

It hands over to the plugin `ovs`, which makes the interface and adds it to OVN's bridge, and tells it the logical port: what the pod's annotation names
in `cni-args` as `port` (and `mac`), or else NAMESPACE.POD.INTERFACE. Multus passes `cni-args` in the configuration alone, where `ovs` does not look.

With `"switch": true` in the configuration, kud-ovn-controller makes the port, always NAMESPACE.POD.INTERFACE, and a MAC address where none is asked for. The pod
starts when OVN has bound the port.
"""

import ctypes
import fcntl
import hashlib
import json
import os
import socket
import struct
import subprocess
import sys

PATIENCE = 60  # seconds to wait for OVN


def mac_of(port):
    """Returns the MAC address of a port that asks for none, as kud-ovn-controller does."""
    digest = hashlib.sha256(port.encode()).hexdigest()
    return ":".join(["02"] + [digest[at : at + 2] for at in range(0, 10, 2)])


def vsctl(*arguments):
    return subprocess.run(["ovs-vsctl", *arguments], capture_output=True, text=True, check=True).stdout.strip()


def finish_packets(namespace, interface):
    """Lets the pod complete its checksums itself, as `ethtool --offload tx off` does: OVS in user space sends packets on as they are."""
    with open(namespace, encoding="utf-8") as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), 0x40000000):  # CLONE_NEWNET
            raise OSError(ctypes.get_errno(), "cannot enter the pod's network namespace")
    value = ctypes.create_string_buffer(struct.pack("II", 0x17, 0))  # ETHTOOL_STXCSUM, off
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8946, struct.pack("16sP16x", interface.encode(), ctypes.addressof(value)))  # SIOCETHTOOL


def bound(port):
    """Returns when OVN has bound the port to its interface and has installed its flows."""
    interface = vsctl("--timeout=20", "--bare", "--columns=name", "find", "Interface", f'external_ids:iface-id="{port}"').split("\n")[0]
    vsctl(f"--timeout={PATIENCE}", "wait-until", "Interface", interface, "external_ids:ovn-installed=true")


def complete(config, port):
    """Does what is left when the interface is there."""
    if vsctl("--timeout=20", "get", "Bridge", config["bridge"], "datapath_type") == "netdev":
        finish_packets(os.environ["CNI_NETNS"], os.environ["CNI_IFNAME"])
    if config.get("switch"):
        bound(port)


def main():
    config = json.load(sys.stdin)
    asked = config.get("args", {}).get("cni", {})
    given = dict(one.split("=", 1) for one in os.environ.get("CNI_ARGS", "").split(";") if "=" in one)
    port = ".".join((given.get("K8S_POD_NAMESPACE", ""), given.get("K8S_POD_NAME", ""), os.environ.get("CNI_IFNAME", "")))
    if not config.get("switch"):
        port = asked.get("port") or port
    given["OvnPort"] = port
    if asked.get("mac"):
        given["MAC"] = asked["mac"]
    elif config.get("switch"):
        given["MAC"] = mac_of(port)
    os.environ["CNI_ARGS"] = ";".join(f"{name}={value}" for name, value in given.items())
    config["bridge"] = config.get("bridge", "br-int")
    folder = next((one for one in os.environ.get("CNI_PATH", "").split(":") if os.access(os.path.join(one, "ovs"), os.X_OK)), "/opt/cni/bin")
    done = subprocess.run([os.path.join(folder, "ovs")], input=json.dumps(config).encode(), stdout=subprocess.PIPE, check=False)
    if done.returncode == 0 and os.environ.get("CNI_COMMAND") == "ADD":
        try:
            complete(config, port)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", None) or str(error)
            message = f"OVN does not bind the logical port {port}: {reason.strip()}"
            json.dump({"cniVersion": config.get("cniVersion", "0.4.0"), "code": 11, "msg": message}, sys.stdout)  # 11: try again later
            return 1
    sys.stdout.buffer.write(done.stdout)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
