# shellcheck shell=bash disable=SC2154 # lab sets what all parts share
# The kernel of a UML host, in a folder that it is run in by chroot: the program, the libraries that it is linked with,
# its modules. Two can be had: `debian`, Debian's own package, is there in seconds, and carries neither Services nor OVN
# (it has no nftables for IPv4 and no conntrack zones); `lab`, built here from Debian's kernel source with kernel.config and
# kernel.patch, has what they need, loses no interrupt and does not panic. Both are sid's: kernels before 6.16 panic on processors with large register files.

kernel_dir() {
  case $kernel in
  lab) echo "$cache/kernel-lab-$(grep -v '^#' "$here/kernel.config" | cat - "$here/kernel.patch" | sha256sum | cut -c 1-12)" ;;
  debian) echo "$cache/kernel-debian" ;;
  esac
}

kernel_version() { basename "$(echo "$(kernel_dir)"/usr/lib/uml/modules/*)"; }

# kernel_make makes $(kernel_dir) when it is missing.
kernel_make() {
  local dir start=$SECONDS
  dir=$(kernel_dir)
  [[ ! -e $dir/done ]] || return 0
  [[ $(uname -m) == x86_64 ]] || die "UML kernels run on x86_64 only; use LAB_BACKEND=nspawn"
  mkdir -p "$cache"
  exec 8>"$cache/kernel-lock"
  flock 8
  if [[ ! -e $dir/done ]]; then
    rm -rf --one-file-system "$dir"
    mkdir -p "$dir"/{proc,dev,tmp,lab,usr/bin,usr/lib/uml/modules}
    "kernel_$kernel" "$dir"
    [[ -e $dir/lib64 ]] || ln -s usr/lib64 "$dir/lib64"
    [[ -e $dir/lib ]] || ln -s usr/lib "$dir/lib"
    [[ $(printf '%s\n' 6.16 "$(kernel_version)" | sort -V | head -n 1) == 6.16 ]] ||
      die "the UML kernel is $(kernel_version); the lab needs 6.16 or newer; use LAB_BACKEND=nspawn"
    touch "$dir/done"
    say "the kernel $(kernel_version) is there after $((SECONDS - start)) s"
  fi
  exec 8>&-
}

kernel_debian() {
  local dir=$1 work
  say "fetching Debian's UML kernel"
  work=$(mktemp -d)
  foreign "$work" download user-mode-linux/sid libc6/trixie libgcc-s1/trixie
  for f in "$work"/*.deb; do dpkg-deb -x "$f" "$dir"; done
  rm -rf "$work" "${dir:?}/usr/share"
}

kernel_lab() {
  local dir=$1 work source library
  say "building the hosts' kernel, once: some 16 CPU-minutes, 4 GiB of disk meanwhile (LAB_KERNEL=debian needs neither)"
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 install -y --no-install-recommends \
    make gcc libc6-dev bc bison flex libelf-dev xz-utils kmod patch >&2
  work=$cache/kernel-build
  rm -rf --one-file-system "$work"
  mkdir -p "$work"
  foreign "$work" update
  source=$(APT_CONFIG=$work/apt.conf apt-cache pkgnames linux-source- | grep -E '^linux-source-[0-9]+\.[0-9]+$' | sort -V | tail -n 1)
  foreign "$work" download "$source/sid"
  dpkg-deb --fsys-tarfile "$work/${source}"_*.deb | tar -xO "./usr/src/$source.tar.xz" | tar -xJ -C "$work"
  (
    cd "$work/$source" || exit
    patch -s -p1 <"$here/kernel.patch"
    make ARCH=um -s x86_64_defconfig
    ./scripts/kconfig/merge_config.sh -m -O . .config "$here/kernel.config" >/dev/null
    make ARCH=um -s olddefconfig
    nice -n 19 make ARCH=um -s -j"$(nproc)" linux modules
    make ARCH=um -s modules_install INSTALL_MOD_PATH="$work/out" INSTALL_MOD_STRIP=1
    strip -o "$dir/usr/bin/linux.uml" linux
  ) >&2
  cp -a "$work"/out/lib/modules/* "$dir/usr/lib/uml/modules/"
  rm -f "$dir"/usr/lib/uml/modules/*/{build,source}
  kernel_libraries "$dir"
  rm -rf --one-file-system "$work"
}

# kernel_libraries copies what the kernel is linked with, and libgcc_s, without which its threads cannot be ended.
kernel_libraries() {
  local dir=$1 library
  for library in $(ldd "$dir/usr/bin/linux.uml" | grep -oE '/[^ ]+') "$(gcc -print-file-name=libgcc_s.so.1)"; do
    library=$(readlink -e "$library" >/dev/null && echo "$library")
    case $library in
    */ld-linux*) install -D "$library" "$dir/usr/lib64/$(basename "$library")" ;;
    *) install -D "$library" "$dir/usr/lib/x86_64-linux-gnu/$(basename "$library")" ;;
    esac
  done
}

# foreign asks apt for what is of sid or trixie, and leaves this machine's own lists alone.
foreign() {
  local work=$1 s
  shift
  if [[ ! -e $work/apt.conf ]]; then
    mkdir -p "$work/state/lists/partial" "$work/cache"
    for s in sid trixie; do echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) $s main"; done >"$work/sources.list"
    cat >"$work/apt.conf" <<APT
Dir::State "$work/state"; Dir::Cache "$work/cache"; Dir::Etc::sourcelist "$work/sources.list"; Dir::Etc::sourceparts "/dev/null";
Dir::State::status "/var/lib/dpkg/status"; Acquire::Check-Valid-Until "false"; Acquire::Check-Date "false"; Acquire::Languages "none";
APT::Sandbox::User "root";
APT
    (cd "$work" && APT_CONFIG=$work/apt.conf apt-get -qq update) >&2
  fi
  [[ $1 == update ]] || (cd "$work" && APT_CONFIG=$work/apt.conf apt-get -qq "$@") >&2
}
