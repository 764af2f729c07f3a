#!/usr/bin/python3
"""kud: controller that makes logical switches of OVN for networks, and a port for each interface of a pod.

A network is a NetworkAttachmentDefinition whose configuration has the type kud-ovn and `"switch": true`. Its logical switch is NAMESPACE.NAME, and the ports are
NAMESPACE.POD.INTERFACE, as the CNI plugin kud-ovn names them. Both go when the definition or the pod goes. What has no mark of this controller stays as it is, also
on its switches. It writes to the northbound database of this host, through the local socket.

  kud-ovn-controller KUBECONFIG    a file in JSON, with a server, its certificate authority and a token
"""

import base64
import hashlib
import http.client
import ipaddress
import json
import re
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

MARK = "kud-ovn"  # key of external_ids: "network" of a switch, and the switch of a port
RETRY = 2  # seconds
CHECK = 60  # seconds between comparisons when nothing changes
WATCH = 300  # seconds until a watch begins again with a list


class API:
    """Reads from the API server of a kubeconfig."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        cluster = config["clusters"][0]["cluster"]
        self.server = cluster["server"].rstrip("/")
        self.token = config["users"][0]["user"]["token"]
        self.context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())

    def get(self, path):
        request = urllib.request.Request(self.server + path, headers={"Authorization": "Bearer " + self.token})
        return urllib.request.urlopen(request, context=self.context, timeout=WATCH + 30)


class Objects(threading.Thread):
    """Holds the objects of a resource, by namespace and name, reduced to what is needed. `known` is None until they were listed once."""

    def __init__(self, api, path, reduce, changed):
        super().__init__(daemon=True)
        self.api, self.path, self.reduce, self.changed = api, path, reduce, changed
        self.known = None

    def run(self):
        while True:
            try:
                self.follow()
            except (OSError, ValueError, http.client.HTTPException) as error:
                say(f"cannot read {self.path}: {error}; trying again")
                time.sleep(RETRY)

    def follow(self):
        with self.api.get(self.path) as answer:
            listed = json.load(answer)
        self.known = {key(one): self.reduce(one) for one in listed["items"]}
        self.changed.set()
        version = listed["metadata"]["resourceVersion"]
        with self.api.get(f"{self.path}?watch=true&timeoutSeconds={WATCH}&resourceVersion={version}") as events:
            for line in events:
                event = json.loads(line)
                if event["type"] == "ERROR":  # the version is too old
                    return
                if event["type"] == "DELETED":
                    self.known.pop(key(event["object"]), None)
                else:
                    self.known[key(event["object"])] = self.reduce(event["object"])
                self.changed.set()

    def items(self):
        return sorted(self.known.copy().items())


def key(one):
    return one["metadata"]["namespace"], one["metadata"]["name"]


def has_switch(definition):
    """Says whether a definition asks for a logical switch."""
    try:
        config = json.loads(definition["spec"]["config"])
        return config["type"] == "kud-ovn" and config["switch"] is True
    except (KeyError, TypeError, ValueError):
        return False


def selections(pod):
    """Returns what a pod is attached to. A pod that has ended is attached to nothing: another one may have its addresses."""
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return []
    try:
        asked = json.loads(pod["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"])
    except (KeyError, TypeError, ValueError):
        return []
    return [one for one in asked if isinstance(one, dict)] if isinstance(asked, list) else []


def mac_of(port):
    """Returns the MAC address of a port that asks for none. The CNI plugin kud-ovn computes the same."""
    digest = hashlib.sha256(port.encode()).hexdigest()
    return ":".join(["02"] + [digest[at : at + 2] for at in range(0, 10, 2)])


def port_of(namespace, pod, number, asked):
    """Returns the port of an interface and its addresses. It raises ValueError where a pod asks for what is none."""
    port = f"{namespace}.{pod}.{asked.get('interface') or f'net{number}'}"
    arguments = asked.get("cni-args")
    mac = (arguments.get("mac") if isinstance(arguments, dict) else None) or mac_of(port)
    if not re.fullmatch(r"[\w.-]+", port) or not re.fullmatch(r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", str(mac)):
        raise ValueError(f"{port} {mac}")
    return port, " ".join([mac] + [str(ipaddress.ip_interface(one).ip) for one in asked.get("ips") or []])


def wanted(definitions, pods):
    """Returns the names of the switches, and the ports: (switch, addresses) by name."""
    networks = {network for network, switch in definitions if switch}
    ports = {}
    for (namespace, pod), asked in pods:
        for number, one in enumerate(asked, 1):
            network = (str(one.get("namespace") or namespace), str(one.get("name")))
            if network not in networks:
                continue
            try:
                port, addresses = port_of(namespace, pod, number, one)
            except (TypeError, ValueError) as error:
                say(f"pod {namespace}/{pod} gets no port: {error}")
                continue
            ports[port] = (".".join(network), addresses)
    return {".".join(network) for network in networks}, ports


def nbctl(*arguments):
    done = subprocess.run(["ovn-nbctl", "--timeout=20", *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def rows(table, *columns):
    """Returns columns of the rows of a table that have the mark."""
    listed = json.loads(nbctl("--format=json", "--columns=" + ",".join(columns + ("external_ids",)), "list", table))
    for *values, (_, pairs) in listed["data"]:
        marks = dict(pairs)
        if MARK in marks:
            yield (*values, marks[MARK])


def present():
    """Returns the switches and ports that there are, as wanted does."""
    return {name for name, _ in rows("Logical_Switch", "name")}, {
        name: (switch, addresses) for name, addresses, switch in rows("Logical_Switch_Port", "name", "addresses")
    }


def changes(want, have):
    """Yields the commands that lead from what there is to what is wanted. What goes comes first: its addresses may be given to another port."""
    (switches, ports), (old_switches, old_ports) = want, have
    for port in sorted(old_ports.keys() - ports.keys()) + sorted(one for one in old_ports.keys() & ports.keys() if old_ports[one] != ports[one]):
        yield "--if-exists", "lsp-del", port
    for switch in sorted(old_switches - switches):
        yield "--if-exists", "ls-del", switch
    for switch in sorted(switches - old_switches):
        yield "ls-add", switch, "--", "set", "Logical_Switch", switch, f"external_ids:{MARK}=network"
    for port, (switch, addresses) in sorted(ports.items()):
        if old_ports.get(port) != (switch, addresses):
            yield (
                *("lsp-add", switch, port, "--", "lsp-set-addresses", port, addresses),
                *("--", "set", "Logical_Switch_Port", port, f'external_ids:{MARK}="{switch}"'),
            )


def reconcile(definitions, pods):
    """Makes what is wanted, and says whether all of it is there."""
    if definitions.known is None or pods.known is None:
        return False
    complete = True
    try:
        for command in changes(wanted(definitions.items(), pods.items()), present()):
            try:
                nbctl(*command)
                say(" ".join(command))
            except subprocess.CalledProcessError as error:
                say(f"cannot {' '.join(command)}: {error.stderr.strip()}; trying again")
                complete = False
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        say(f"cannot use the northbound database: {getattr(error, 'stderr', None) or error}; trying again")
        return False
    return complete


def say(text):
    print(text, file=sys.stderr, flush=True)


def main():
    api, changed = API(sys.argv[1]), threading.Event()
    definitions = Objects(api, "/apis/k8s.cni.cncf.io/v1/network-attachment-definitions", has_switch, changed)
    pods = Objects(api, "/api/v1/pods", selections, changed)
    definitions.start()
    pods.start()
    complete = True
    while True:
        changed.wait(CHECK if complete else RETRY)
        changed.clear()
        complete = reconcile(definitions, pods)


if __name__ == "__main__":
    main()
