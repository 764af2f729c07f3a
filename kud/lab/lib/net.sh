# shellcheck shell=bash disable=SC2154 # lab sets what all parts share
# The lab's network: a namespace that holds two bridges (site, and a bare one for provider networks), the hosts and
# their links. Its only way out is one link to this machine, where a proxy for Debian's archive listens; nothing
# forwards beyond it. This machine reaches the hosts by that link too.

gateway=$subnet.0.1
uplink=$name-up # this machine's end
uplink_ip=$subnet.255.1
proxy_port=3142

inns() { nsenter --net="/run/netns/$name" "$@"; }
address() { echo "$subnet.0.$((10 + ${1#n}))"; }
mac() { printf '52:54:00:%02x:%02x:%02x' "${subnet#*.}" "$2" "$((10 + ${1#n}))"; }

network_up() {
  [[ -z $(ip -o route show exact "$subnet.0.0/24") ]] || die "$subnet.0.0/24 is in use on this machine; choose another: LAB_SUBNET=10.90"
  [[ -d /run/netns ]] || touch "$state/first" # then `ip` mounts the folder of namespaces, and down takes it away
  ip netns add "$name"
  ip -n "$name" link set lo up
  ip link add "$uplink" type veth peer name up0 netns "$name"
  ip addr add "$uplink_ip/30" dev "$uplink"
  ip link set "$uplink" up
  ip -n "$name" addr add "$subnet.255.2/30" dev up0
  ip -n "$name" link set up0 up
  ip -n "$name" link add site type bridge
  ip -n "$name" link set site address "$(printf "52:54:00:%02x:ff:01" "${subnet#*.}")" # a bridge without one of its own takes a member's
  ip -n "$name" addr add "$gateway/24" dev site
  ip -n "$name" link set site up
  ip -n "$name" link add provider type bridge
  ip -n "$name" link set provider up
  inns sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
  ip route add "$subnet.0.0/24" via "$subnet.255.2"
  proxy_up
}

# proxy_up lets the hosts have Debian's archive, which comes here once, and nothing else.
proxy_up() {
  local conf=$state/proxy upstream
  mkdir -p "$conf" "$cache/debs"
  eval "$(apt-config shell upstream Acquire::http::Proxy)"
  mirror >"$conf/backends"
  echo http://deb.debian.org/debian >"$conf/mirrors"
  cat >"$conf/acng.conf" <<CONF
CacheDir: $cache/debs
LogDir: $conf
Port: $proxy_port
BindAddress: $uplink_ip
Remap-debian: file:$conf/mirrors /debian ; file:$conf/backends
ForceManaged: 1
ForeGround: 1
ReportPage:
PidFile: $conf/acng.pid
${upstream:+Proxy: $upstream}
CONF
  setsid nice -n 5 apt-cacher-ng -c "$conf" </dev/null >"$conf/out" 2>&1 9>&- &
  echo $! >"$conf/pid"
}

# network_down ends whatever runs in the lab's namespace (all of it is the lab's), the proxy, and every link.
network_down() {
  local pid
  if [[ -e $state/proxy/pid ]]; then
    pid=$(<"$state/proxy/pid")
    if tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$state/proxy"; then kill "$pid" 2>/dev/null || true; fi
  fi
  if [[ -e /run/netns/$name ]]; then
    for _ in {1..100}; do
      pid=$(ip netns pids "$name")
      [[ -n $pid ]] || break
      # shellcheck disable=SC2086 # one word each
      kill -KILL $pid 2>/dev/null || true # some end as their parents do
      sleep 0.1
    done
    [[ -z $(ip netns pids "$name") ]] || die "processes of the lab cannot be ended: $(ip netns pids "$name" | tr '\n' ' ')"
    ip netns del "$name"
    if [[ -e $state/first && -z $(ls -A /run/netns) ]]; then umount /run/netns && rmdir /run/netns; fi
  fi
  ip link del "$uplink" 2>/dev/null || true
}

link_of() { echo "$1-$2"; } # the bridge's end of a host's link: n1-0 to site, n1-1 to provider

link_set() {
  ip -n "$name" link set "$(link_of "$1" 0)" "$2"
  ip -n "$name" link set "$(link_of "$1" 1)" "$2"
}

link_state() { ip -n "$name" -br link show "$(link_of "$1" 0)" 2>/dev/null | awk '{print tolower($2)}'; }

# links makes both links of a host; its own ends are called n1-e0 and n1-e1.
links() {
  local i bridge
  for i in 0 1; do
    bridge=site
    ((i == 0)) || bridge=provider
    ip -n "$name" link show "$(link_of "$1" $i)" >/dev/null 2>&1 || {
      ip -n "$name" link add "$(link_of "$1" $i)" type veth peer name "$1-e$i"
      ip -n "$name" link set "$(link_of "$1" $i)" master "$bridge" up
      inns sh -c "echo 1 >/proc/sys/net/ipv6/conf/$1-e$i/disable_ipv6" 2>/dev/null || true
      ip -n "$name" link set "$1-e$i" up
    }
  done
}
