#!/usr/bin/python
"""Imports an image archive into containerd."""

from __future__ import annotations

import json
import tarfile

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.multicloud_k8s.kud.plugins.module_utils.execute import execute

DOCUMENTATION = """
module: image
author: the k8splugin authors
short_description: Import image archives into containerd
description:
  - Imports OCI and docker archives into the namespace that Kubernetes uses, unless their images are there with the digests that the archives have.
options:
  archives:
    description: The archives on the host.
    type: list
    elements: path
    required: true
  ctr:
    description: The ctr program.
    type: str
    default: ctr
  address:
    description: Socket of containerd.
    type: path
    default: /run/containerd/containerd.sock
"""

EXAMPLES = """
- name: Import the pause image
  multicloud_k8s.kud.image:
    archives: [/var/lib/kud/images/pause.tar]
"""

RETURN = """
imported:
  description: The archives whose images were not there.
  type: list
  elements: str
  returned: success
"""

NAMES = ("io.containerd.image.name", "org.opencontainers.image.ref.name")


def contents(archive):
    """The archive's images as {name: digest}, digest being empty where the archive has none that containerd would show."""
    found = {}
    with tarfile.open(archive) as tar:
        names = set(tar.getnames())
        if "index.json" in names:
            for one in json.load(tar.extractfile("index.json")).get("manifests", []):
                name = next((one["annotations"][key] for key in NAMES if key in one.get("annotations", {})), "")
                if "/" in name:
                    found[name] = one["digest"]
        if not found and "manifest.json" in names:
            for one in json.load(tar.extractfile("manifest.json")):
                for tag in one.get("RepoTags") or []:
                    found[tag] = ""
    return found


class Containerd:
    def __init__(self, module):
        self.module = module
        program = module.get_bin_path(module.params["ctr"], opt_dirs=["/usr/local/bin"])
        self.command = program and [program, "--address", module.params["address"], "--namespace", "k8s.io", "images"]

    def images(self):
        """Digest by name, or None when containerd does not answer."""
        if not self.command:
            return None
        status, out, _ = execute([*self.command, "list"])
        return {line.split()[0]: line.split()[2] for line in out.splitlines()[1:] if len(line.split()) > 2} if status == 0 else None

    def take(self, archive):
        status, out, err = execute([*self.command, "import", archive])
        if status != 0:
            self.module.fail_json(msg=f"cannot import {archive}: {err.strip() or out.strip()}")


def missing(module, archive, have):
    """Whether an image of the archive is not there as the archive has it."""
    try:
        want = contents(archive)
    except FileNotFoundError:
        if module.check_mode:
            return True
        module.fail_json(msg=f"there is no {archive}")
    except (OSError, ValueError, KeyError, tarfile.TarError) as err:
        module.fail_json(msg=f"{archive} is no image archive: {err}")
    if not want:
        module.fail_json(msg=f"{archive} names no image: its index.json needs the annotation {NAMES[0]}, or its manifest.json RepoTags")
    return not all(name in have and digest in ("", have[name]) for name, digest in want.items())


def main():
    module = AnsibleModule(
        argument_spec={
            "archives": {"type": "list", "elements": "path", "required": True},
            "ctr": {"type": "str", "default": "ctr"},
            "address": {"type": "path", "default": "/run/containerd/containerd.sock"},
        },
        supports_check_mode=True,
    )
    containerd = Containerd(module)
    have = containerd.images()
    if have is None:
        if module.check_mode:
            module.exit_json(changed=bool(module.params["archives"]), imported=module.params["archives"])
        module.fail_json(msg=f"containerd does not answer at {module.params['address']}: the container runtime comes first")
    imported = [archive for archive in module.params["archives"] if missing(module, archive, have)]
    if not module.check_mode:
        for archive in imported:
            containerd.take(archive)
    module.exit_json(changed=bool(imported), imported=imported)


if __name__ == "__main__":
    main()
