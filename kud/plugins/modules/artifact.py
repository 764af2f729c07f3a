#!/usr/bin/python
"""Documentation of the action plugin of the same name."""

DOCUMENTATION = """
module: artifact
author: the k8splugin authors
short_description: Put files of the artefact folder on a host
description:
  - Puts files on the host that the manifest of C(kud_artifacts) names, and only with the SHA-256 that it names.
  - C(kud_artifacts) is a folder of the controller, whose files are copied, or a URL, which the host fetches from.
  - A host that has a file already is not sent it. Check mode is supported.
options:
  path:
    description: Path in the artefact folder.
    type: str
  paths:
    description: Several of them; C(dest) is the folder that they go to, under their own names.
    type: list
    elements: str
  dest:
    description: Path of the file on the host, or with C(paths) the folder, which must exist.
    type: path
    required: true
  mode:
    description: Mode of the files.
    type: str
    default: "0755"
"""

EXAMPLES = """
- name: Install the kubelet
  multicloud_k8s.kud.artifact:
    path: kubernetes/v1.37.1/kubelet
    dest: /usr/local/bin/kubelet

- name: Install two programs
  multicloud_k8s.kud.artifact:
    paths: [etcd/v3.7.3/etcd, etcd/v3.7.3/etcdctl]
    dest: /usr/local/bin
"""

RETURN = """
installed:
  description: The files that were not as they ought to be.
  type: list
  elements: str
  returned: success
"""
