"""Lists what the artefact folder has."""

from __future__ import annotations

from ansible.plugins.lookup import LookupBase

from ansible_collections.multicloud_k8s.kud.plugins.plugin_utils import artifacts

DOCUMENTATION = """
name: artifacts
author: the k8splugin authors
short_description: List the artefacts below a folder of the artefact folder
description:
  - Returns the paths that the manifest of C(kud_artifacts) names below each term, in order. A folder that has none gives an empty list.
options:
  _terms:
    description: Folders, such as C(images) or C(cni-plugins/v1.9.1).
    required: true
"""

EXAMPLES = """
- ansible.builtin.debug:
    msg: "{{ query('multicloud_k8s.kud.artifacts', 'images') }}"
"""

RETURN = """
_raw:
  description: Paths in the artefact folder.
  type: list
  elements: str
"""


class LookupModule(LookupBase):
    def run(self, terms, variables=None, **kwargs):
        place = self._templar.template((variables or {}).get("kud_artifacts", ""))
        if not place:
            return []
        known = artifacts.read(place)
        return [path for term in terms for path in sorted(known) if path.startswith(term.rstrip("/") + "/")]
