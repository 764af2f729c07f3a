#!/usr/bin/python
"""Asks a name server, as a host sees it."""

from __future__ import annotations

import socket
import struct
import time

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: resolve
author: the k8splugin authors
short_description: Ask a name server for the IPv4 addresses of a name
description:
  - Asks by UDP until there is an answer with an address, or the time is over. Nothing of the host's own resolver has a part in it. Nothing is changed.
options:
  server:
    description: IPv4 address of the name server.
    type: str
    required: true
  name:
    description: The whole name, as kubernetes.default.svc.cluster.local.
    type: str
    required: true
  timeout:
    description: Seconds.
    type: int
    default: 60
"""

EXAMPLES = """
- name: Ask the cluster's name server
  multicloud_k8s.kud.resolve:
    server: 10.96.0.10
    name: kubernetes.default.svc.cluster.local
"""

RETURN = """
addresses:
  description: IPv4 addresses.
  type: list
  returned: success
"""

CODES = {1: "it could not read the question", 2: "it failed", 3: "there is no such name", 5: "it refuses to answer"}


def question(name, number):
    labels = b"".join(bytes([len(one)]) + one.encode() for one in name.rstrip(".").split("."))
    return struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)


def after_name(data, at):
    while data[at]:
        if data[at] >= 0xC0:  # the rest of the name stands elsewhere
            return at + 2
        at += data[at] + 1
    return at + 1


def answer(data, number):
    """Returns the addresses of an answer. Raises ValueError with the reason when it has none."""
    got, flags, questions, answers = struct.unpack(">4H", data[:8])
    if got != number:
        raise ValueError("it answers what nobody asked")
    if flags & 15:
        raise ValueError(CODES.get(flags & 15, f"it answers with code {flags & 15}"))
    at = 12
    for _each in range(questions):
        at = after_name(data, at) + 4
    addresses = []
    for _each in range(answers):
        at = after_name(data, at)
        kind, _class, _ttl, length = struct.unpack(">2HIH", data[at:at + 10])
        if kind == 1 and length == 4:
            addresses.append(socket.inet_ntoa(data[at + 10:at + 14]))
        at += 10 + length
    if not addresses:
        raise ValueError("the name has no IPv4 address")
    return addresses


def ask(server, name, timeout):
    end, number, why = time.monotonic() + timeout, 0, "nothing came back"
    while time.monotonic() < end:
        number = number % 0xFFFF + 1
        began = time.monotonic()
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                one.settimeout(2)
                one.connect((server, 53))
                one.send(question(name, number))
                return answer(one.recv(4096), number)
        except (OSError, ValueError, struct.error, IndexError) as err:
            why = str(err)
        time.sleep(max(0.0, min(1.0, began + 1 - time.monotonic())))
    raise TimeoutError(why)


def main():
    module = AnsibleModule(
        argument_spec={
            "server": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "timeout": {"type": "int", "default": 60},
        },
        supports_check_mode=True,
    )
    given = module.params
    try:
        module.exit_json(changed=False, addresses=ask(given["server"], given["name"], given["timeout"]))
    except TimeoutError as err:
        module.fail_json(msg=f"{given['server']} did not say within {given['timeout']} s what {given['name']} is: {err}")


if __name__ == "__main__":
    main()
