#!/usr/bin/python
"""Writes or reads a file in a volume, as a container of a pod sees it."""

from __future__ import annotations

import glob
import re

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: pod_file
author: the k8splugin authors
short_description: Write or read a file in a volume as a container of a pod has it mounted
description:
  - Goes by the root directory of a container's process, so that a proof of a volume needs nothing in the pod's image.
  - For proofs alone, it says that nothing was changed.
options:
  uid:
    description: The pod's UID. The pod must run on this host.
    type: str
    required: true
  mount:
    description: Where the volume is mounted in the container.
    type: str
    required: true
  name:
    description: Name of the file in the volume.
    type: str
    required: true
  content:
    description: What is to be written; without it the file is read.
    type: str
"""

EXAMPLES = """
- name: Read what was written
  multicloud_k8s.kud.pod_file:
    uid: 7c3e7b1c-1c1f-4e8a-8a2e-6f7f5b1b9f0e
    mount: /data
    name: proof
"""

RETURN = """
content:
  description: What the file holds.
  type: str
  returned: success
"""


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:  # the process has ended in between
        return ""


def process_with(uid, mount):
    """A process of the pod that has the mount: the container's, not that which holds the pod's network."""
    names = (uid, uid.replace("-", "_"))
    for path in glob.glob("/proc/[0-9]*/cgroup"):
        if not any(name in read(path) for name in names):
            continue
        process = path.split("/")[2]
        if any(line.split()[4] == mount for line in read(f"/proc/{process}/mountinfo").splitlines()):
            return process
    return None


def main():
    module = AnsibleModule(
        argument_spec={
            "uid": {"type": "str", "required": True},
            "mount": {"type": "str", "required": True},
            "name": {"type": "str", "required": True},
            "content": {"type": "str"},
        },
        supports_check_mode=True,
    )
    p = module.params
    if not re.fullmatch(r"[0-9a-f-]{36}", p["uid"]) or "/" in p["name"]:
        module.fail_json(msg=f"{p['uid']} is no UID of a pod, or {p['name']} no name of a file")
    process = process_with(p["uid"], p["mount"].rstrip("/"))
    if process is None:
        module.fail_json(msg=f"no container of the pod {p['uid']} has {p['mount']} on this host")
    place = f"/proc/{process}/root{p['mount'].rstrip('/')}/{p['name']}"
    try:
        if p["content"] is not None and not module.check_mode:
            with open(place, "w", encoding="utf-8") as file:
                file.write(p["content"])
        with open(place, encoding="utf-8") as file:
            module.exit_json(changed=False, content=file.read())
    except OSError as err:
        module.fail_json(msg=f"cannot use {p['name']} in {p['mount']} of the pod: {err.strerror}")


if __name__ == "__main__":
    main()
