"""Puts files of the artefact folder on a host."""

from __future__ import annotations

import os

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ansible_collections.multicloud_k8s.kud.plugins.plugin_utils import artifacts


class ActionModule(ActionBase):
    """See the documentation of the module of the same name."""

    TRANSFERS_FILES = True
    _VALID_ARGS = frozenset(("path", "paths", "dest", "mode"))

    def run(self, tmp=None, task_vars=None):
        result = super().run(tmp, task_vars)
        place = str(self._templar.template((task_vars or {}).get("kud_artifacts", ""))).rstrip("/")
        mode = str(self._task.args.get("mode", "0755"))
        wanted = self._wanted(place)
        have = self._ask("multicloud_k8s.kud.digests", {"files": list(wanted)}, task_vars)["digests"]
        differ = [dest for dest, (path, digest) in wanted.items() if have.get(dest) != {"sha256": digest, "mode": mode}]
        for dest in [] if self._task.check_mode else differ:
            path, digest = wanted[dest]
            if have.get(dest, {}).get("sha256") == digest:
                self._ask("ansible.builtin.file", {"path": dest, "mode": mode, "state": "file"}, task_vars)
            elif artifacts.is_url(place):
                source = {"url": f"{place}/{path}", "checksum": f"sha256:{digest}", "force": True, "timeout": 120}
                self._ask("ansible.builtin.get_url", {**source, "dest": dest, "mode": mode}, task_vars)
            else:
                self._copy(os.path.join(place, path), digest, dest, mode, task_vars)
        result.update(changed=bool(differ), installed=differ)
        return result

    def _wanted(self, place):
        """What the host is to have: (path in the folder, SHA-256) by path on the host."""
        args = self._task.args
        if not args.get("dest") or ("path" in args) == ("paths" in args):
            raise AnsibleActionFail("artifact needs dest, and either path or paths")
        if "path" in args:
            asked = {args["dest"]: args["path"]}
        else:
            asked = {os.path.join(args["dest"], os.path.basename(path)): path for path in args["paths"]}
        known = artifacts.read(place)
        missing = [path for path in asked.values() if path not in known]
        if missing:
            raise AnsibleActionFail(
                f"{place}/{artifacts.MANIFEST} does not name {', '.join(missing)}: put it there and run 'kud bundle --manifest', or set another version"
            )
        return {dest: (path, known[path]) for dest, path in asked.items()}

    def _ask(self, module, args, task_vars):
        done = self._execute_module(module_name=module, module_args=args, task_vars=task_vars)
        if done.get("failed"):
            raise AnsibleActionFail(f"{module}: {done.get('msg')}")
        return done

    def _copy(self, source, want, dest, mode, task_vars):
        try:
            have = artifacts.digest(source)
        except OSError as err:
            raise AnsibleActionFail(f"cannot read the artefact {source}: {err.strerror}") from err
        if have != want:
            raise AnsibleActionFail(f"{source} has SHA-256 {have}, its manifest says {want}: it is damaged, or the manifest is old")
        task = self._task.copy()
        task.args = {"src": source, "dest": dest, "mode": mode}
        action = self._shared_loader_obj.action_loader.get(
            "ansible.builtin.copy",
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        done = action.run(task_vars=task_vars)
        if done.get("failed"):
            raise AnsibleActionFail(f"cannot copy {source}: {done.get('msg')}")
