# shellcheck shell=bash disable=SC2154 # lab sets what all parts share
# One host: its disk, its seed (who it is), its process.

# keys makes the key that Ansible comes with, one for each host, and what ssh needs to know them.
keys() {
  local i h
  : >"$state/hosts"
  : >"$state/known_hosts"
  ssh-keygen -q -t ed25519 -N '' -C lab -f "$state/id_ed25519"
  for ((i = 1; i <= $1; i++)); do
    h=n$i
    mkdir -p "$state/$h/seed/etc/ssh"
    ssh-keygen -q -t ed25519 -N '' -C "$h" -f "$state/$h/seed/etc/ssh/ssh_host_ed25519_key"
    echo "$(address "$h") $(cut -d ' ' -f 1,2 "$state/$h/seed/etc/ssh/ssh_host_ed25519_key.pub")" >>"$state/known_hosts"
    echo "$h" >>"$state/hosts"
  done
  {
    while read -r h; do printf 'Host %s\n  HostName %s\n' "$h" "$(address "$h")"; done <"$state/hosts"
    printf 'Host *\n  User root\n  IdentityFile %s\n  IdentitiesOnly yes\n  UserKnownHostsFile %s\n  StrictHostKeyChecking yes\n  ConnectTimeout 5\n' \
      "$state/id_ed25519" "$state/known_hosts"
  } >"$state/ssh_config"
}

# host_limits lets one process of this machine have as many mappings as a process of a UML host has pages, each of which is one. Where
# they run out, the host's process asks for the next page for ever. It stays so until this machine boots; `down` cannot know who else needs it.
host_limits() {
  local file=/proc/sys/vm/max_map_count wanted=1048576
  (($(<"$file") >= wanted)) || echo "$wanted" >"$file" || say "cannot write $file: a process with more than $(($(<"$file") * 4 / 1024)) MiB stands still on the hosts"
}

host_make() {
  local h=$1 d=$state/$1 dir
  dir=$(image_dir)
  echo "$backend" >"$d/backend"
  echo "$dir" >"$d/image"
  [[ $backend != uml ]] || kernel_dir >"$d/kernel"
  seed "$h"
  if [[ $backend == nspawn ]]; then
    cp -a --reflink=auto "$dir/root" "$d/root"
    tar -xpf "$d/seed.tar" -C "$d/root" --no-same-owner
  fi
}

# seed writes what makes this host differ from the others, as the archive that it unpacks over its root when it first boots.
seed() {
  local h=$1 d=$state/$1/seed other i
  install -d -m 700 "$d/root" "$d/root/.ssh"
  install -m 600 "$state/id_ed25519.pub" "$d/root/.ssh/authorized_keys"
  install -d "$d/etc/apt/apt.conf.d" "$d/etc/systemd/network"
  echo "$h" >"$d/etc/hostname"
  # Nobody answers there, and says so at once. Without any name server a CoreDNS that inherits the file does not start.
  echo "nameserver $gateway" >"$d/etc/resolv.conf"
  echo "Acquire::http::Proxy \"http://$uplink_ip:$proxy_port\";" >"$d/etc/apt/apt.conf.d/98proxy"
  {
    printf '127.0.0.1 localhost\n::1 localhost ip6-localhost\n'
    while read -r other; do echo "$(address "$other") $other"; done <"$state/hosts"
  } >"$d/etc/hosts"
  for i in 0 1; do
    {
      printf '[Match]\nName=vec%s host%s\n[Network]\nLinkLocalAddressing=no\nIPv6AcceptRA=no\n' $i $i
      ((i == 1)) || printf 'Address=%s/24\nGateway=%s\n' "$(address "$h")" "$gateway"
    } >"$d/etc/systemd/network/10-lab$i.network"
  done
  tar -C "$d" --owner=0 --group=0 -cf "$state/$h/seed.tar" .
}

# host_start runs a host in a process namespace of its own, so that nothing of it outlives its first process.
host_start() {
  local h=$1 d=$state/$1
  [[ $(host_state "$h") != running ]] || die "$h is running"
  case $(<"$d/backend") in
  uml)
    links "$h"
    set -- uml_run "$h"
    ;;
  nspawn) set -- nspawn_run "$h" ;;
  esac
  declare -fp uml_run nspawn_run mac >"$d/run"
  declare -p state subnet memory cpus >>"$d/run"
  printf '%s %s\n' "$1" "$2" >>"$d/run"
  setsid nsenter --net="/run/netns/$name" unshare --mount --propagation private --pid --fork --kill-child=KILL --mount-proc \
    bash -euo pipefail "$d/run" </dev/null >>"$d/console.log" 2>&1 9>&- &
  echo $! >"$d/pid"
}

uml_run() {
  local h=$1 d=$state/$1 k i nics=()
  k=$(<"$d/kernel")
  mount --rbind /dev "$k/dev"
  mount -t proc proc "$k/proc"
  mount --bind "$(dirname "$(<"$d/image")")" "$k/lab"
  mount -t tmpfs -o size=64M tmpfs "$k/tmp"
  mkdir -p "$k/tmp/uml" "$k/tmp/host"
  mount --bind "$d" "$k/tmp/host"
  for i in 0 1; do
    nics+=("vec$i:transport=raw,ifname=$h-e$i,depth=64,gro=1,mac=$(mac "$h" "$i")")
  done
  ulimit -c 0
  # The first process of its namespace, as which a kernel that panics could not end itself, and would go round for ever, is this shell.
  chroot "$k" /usr/bin/linux.uml mem="$memory" ncpus="$cpus" umid="$h" uml_dir=/tmp/uml seccomp=on \
    ubd0="/tmp/host/disk,/lab/$(basename "$(<"$d/image")")/disk" ubd1r=/tmp/host/seed.tar root=/dev/ubda rw \
    "${nics[@]}" con=null con0=null,fd:1 lsm=yama systemd.hostname="$h"
}

nspawn_run() {
  local h=$1 d=$state/$1 i end bridges=(site provider)
  mkdir -p /run/systemd
  mount -t tmpfs -o mode=755 tmpfs /run/systemd # where it would leave locks, and where it would find this machine's systemd
  export SYSTEMD_NSPAWN_API_VFS_WRITABLE=1 SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1
  while :; do # it makes its links itself, as it takes no others where udev does not run
    for i in 0 1; do
      { until ip link set "$h-$i" master "${bridges[i]}" up; do sleep 0.1; done; } 2>/dev/null &
    done
    end=0
    systemd-nspawn --register=no --keep-unit --quiet --machine="$h" --directory="$d/root" --capability=all --system-call-filter=@known \
      --network-veth-extra="$h-0:host0" --network-veth-extra="$h-1:host1" --resolv-conf=off --timezone=off --link-journal=no \
      --setenv=SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1 --boot SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1 || end=$?
    ((end == 133)) || exit "$end" # 133: it reboots
  done
}

host_state() {
  local pid
  pid=$(cat "$state/$1/pid" 2>/dev/null) || { echo stopped; return; }
  if grep -qz -- "$state/$1/run" "/proc/$pid/cmdline" 2>/dev/null; then echo running; else echo stopped; fi
}

host_kill() {
  local pid
  [[ $(host_state "$1") == running ]] || die "$1 is not running"
  pid=$(<"$state/$1/pid")
  kill -KILL "$pid"
  while [[ $(host_state "$1") == running ]]; do sleep 0.1; done
  ip -n "$name" link del "$(link_of "$1" 0)" 2>/dev/null || true
  ip -n "$name" link del "$(link_of "$1" 1)" 2>/dev/null || true
}

host_ssh() { ssh -F "$state/ssh_config" -o BatchMode=yes -o LogLevel=ERROR "$@"; }

host_wait() {
  local h=$1 end=$((SECONDS + patience))
  until host_ssh -o ConnectTimeout=2 "$h" true 2>/dev/null; do
    [[ $(host_state "$h") == running ]] || { tail -n 5 "$state/$h/console.log" >&2; die "$h stopped while it started; if this machine cannot run UML kernels: LAB_BACKEND=nspawn"; }
    ((SECONDS < end)) || { tail -n 5 "$state/$h/console.log" >&2; die "$h does not answer after $patience s"; }
    sleep 0.3
  done
}

host_reboot() {
  local h=$1 before end=$((SECONDS + patience))
  before=$(host_ssh "$h" cat /proc/sys/kernel/random/boot_id /proc/1/stat | md5sum)
  host_ssh "$h" systemctl reboot 2>/dev/null || true
  until [[ $(host_ssh -o ConnectTimeout=2 "$h" cat /proc/sys/kernel/random/boot_id /proc/1/stat 2>/dev/null | md5sum) != "$before" ]] && host_ssh -o ConnectTimeout=2 "$h" true 2>/dev/null; do
    ((SECONDS < end)) || die "$h does not answer $patience s after its reboot"
    sleep 0.5
  done
}
