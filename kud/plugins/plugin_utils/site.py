"""A site in one file: checks it, explaining each mistake, and makes the inventory of it. Connects to nothing."""

from __future__ import annotations

import difflib
import os
import re

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
NAMES = {"object": "a mapping", "array": "a list", "string": "a text", "integer": "a whole number", "boolean": "true or false"}


def check(site, schema):
    """Every mistake of the site, each as 'where: what is wrong and what it ought to be'."""
    found = list(_against(site, schema, ""))
    if not found:
        found = list(_together(site))
    return found


def _at(path):
    return path or "the file"


def _against(value, schema, path):
    """The mistakes that the schema knows of: a part of JSON Schema, with its descriptions as explanations."""
    what = schema.get("description", "")
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (kind == "integer" and isinstance(value, bool))):
        yield f"{_at(path)}: must be {NAMES[kind]}{', ' + what if what else ''}; it is {_shown(value)}"
    elif kind == "object":
        yield from _object(value, schema, path)
    elif kind == "array":
        if len(value) < schema.get("minItems", 0):
            yield f"{_at(path)}: is empty: {what}"
        for number, one in enumerate(value):
            yield from _against(one, schema.get("items", {}), f"{path}[{number}]")
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {_shown(value)} is none of {', '.join(schema['enum'])}{_meant(value, schema['enum'])}"
    elif kind == "string" and (not re.search(schema.get("pattern", ""), value) or len(value) < schema.get("minLength", 0)):
        yield f"{path}: {_shown(value)} does not do: {what}"
    elif kind == "integer" and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{path}: {value} is not between {schema['minimum']} and {schema['maximum']}: {what}"


def _object(value, schema, path):
    known = schema.get("properties", {})
    for name in schema.get("required", []):
        if name not in value:
            what = known.get(name, {}).get("description", "")
            yield f"{_at(path)}: {name} is missing{': ' + what if what else ''}"
    for name, one in value.items():
        below = f"{path}.{name}" if path else str(name)
        if name in known:
            yield from _against(one, known[name], below)
        elif schema.get("additionalProperties") is False:
            yield f"{below}: there is no such field here; there are {', '.join(known)}{_meant(name, known)}"


def _shown(value):
    return repr(value) if not isinstance(value, (dict, list)) else NAMES["object" if isinstance(value, dict) else "array"]


def _meant(name, known):
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f". Was {near[0]} meant?" if near else ""


def _together(site):
    """The mistakes that only several fields together make."""
    hosts = site["hosts"]
    for field in ("name", "address"):
        seen = {}
        for number, host in enumerate(hosts):
            if host[field] in seen:
                yield f"hosts[{number}].{field}: {host[field]} is that of hosts[{seen[host[field]]}], too"
            seen.setdefault(host[field], number)
    control = [host for host in hosts if "control_plane" in host["roles"]]
    cluster = site.get("kubernetes", {})
    if len(control) % 2 == 0:
        yield f"hosts: {len(control)} of them have the role control_plane; there must be one, three or five, as etcd decides by majority"
    if len(control) > 1 and not ("endpoint" in cluster or "vip" in cluster):
        yield "kubernetes: several control planes need one address before them: endpoint (a load balancer of yours) or vip (an address that keepalived moves)"
    if not any("worker" in host["roles"] for host in hosts):
        yield "hosts: none has the role worker, so no pod could run; a host alone has both roles"
    add_ons = site.get("add_ons", [])
    kube_ovn = "ovn" in add_ons and site.get("vars", {}).get("ovn_kubernetes") == "kube-ovn"
    if ("flannel" in add_ons) == kube_ovn:
        yield "add_ons: " + ("flannel and kube-ovn are both pod networks; one is needed" if kube_ovn else "there is no pod network: put flannel there, or ovn with ovn_kubernetes: kube-ovn in vars")
    if "sriov" in add_ons and "multus" not in add_ons:
        yield "add_ons: sriov needs multus: a virtual function is a pod's second interface"
    if "virtlet" in add_ons:
        yield "add_ons: virtlet is gone, as it needs a dockershim, which Kubernetes removed in 1.24; kubevirt takes its place"


def inventory(site, folder):
    """The inventory of a site that was checked. Relative paths are taken from folder."""

    def path(name):
        name = os.path.expanduser(name)
        return name if "://" in name or os.path.isabs(name) else os.path.join(folder, name)

    ssh, cluster, region = site.get("ssh", {}), site.get("kubernetes", {}), site.get("region")
    shared = {"kud_site": site["name"], "kud_roles": list(site.get("add_ons", []))}
    if "artifacts" in site:
        shared["kud_artifacts"] = path(site["artifacts"])
    if "user" in ssh:
        shared["ansible_user"] = ssh["user"]
    if "key" in ssh:
        shared["ansible_ssh_private_key_file"] = path(ssh["key"])
    if "known_hosts" in ssh:
        shared["ansible_ssh_common_args"] = f"-o UserKnownHostsFile={path(ssh['known_hosts'])} -o StrictHostKeyChecking=yes"
    if "proxy" in site:
        shared["kud_proxy"] = site["proxy"]
    shared.update({f"kubernetes_{name}": value for name, value in cluster.items()})
    if region is not None:
        shared["kud_roles"].append("region")
        token = region.get("token_env", "K8SPLUGIN_TOKEN")
        shared.update({"region_id": region.get("id", site["name"]), "region_from": region.get("from", "localhost")})
        shared["region_token"] = "{{ lookup('ansible.builtin.env', '%s') }}" % token
        shared.update({f"region_{name}": region[name] for name in ("api", "owner", "description", "labels") if name in region})
    shared.update(site.get("vars", {}))
    groups = {"kube_control_plane": "control_plane", "kube_node": "worker", "ovn_central": "ovn_central"}
    children = {group: {"hosts": {host["name"]: {} for host in site["hosts"] if role in host["roles"]}} for group, role in groups.items()}
    if not children["ovn_central"]["hosts"]:
        del children["ovn_central"]
    hosts = {}
    for host in site["hosts"]:
        own = {"ansible_host": host["address"]}
        own.update({f"ansible_{name}": host[name] for name in ("user", "port") if name in host})
        own.update(host.get("vars", {}))
        hosts[host["name"]] = own
    return {"all": {"hosts": hosts, "vars": shared, "children": children}}
