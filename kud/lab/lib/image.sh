# shellcheck shell=bash disable=SC2154 # lab sets what all parts share
# The image of a host: one root file system for both backends, cached by what it was made of. Who a host is comes
# with its seed (host.sh), so the image holds no key, no name and no address.

# The hosts have the controller's own Debian release, as Ansible and the Python that it meets must fit.
suite() {
  local own
  own=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  case ${LAB_SUITE:-$own} in
  bookworm | trixie) echo "${LAB_SUITE:-$own}" ;;
  *) [[ -z ${LAB_SUITE:-} ]] || die "LAB_SUITE is bookworm or trixie, not $LAB_SUITE"; echo trixie ;;
  esac
}

mirror() { # this machine's own Debian archive, whatever it is
  local uri
  # shellcheck disable=SC2016 # apt fills it in
  uri=$(apt-get indextargets --format '$(REPO_URI)' | grep -E '/debian/?$' | head -n 1)
  echo "${uri:-http://deb.debian.org/debian/}"
}

bare=systemd,systemd-sysv,dbus,libpam-systemd,udev,kmod,openssh-server,python3,python3-apt,iproute2,iputils-ping,ca-certificates,procps,iptables,nftables,ethtool,conntrack,socat,sudo,tar

image_key() {
  local version=""
  [[ $backend != uml ]] || version=$(kernel_version)
  { cat "$here/lib/image.sh"; echo "$(suite) $packages $version"; } | sha256sum | cut -c 1-12
}

image_dir() { echo "$cache/$(suite)-$backend-$(image_key)"; }

# image makes $(image_dir)/root and, for UML, $(image_dir)/disk.
image() {
  local dir start=$SECONDS
  [[ $backend != uml ]] || kernel_make
  dir=$(image_dir)
  [[ ! -e $dir/done ]] || return 0
  mkdir -p "$cache"
  exec 9>"$cache/lock"
  flock 9
  if [[ ! -e $dir/done ]]; then
    say "making the image $(basename "$dir")"
    rm -rf --one-file-system "$dir"
    mkdir -p "$dir"
    mmdebstrap --quiet --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Check-Date "false"' \
      --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
      --include="$bare${packages:+,${packages// /,}}" "$(suite)" "$dir/root.tar" "deb $(mirror) $(suite) main" >&2
    mkdir "$dir/root"
    tar -xpf "$dir/root.tar" -C "$dir/root" --exclude './dev/*'
    rm "$dir/root.tar"
    image_settings "$dir/root"
    if [[ $backend == uml ]]; then
      mkdir -p "$dir/root/usr/lib/modules"
      cp -a "$(kernel_dir)/usr/lib/uml/modules/." "$dir/root/usr/lib/modules/"
      truncate -s 16G "$dir/disk"
      mke2fs -q -F -t ext4 -E lazy_itable_init=1,lazy_journal_init=1 -d "$dir/root" "$dir/disk"
      rm -rf --one-file-system "$dir/root"
    fi
    touch "$dir/done"
    say "made it in $((SECONDS - start)) s ($(du -sh "$dir" | cut -f 1))"
  fi
  exec 9>&-
}

image_settings() {
  local r=$1
  : >"$r/etc/machine-id"
  rm -rf "$r/etc/hostname" "$r/etc/apt/sources.list.d/"* "$r/var/lib/apt/lists/"* "$r/etc/ssh/ssh_host_"*
  touch -d @0 "$r/var/lib/apt/lists" # as old as what is in it: nothing
  echo "deb http://deb.debian.org/debian $(suite) main" >"$r/etc/apt/sources.list"
  cat >"$r/etc/apt/apt.conf.d/99lab" <<APT
Acquire::Check-Valid-Until "false";
Acquire::Check-Date "false";
Acquire::Languages "none";
APT
  echo '# The lab has no name server.' >"$r/etc/resolv.conf"
  printf 'UseDNS no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n' >"$r/etc/ssh/sshd_config.d/lab.conf"
  cat >"$r/etc/systemd/system/lab-seed.service" <<'UNIT'
[Unit]
Description=Who this host is: names, addresses and keys, from its second disk
DefaultDependencies=no
ConditionPathExists=/dev/ubdb
ConditionPathExists=!/etc/lab-seeded
After=local-fs.target
Before=sysinit.target ssh.service systemd-networkd.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/tar -xpf /dev/ubdb -C / --no-same-owner
ExecStart=/bin/touch /etc/lab-seeded
[Install]
WantedBy=sysinit.target
UNIT
  cat >"$r/etc/systemd/system/lab-cpuinfo.service" <<'UNIT'
[Unit]
Description=A clock rate in /proc/cpuinfo, which the kubelet insists on and a UML kernel does not tell
ConditionPathExists=/dev/ubdb
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c "sed 's/^bogomips/cpu MHz\\t\\t: 2000.000\\nbogomips/' /proc/cpuinfo >/run/cpuinfo && mount --bind /run/cpuinfo /proc/cpuinfo"
[Install]
WantedBy=multi-user.target
UNIT
  systemctl --root="$r" -q enable systemd-networkd ssh lab-seed lab-cpuinfo
  systemctl --root="$r" -q disable systemd-networkd-wait-online e2scrub_all.timer fstrim.timer dpkg-db-backup.timer 2>/dev/null || true
  systemctl --root="$r" -q mask apt-daily.timer apt-daily-upgrade.timer getty@tty1.service console-getty.service getty.target systemd-pstore.service
}
