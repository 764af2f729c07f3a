# shellcheck shell=bash disable=SC2154 # test and sites set lab and state, and have a kubectl of their own
# What both test programs expect of hosts and of commands. Each function says what it saw, or why it failed.

fail() { echo "FAILED: $*"; return 1; }
say() { printf '%(%H:%M:%S)T %s\n' -1 "$*"; }

# until_ TEXT SECONDS COMMAND... waits until the command succeeds.
until_() {
  local what=$1 end=$((SECONDS + $2)) begin=$SECONDS
  shift 2
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || fail "not within $((SECONDS - begin)) s: $what" || return 1
    sleep 0.5
  done
  say "$what after $((SECONDS - begin)) s"
}

ready() { [[ $(kubectl get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == True ]]; }

# refused TEXT COMMAND... wants the command to fail and to say the text.
refused() {
  local text=$1 out
  shift
  if out=$("$@" 2>&1); then fail "it was not refused: $* : $out" || return 1; fi
  grep -qF -- "$text" <<<"$out" || fail "the refusal does not say '$text': $out" || return 1
  say "refused: $(grep -m 1 -F -- "$text" <<<"$out")"
}

# bare [HOST...] looks at the hosts, at all of them when none is named, for what a site leaves when it is not removed well.
bare() {
  local h left hosts=("$@")
  (($#)) || mapfile -t hosts <"$state/hosts"
  for h in "${hosts[@]}"; do
    left=$("$lab" ssh "$h" 'ls -d /etc/kubernetes /var/lib/kubelet /var/lib/etcd /etc/containerd /var/lib/containerd /etc/cni /opt/cni /usr/local/bin/kube* 2>/dev/null;
      systemctl list-units --no-legend --all "kube*" "etcd*" "containerd*" "flannel*"; ip -br link | grep -E "^(cni|flannel|kube|veth)"; mount | grep -E "kubelet|containerd"; true')
    [[ -z $left ]] || fail "left on $h: $left" || return 1
    say "$h is bare"
  done
}
