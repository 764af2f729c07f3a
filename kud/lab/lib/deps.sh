# shellcheck shell=bash disable=SC2154 # lab sets what all parts share
# What this machine must have: Debian packages.

have() {
  local c
  for c in mmdebstrap mke2fs ip nsenter unshare ssh ssh-keygen ansible-playbook ansible-lint yamllint shellcheck apt-cacher-ng systemd-nspawn gcc nft sshpass openssl; do
    command -v "$c" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "$c" >/dev/null || return 1
  done
  [[ -e /usr/include/seccomp.h ]]
}

deps() {
  ! have || return 0
  command -v apt-get >/dev/null || die "the lab is made of Debian packages, and this machine has no apt-get"
  local proxied=no
  ! command -v apt-cacher-ng >/dev/null || proxied=yes
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq -o DPkg::Lock::Timeout=600 update
  apt-get -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 install -y --no-install-recommends mmdebstrap e2fsprogs iproute2 util-linux \
    openssh-client ansible-core ansible-lint yamllint shellcheck apt-cacher-ng systemd-container kmod tar libseccomp-dev gcc libc6-dev nftables openssl sshpass >&2
  # The lab runs a proxy of its own; the one for the whole machine, which the package starts, was not asked for.
  [[ $proxied == yes ]] || proxy_stop >/dev/null 2>&1 || true # where it was not started it cannot be stopped
}

proxy_stop() {
  if [[ -d /run/systemd/system ]]; then systemctl disable --now apt-cacher-ng; else invoke-rc.d apt-cacher-ng stop; fi
}
