#!/usr/bin/python
"""Says what files of a host are."""

from __future__ import annotations

import hashlib
import os
import stat

from ansible.module_utils.basic import AnsibleModule

DOCUMENTATION = """
module: digests
author: the k8splugin authors
short_description: Say the SHA-256 and the mode of several files at once
description:
  - What the action plugin artifact asks a host before it copies anything. A file that is not there is left out. Nothing is changed.
options:
  files:
    description: Paths.
    type: list
    elements: path
    required: true
"""

EXAMPLES = """
- name: Look at the programs
  multicloud_k8s.kud.digests:
    files: [/usr/local/bin/kubelet, /usr/local/bin/kubectl]
"""

RETURN = """
digests:
  description: For each path that is a file its sha256 and its mode.
  type: dict
  returned: success
"""


def look(path):
    total = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            total.update(block)
    return {"sha256": total.hexdigest(), "mode": f"{stat.S_IMODE(os.stat(path).st_mode):04o}"}


def main():
    module = AnsibleModule(argument_spec={"files": {"type": "list", "elements": "path", "required": True}}, supports_check_mode=True)
    try:
        module.exit_json(changed=False, digests={path: look(path) for path in module.params["files"] if os.path.isfile(path)})
    except OSError as err:
        module.fail_json(msg=f"cannot read {err.filename}: {err.strerror}")


if __name__ == "__main__":
    main()
