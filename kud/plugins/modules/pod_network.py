#!/usr/bin/python
"""Runs a program in the network of a pod."""

from __future__ import annotations

import glob
import re

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.multicloud_k8s.kud.plugins.module_utils.execute import execute

DOCUMENTATION = """
module: pod_network
author: the k8splugin authors
short_description: Run a program of the host in the network namespace of a pod
description:
  - Runs a program of the host as if it ran in the pod, so that a proof needs nothing in the pod's image. It never changes anything.
options:
  uid:
    description: The pod's UID. The pod must run on this host.
    type: str
    required: true
  argv:
    description: The program and its arguments.
    type: list
    elements: str
    required: true
"""

EXAMPLES = """
- name: Ping from the pod
  multicloud_k8s.kud.pod_network:
    uid: 7c3e7b1c-1c1f-4e8a-8a2e-6f7f5b1b9f0e
    argv: [ping, -c, "3", 10.10.0.2]
"""

RETURN = """
stdout:
  description: What the program printed.
  type: str
  returned: success
"""


def process_of(uid):
    """A process of the pod, found by its control group, which is named by the UID with dashes or underscores."""
    names = (uid, uid.replace("-", "_"))
    for path in glob.glob("/proc/[0-9]*/cgroup"):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except OSError:
            continue
        if any(name in text for name in names):
            return path.split("/")[2]
    return None


def main():
    module = AnsibleModule(
        argument_spec={"uid": {"type": "str", "required": True}, "argv": {"type": "list", "elements": "str", "required": True}},
        supports_check_mode=True,
    )
    uid = module.params["uid"]
    if not re.fullmatch(r"[0-9a-f-]{36}", uid):
        module.fail_json(msg=f"{uid} is no UID of a pod")
    process = process_of(uid)
    if process is None:
        module.fail_json(msg=f"no process of the pod {uid} runs on this host")
    status, out, err = execute(["nsenter", f"--target={process}", "--net", "--", *module.params["argv"]])
    result = {"changed": False, "rc": status, "stdout": out, "stderr": err}
    if status != 0:
        module.fail_json(msg=f"{module.params['argv'][0]} ended with {status}: {err.strip() or out.strip()}", **result)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
