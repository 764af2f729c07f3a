# shellcheck shell=bash disable=SC2154 # lab sets what all parts share
# The inventory that the collection reads: groups as in inventory/reference.

inventory() {
  local h
  cat <<HEAD
# Written by the lab; gone with it.
all:
  vars:
    ansible_user: root
    ansible_ssh_private_key_file: $state/id_ed25519
    ansible_ssh_common_args: -o UserKnownHostsFile=$state/known_hosts -o StrictHostKeyChecking=yes -o IdentitiesOnly=yes
    ansible_python_interpreter: /usr/bin/python3
    # What the lab has: artefacts that were built here, of the versions that Go's module proxy gives, and no registry.
    kud_artifacts: $artifacts
    kud_roles: [$add_ons]
    kubernetes_install: $install
    flannel_run: unit
    flannel_version: $(pinned flannel github.com/flannel-io/flannel)
    multus_whereabouts_version: $(pinned whereabouts github.com/k8snetworkplumbingwg/whereabouts)
    # The hosts' clock is this machine's, and no time server can be reached.
    host_time: none
HEAD
  if [[ $install == kubeadm ]]; then
    cat <<KUBEADM
    kubernetes_etcd_image_tag: $(pinned etcd go.etcd.io/etcd/server/v3 | tail -c +2)-0
    # A UML kernel has not the module "configs", which kubeadm reads the kernel's configuration from.
    kubernetes_ignore_preflight: [SystemVerification, NumCPU]
KUBEADM
  fi
  image_folders
  if ((controls > 1)); then
    echo "    kubernetes_vip: $subnet.0.10"
  fi
  if [[ $backend == uml && $kernel == debian ]]; then
    cat <<'LESS'
    # Debian's UML kernel has no address translation: no Services, so nothing that asks the API server from within a pod.
    kubernetes_dns: false
    flannel_nftables: false
    flannel_masquerade: false
    kubernetes_ignore_preflight: [SystemVerification]
LESS
  fi
  add_on_settings
  echo '  hosts:'
  while read -r h; do printf '    %s:\n      ansible_host: %s\n' "$h" "$(address "$h")"; done <"$state/hosts"
  printf '  children:\n    kube_control_plane:\n      hosts:\n'
  head -n "$controls" "$state/hosts" | sed 's/.*/        &:/'
  printf '    kube_node:\n      hosts:\n'
  if (($(wc -l <"$state/hosts") > controls)); then
    tail -n "+$((controls + 1))" "$state/hosts" | sed 's/.*/        &:/'
  else
    sed 's/.*/        &:/' "$state/hosts" # a host alone is both
  fi
}

wanted() { [[ ,${add_ons// /}, == *,$1,* ]]; }

# image_folders names those beyond `images`, which every host imports.
image_folders() {
  local folders=images
  [[ $install != kubeadm ]] || folders+=", images-kubeadm"
  ! wanted istio || folders+=", images-istio"
  echo "    container_runtime_image_folders: [$folders]"
}

# add_on_settings are what the add-ons of LAB_ROLES have to hear of the lab.
add_on_settings() {
  local part
  if wanted sriov; then
    cat <<'SRIOV'
    sriov_emulated: 1
    sriov_devices: [{interface: eni1np1, vfs: 3}]
    sriov_resources: [{resourceName: sriov_net, resourcePrefix: kud.io, selectors: [{drivers: [netdevsim]}]}]
SRIOV
  fi
  if wanted kubevirt; then
    echo "    kubevirt_version: $(pinned kubevirt kubevirt.io/kubevirt)"
    echo "    kubevirt_api_only: true"
  fi
  if wanted istio; then
    openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj "/O=$name/CN=the lab's mesh" -keyout "$state/mesh.key" -out "$state/mesh.pem" 2>/dev/null
    cat <<ISTIO
    istio_version: $(pinned istio istio.io/istio)
    istio_verify_image: localhost/mesh:1
    istio_verify_proxyless: true
    istio_ca:
      key: |
$(sed 's/^/        /' "$state/mesh.key")
ISTIO
    for part in cert root chain; do
      printf '      %s: |\n' "$part"
      sed 's/^/        /' "$state/mesh.pem"
    done
  fi
}

# pinned is the version of a Go module that the artefacts are built from.
pinned() { sed -nE "s#^(require)?[[:space:]]*$2 (v[^ ]+).*#\2#p" "$here/modules/$1/go.mod" | head -n 1; }
