#!/usr/bin/python3
"""kud: CNI plugin that puts a pod's interface on a port of a logical switch of OVN.

It hands over to the plugin `ovs`, which makes the interface and adds it to OVN's bridge, and tells it the logical port: what the pod's annotation names
in `cni-args` as `port` (and `mac`), or else NAMESPACE.POD.INTERFACE. Multus passes `cni-args` in the configuration alone, where `ovs` does not look.
"""

import json
import os
import sys


def main():
    config = json.load(sys.stdin)
    asked = config.get("args", {}).get("cni", {})
    given = dict(one.split("=", 1) for one in os.environ.get("CNI_ARGS", "").split(";") if "=" in one)
    given["OvnPort"] = asked.get("port") or ".".join(
        (given.get("K8S_POD_NAMESPACE", ""), given.get("K8S_POD_NAME", ""), os.environ.get("CNI_IFNAME", ""))
    )
    if asked.get("mac"):
        given["MAC"] = asked["mac"]
    os.environ["CNI_ARGS"] = ";".join(f"{name}={value}" for name, value in given.items())
    config["bridge"] = config.get("bridge", "br-int")
    folder = next((one for one in os.environ.get("CNI_PATH", "").split(":") if os.access(os.path.join(one, "ovs"), os.X_OK)), "/opt/cni/bin")
    # The plugin takes this process over, with a pipe for its input that holds all of it: a configuration is smaller than a pipe.
    read, write = os.pipe()
    os.write(write, json.dumps(config).encode())
    os.close(write)
    os.dup2(read, 0)
    os.execv(os.path.join(folder, "ovs"), ["ovs"])


if __name__ == "__main__":
    main()
