#!/usr/bin/python
"""Applies objects to a cluster with kubectl."""

from __future__ import annotations

import os
import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.multicloud_k8s.kud.plugins.module_utils.execute import execute

DOCUMENTATION = """
module: kube
author: the k8splugin authors
short_description: Apply objects to a cluster, wait for them, or delete them
description:
  - Applies objects by server-side apply, after a server-side diff, so that what is there already is no change.
  - In check mode on a host without a cluster it says that it would change something.
  - Needs nothing on the host but kubectl.
options:
  definition:
    description: The objects, as YAML documents. Nothing of them is logged.
    type: str
  src:
    description: A file on the host with the objects.
    type: path
  kustomize:
    description: A folder on the host with a kustomization.
    type: path
  state:
    description: Whether the objects are to be there.
    type: str
    choices: [present, absent]
    default: present
  wait:
    description:
      - "What to wait for after that, each as kubectl wait takes it: C(--for=condition=Available deployment/x -n y)."
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds to wait, for each.
    type: int
    default: 180
  kubeconfig:
    description: The kubeconfig on the host.
    type: path
    default: /etc/kubernetes/admin.conf
"""

EXAMPLES = """
- name: Make a namespace
  multicloud_k8s.kud.kube:
    definition: |
      {apiVersion: v1, kind: Namespace, metadata: {name: edge}}
"""

RETURN = """
objects:
  description: What was applied or deleted.
  type: list
  elements: str
  returned: changed
"""

UNKNOWN = ("no matches for kind", "doesn't have a resource type", "the server could not find the requested resource")
NOT_YET = ("not found", "NotFound")
# What an apply may meet that ends by itself: a kind is served some moments after its definition was accepted, a webhook after its deployment, and a
# namespace has the account that its pods run as some moments after it was made.
SOON = (*UNKNOWN, "failed calling webhook", "error looking up service account", "failed to download openapi")
# What a control plane says, or does not say, that has too much to do or is being restarted.
BUSY = ("etcdserver: ", "TLS handshake timeout", "connection refused", "i/o timeout", "Client.Timeout", "context deadline exceeded", "connection lost", "unexpected EOF",
        "has prevented the request from succeeding")
# Seconds. A kubelet that takes the API server for dead starts it again after some 90.
PATIENCE = 180


class Cluster:
    def __init__(self, module):
        self.program = module.get_bin_path("kubectl", opt_dirs=["/usr/local/bin"])
        self.kubeconfig = module.params["kubeconfig"]

    def there(self):
        return self.program is not None and os.path.exists(self.kubeconfig)

    def complaint(self):
        """Why it is of no use, or nothing."""
        status, _, err = self.run("get", "--raw", "/readyz", "--request-timeout=30s")
        return "" if status == 0 else err.strip() or f"kubectl ended with {status}"

    def run(self, *args, data=None):
        """Runs kubectl, again for some time while the control plane is too busy to answer."""
        end = time.monotonic() + PATIENCE
        while True:
            status, out, err = execute([self.program, "--kubeconfig", self.kubeconfig, *args], data=data)
            if status == 0 or time.monotonic() > end or not any(word in err for word in BUSY):
                return status, out, err
            time.sleep(1)


def source(params):
    if params["definition"] is not None:
        return ["-f", "-"], params["definition"]
    if params["src"] is not None:
        return ["-f", params["src"]], None
    return ["-k", params["kustomize"]], None


def present(module, cluster, what, data):
    """Applies what differs, and returns what was said of it."""
    side = ["--server-side", "--force-conflicts", "--field-manager=kud"]
    status, out, err = cluster.run("diff", *side, *what, data=data)
    if status == 0:
        return []
    # A diff of something whose namespace or kind is made by the same document cannot be had: it is a change.
    if status > 1 and not any(word in err for word in UNKNOWN + NOT_YET):
        module.fail_json(msg=f"cannot compare the objects with the cluster: {err.strip()}")
    if module.check_mode:
        return ["would apply"]
    end = time.monotonic() + PATIENCE
    while True:
        status, out, err = cluster.run("apply", *side, *what, data=data)
        if status == 0:
            return out.split("\n")[:-1]
        if time.monotonic() > end or not any(word in err for word in SOON):
            break
        time.sleep(1)
    return module.fail_json(msg=f"cannot apply the objects: {err.strip()}")


def absent(module, cluster, what, data):
    status, out, err = cluster.run("get", *what, "--ignore-not-found", "-o", "name", data=data)
    names = out.split()
    if status != 0 and not names and not any(word in err for word in UNKNOWN):
        module.fail_json(msg=f"cannot look for the objects: {err.strip()}")
    if not names or module.check_mode:
        return names
    status, out, err = cluster.run("delete", *what, "--ignore-not-found", f"--timeout={module.params['timeout']}s", data=data)
    if status != 0 and not any(word in err for word in UNKNOWN):
        module.fail_json(msg=f"cannot delete the objects: {err.strip()}")
    return names


def main():
    module = AnsibleModule(
        argument_spec={
            "definition": {"type": "str", "no_log": True},
            "src": {"type": "path"},
            "kustomize": {"type": "path"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "wait": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "int", "default": 180},
            "kubeconfig": {"type": "path", "default": "/etc/kubernetes/admin.conf"},
        },
        mutually_exclusive=[("definition", "src", "kustomize")],
        required_one_of=[("definition", "src", "kustomize")],
        supports_check_mode=True,
    )
    cluster, params = Cluster(module), module.params
    if not cluster.there():
        if module.check_mode or params["state"] == "absent":
            module.exit_json(changed=params["state"] == "present", msg="there is no cluster yet")
        module.fail_json(msg=f"there is no cluster: kubectl or {params['kubeconfig']} is missing")
    complaint = cluster.complaint()
    if complaint:
        module.fail_json(msg=f"the cluster of {params['kubeconfig']} is not ready: {complaint}")
    what, data = source(params)
    if module.check_mode and params["src"] is not None and not os.path.exists(params["src"]):
        module.exit_json(changed=params["state"] == "present", msg=f"there is no {params['src']} yet")
    objects = (present if params["state"] == "present" else absent)(module, cluster, what, data)
    if not module.check_mode:
        for one in params["wait"]:
            status, out, err = cluster.run("wait", f"--timeout={params['timeout']}s", *one.split())
            if status != 0:
                module.fail_json(msg=f"waited {params['timeout']} s for {one}: {err.strip()}", changed=bool(objects), objects=objects)
    module.exit_json(changed=bool(objects), objects=objects)


if __name__ == "__main__":
    main()
