#!/bin/sh
# Makes a Kubernetes cluster of hosts with kubeadm. It runs on each host: first on the control
# planes, then on the workers. It can be repeated.
#
# SITE_ACTION is build, or shrink if workers leave. Then it runs on the first host only, and
# removes their nodes: a worker that leaves may be unreachable.
#
# A host needs a container runtime, kubelet, kubeadm, kubectl, python3, and a user that is root or
# may use sudo without a password. Install them beforehand, for example in the image of the hosts.
#
# Options: --cni URL    manifest of the CNI plugin, which the first host applies
#          --admin      the cloud region may do everything in the cluster
#
# Standard input is a JSON document; see docs/guides/cluster-by-vnf.md. Lines of standard error
# become events of the operation. The first host prints the result.
set -eu

if [ "$(id -u)" != 0 ]; then
  exec sudo -n SITE_ACTION="$SITE_ACTION" SITE_HOST="$SITE_HOST" SITE_ROLE="$SITE_ROLE" "$0" "$@"
fi

cni='' admin=''
while [ $# -gt 0 ]; do
  case $1 in
    --cni) cni=$2; shift 2 ;;
    --admin) admin=yes; shift ;;
    *) echo "unknown option $1" >&2; exit 2 ;;
  esac
done

document=$(cat)
# value prints the value at the keys in the document; empty if there is none.
value() {
  printf %s "$document" | python3 -c '
import json, sys
at = json.load(sys.stdin)
for key in sys.argv[1:]:
    at = (at or {}).get(key)
print("" if at is None else at)' "$@"
}

http=$(value proxy http) https=$(value proxy https) none=$(value proxy no_proxy)
if [ -n "$http$https" ]; then
  export http_proxy="$http" https_proxy="$https" no_proxy="$none" HTTP_PROXY="$http" HTTPS_PROXY="$https" NO_PROXY="$none"
fi
for program in kubeadm kubectl python3; do
  command -v $program >/dev/null || { echo "$program is not installed on $SITE_HOST" >&2; exit 1; }
done
admin_config=/etc/kubernetes/admin.conf
kube() { kubectl --kubeconfig $admin_config "$@"; }

case $SITE_ACTION in
  build) ;;
  shrink)
    leaving=$(printf %s "$document" | python3 -c '
import json, sys
for host in json.load(sys.stdin)["hosts"]:
    if host["state"] == "leaving":
        print(host["name"])')
    for name in $leaving; do
      ready=$(kube get node "$name" --ignore-not-found -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')
      if [ "$ready" = True ]; then # the pods of another node would never end
        echo "draining $name" >&2
        kube drain "$name" --ignore-daemonsets --delete-emptydir-data --force --timeout 300s >&2
      fi
      echo "deleting the node $name" >&2
      kube delete node "$name" --ignore-not-found >&2
    done
    exit 0 ;;
  *) echo "unknown SITE_ACTION $SITE_ACTION: this script does build and shrink" >&2; exit 2 ;;
esac

server=$(value join server)
if [ -n "$server" ]; then # another host has made the cluster
  kubelet_config=/etc/kubernetes/kubelet.conf
  if [ -e $kubelet_config ]; then
    node=$(kubectl --kubeconfig $kubelet_config get node "$SITE_HOST" --ignore-not-found -o name)
    if [ -n "$node" ]; then
      echo "$SITE_HOST has joined already" >&2
      exit 0
    fi
    echo "resetting $SITE_HOST: its node was deleted" >&2
    kubeadm reset --force >&2
  fi
  set -- "$server" --node-name "$SITE_HOST" --token "$(value join token)" --discovery-token-ca-cert-hash "$(value join hash)"
  if [ "$SITE_ROLE" = control_plane ]; then
    set -- "$@" --control-plane --certificate-key "$(value join key)"
  fi
  echo "joining the cluster as $SITE_ROLE" >&2
  kubeadm join "$@" >&2
  exit 0
fi

address=$(printf %s "$document" | python3 -c '
import json, sys
d = json.load(sys.stdin)
print(next(h["address"] for h in d["hosts"] if h["name"] == d["host"]))')
if ! kube get --raw /readyz >/dev/null 2>&1; then
  set -- --node-name "$SITE_HOST" --control-plane-endpoint "$address:6443"
  pods=$(value parameters pod_cidr) services=$(value parameters cluster_cidr)
  if [ -n "$pods" ]; then set -- "$@" --pod-network-cidr "$pods"; fi
  if [ -n "$services" ]; then set -- "$@" --service-cidr "$services"; fi
  echo "making the control plane" >&2
  kubeadm init "$@" >&2
fi
if [ -n "$cni" ]; then kube apply -f "$cni" >&2; fi

# The account of the cloud region. It may create the kinds of objects that VNFs consist of.
rules='
- {apiGroups: [""], resources: [namespaces, pods, pods/log, pods/status, pods/eviction, services, endpoints, configmaps, secrets, serviceaccounts, persistentvolumeclaims,
                                replicationcontrollers, events, resourcequotas, limitranges, podtemplates], verbs: ["*"]}
- {apiGroups: [""], resources: [nodes, persistentvolumes], verbs: [get, list, watch]}
- {apiGroups: [apps, batch, autoscaling, policy, networking.k8s.io, discovery.k8s.io, events.k8s.io, coordination.k8s.io, k8s.cni.cncf.io], resources: ["*"], verbs: ["*"]}
- {apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings], verbs: [get, list, watch, create, update, patch, delete]}
- {apiGroups: ["*"], resources: ["*"], verbs: [list]}
- {nonResourceURLs: ["*"], verbs: [get]}'
if [ -n "$admin" ]; then rules='
- {apiGroups: ["*"], resources: ["*"], verbs: ["*"]}
- {nonResourceURLs: ["*"], verbs: ["*"]}'; fi
kube apply -f - >&2 <<YAML
{apiVersion: v1, kind: Namespace, metadata: {name: k8splugin-region}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: k8splugin, namespace: k8splugin-region}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "k8splugin:region"}
rules:$rules
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "k8splugin:region"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "k8splugin:region"}
subjects: [{kind: ServiceAccount, name: k8splugin, namespace: k8splugin-region}]
YAML

echo "making the credentials" >&2
token=$(kube -n k8splugin-region create token k8splugin --duration 87600h)
config=$(kube config view --raw --minify --flatten -o json)
join=$(kubeadm token create --ttl 2h --print-join-command)
key=$(kubeadm init phase upload-certs --upload-certs | tail -n 1)
# Secrets go through pipes and the environment of one process, not through arguments.
CONFIG=$config TOKEN=$token JOIN=$join KEY=$key python3 -c '
import json, os
cluster = json.loads(os.environ["CONFIG"])["clusters"][0]["cluster"]
words = os.environ["JOIN"].split()
def after(option):
    return words[words.index(option) + 1]
print(json.dumps({
    "server": cluster["server"], "ca": cluster.get("certificate-authority-data", ""), "token": os.environ["TOKEN"],
    "join": {"server": words[2], "token": after("--token"), "hash": after("--discovery-token-ca-cert-hash"), "key": os.environ["KEY"]},
}))'
