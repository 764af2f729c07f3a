#!/usr/bin/python
"""Sets one key of a column in Open vSwitch's database."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.multicloud_k8s.kud.plugins.module_utils.execute import execute

DOCUMENTATION = """
module: ovs
author: the k8splugin authors
short_description: Set a key in a map column of an Open vSwitch or OVN database
description:
  - Reads the key first, so that a value that is there already is no change, whatever its quoting. Works in check mode.
options:
  table:
    description: The table.
    type: str
    default: Open_vSwitch
  record:
    description: The record.
    type: str
    default: "."
  column:
    description: The map column.
    type: str
    default: external_ids
  key:
    description: The key.
    type: str
    required: true
  value:
    description: Its value; the key is removed when there is none.
    type: str
"""

EXAMPLES = """
- name: Name the tunnel's address
  multicloud_k8s.kud.ovs:
    key: ovn-encap-ip
    value: 10.0.0.11
"""

RETURN = """
before:
  description: The value before.
  type: str
  returned: success
"""


def main():
    module = AnsibleModule(
        argument_spec={
            "table": {"type": "str", "default": "Open_vSwitch"},
            "record": {"type": "str", "default": "."},
            "column": {"type": "str", "default": "external_ids"},
            "key": {"type": "str", "required": True, "no_log": False},
            "value": {"type": "str"},
        },
        supports_check_mode=True,
    )
    p = module.params
    program = module.get_bin_path("ovs-vsctl")
    if program is None:
        if module.check_mode:
            module.exit_json(changed=p["value"] is not None, before="")
        module.fail_json(msg="there is no ovs-vsctl on this host")
    status, out, err = execute([program, "--timeout=20", "--if-exists", "get", p["table"], p["record"], f"{p['column']}:{p['key']}"])
    if status != 0 and "no key" not in err:
        module.fail_json(msg=f"cannot read {p['column']}:{p['key']}: {err.strip()}")
    before = out.strip().strip('"')
    if before == (p["value"] or ""):
        module.exit_json(changed=False, before=before)
    if not module.check_mode:
        if p["value"] is None:
            change = ["remove", p["table"], p["record"], p["column"], p["key"]]
        else:
            change = ["set", p["table"], p["record"], f'{p["column"]}:{p["key"]}="{p["value"]}"']
        status, out, err = execute([program, "--timeout=20", *change])
        if status != 0:
            module.fail_json(msg=f"cannot set {p['column']}:{p['key']}: {err.strip()}")
    module.exit_json(changed=True, before=before)


if __name__ == "__main__":
    main()
