#!/bin/bash
# numa-guest.sh - run one command on a virtual machine that has several NUMA nodes.
#
#   numa-guest.sh [options] -- command [args...]
#
# Boots Debian's stock kernel under qemu-system-x86_64 with N sockets, one NUMA node
# per socket (real ACPI SRAT/SLIT tables, so libnuma, mbind, move_pages, hwloc, oneTBB and
# Open MPI see several nodes with memory and CPUs), runs the command there and exits with its
# status. The command's stdout and stderr are streamed to this script's stdout and stderr.
#
# The guest's root file system is this machine's own, shared through virtio-9p
# (read-only) under a RAM overlay: programs and shared libraries built here run as they
# are, in the same directory, and what they write is dropped, except below --rw DIR.
#
# KVM is used where a hardware one is present (kvm_intel or kvm_amd loaded and /dev/kvm
# writable), else TCG, QEMU's software emulation: correct placement, page migration and
# topology, but no real remote-memory cost; scalar code runs up to 50 times slower, vector
# floating point several hundred times. Under TCG the CPU has AVX2 and FMA but no AVX-512 or
# AMX: a binary built with -march=native on an AVX-512 machine dies there with an illegal
# instruction.
#
# options (sizes are for the whole guest, shared out evenly over the nodes)
#   --nodes N        NUMA nodes with CPUs                             (default 2)
#   --cpus M         virtual CPUs, a multiple of N                    (default 4)
#   --mem-mb X       memory in MiB, shared by all nodes               (default 2048)
#   --sockets S      CPU packages, N a multiple of S                  (default N)
#   --threads T      hardware threads per core                        (default 1)
#   --mem-nodes K    K more nodes that have memory and no CPU         (default 0)
#   --bare-nodes K   the last K of the N nodes have CPUs and no memory (default 0)
#   --dist D         remote distance in the SLIT, local is 10         (default 21)
#   --dist-matrix R  whole matrix: rows by ';', columns by ',', e.g. '10,16;16,10'
#   --hmat           ACPI HMAT too: latency and bandwidth per node pair (hwloc memattrs)
#   --fake F         kernel option numa=fake=F instead of SRAT nodes
#   --rw DIR         DIR is shared writable, at the same path (may be repeated)
#   --env NAME[=V]   pass an environment variable (may be repeated; PATH, HOME, USER, LANG
#                    and LD_LIBRARY_PATH are passed anyway)
#   --count          count the program's local and remote memory accesses (TCG only, some 2-10
#                    times slower; gcc and numa-count.c beside this script); the matrix is
#                    printed on stderr at the end, its last line is the share of remote ones.
#                    Only sections marked with numa/access_section.h count, if there are any.
#   --count-pages K  with --count: list the K pages with most remote accesses, too
#   --max-remote P   with --count: fail (121) when the share is above P percent or no section
#                    was ever entered
#   --modprobe M     load kernel module M first, e.g. sch_netem (may be repeated)
#   --accel A        auto, kvm or tcg                                 (default auto)
#   --cpu MODEL      QEMU CPU model (default host with KVM, max,vendor=GenuineIntel with
#                    TCG: with the AMD vendor string threads show up as cores)
#   --append STR     more kernel options
#   --timeout S      seconds for the command                          (default 600)
#   --boot-timeout S seconds until the guest must be up               (default 300)
#   --console FILE   keep the kernel's console output there
#   --prepare        only fetch and unpack the kernel, then stop
#   --verbose        say what is done, and the boot time
#
# exit status
#   the command's own (128+n if it died of signal n), or
#   121  --max-remote was exceeded, although the command itself ended with 0
#   122  bad options
#   123  the guest died before the command's status was known (kernel panic, QEMU error)
#   124  the command took longer than --timeout
#   125  the guest could not be run at all: a tool or the kernel is missing, or the guest did
#        not come up; stderr says which. CTest counts it as skipped, bad options as failed.
#
# needs (Debian 12): apt-get install qemu-system-x86 busybox-static xz-utils perl-base
# and, for the first run only, apt-get update and access to the Debian mirror: the package
# linux-image-amd64 is downloaded and unpacked into the cache folder, never installed.
#   NUMA_GUEST_CACHE       the cache folder (default ${XDG_CACHE_HOME:-~/.cache}/numa-guest)
#   NUMA_GUEST_KERNEL_DEB  a linux-image-*-amd64 .deb to use instead of a download
# The "cloud" flavour of that kernel will not do: it is built without 9p.

set -u
prog=${0##*/}
usage() { echo "$prog: $*" >&2; exit 122; }
die() {
  echo "$prog: *** NOT RUN: no NUMA guest here, so NOTHING WAS TESTED ***" >&2
  echo "$prog: $*" >&2; exit 125
}
say() { [ "$verbose" = 1 ] && echo "$prog: $*" >&2; return 0; }

nodes=2 cpus=4 mem=2048 sockets= threads=1 memnodes=0 dist=21 matrix= hmat=0 fake=
accel=auto cpu= append= timeout=600 boot_timeout=300 console= prepare=0 verbose=0 count=0 barenodes=0 countpages=0 maxremote=
rw=() envs=() mods=()
need() { [ $# -ge 2 ] || usage "option $1 needs a value"; }
while [ $# -gt 0 ]; do
  case $1 in
    --nodes|--cpus|--mem-mb|--sockets|--threads|--mem-nodes|--bare-nodes|--count-pages|--dist|--fake|--timeout|--boot-timeout)
      need "$@"; case $2 in ''|*[!0-9]*) usage "option $1 needs a number, not '$2'";; esac ;;
  esac
  case $1 in
    --nodes) nodes=$2; shift 2;;          --cpus) cpus=$2; shift 2;;
    --mem-mb) mem=$2; shift 2;;           --sockets) sockets=$2; shift 2;;
    --threads) threads=$2; shift 2;;      --mem-nodes) memnodes=$2; shift 2;;
    --bare-nodes) barenodes=$2; shift 2;;
    --count-pages) countpages=$2; shift 2;;
    --max-remote) need "$@"; maxremote=$2; shift 2;;
    --dist) dist=$2; shift 2;;            --dist-matrix) need "$@"; matrix=$2; shift 2;;
    --hmat) hmat=1; shift;;               --fake) fake=$2; shift 2;;
    --rw) need "$@"; rw+=("$(realpath -e -- "$2" 2>/dev/null)") || usage "--rw: no folder $2"; shift 2;;
    --env) need "$@"; envs+=("$2"); shift 2;;
    --modprobe) need "$@"; mods+=("$2"); shift 2;;
    --accel) need "$@"; accel=$2; shift 2;;
    --cpu) need "$@"; cpu=$2; shift 2;;   --append) need "$@"; append=$2; shift 2;;
    --timeout) timeout=$2; shift 2;;      --boot-timeout) boot_timeout=$2; shift 2;;
    --console) need "$@"; console=$2; shift 2;;
    --count) count=1; shift;;
    --prepare) prepare=1; shift;;         --verbose) verbose=1; shift;;
    -h|--help) sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; exit 0;;
    --) shift; break;;
    -*) usage "unknown option $1 (see --help)";;
    *) break;;
  esac
done
[ $prepare = 1 ] || [ $# -gt 0 ] || usage "no command given (see --help)"
for d in "${rw[@]}"; do [ -d "$d" ] || usage "--rw: not a folder"; done
sockets=${sockets:-$nodes}
[ "$nodes" -ge 1 ] && [ "$cpus" -ge 1 ] && [ "$threads" -ge 1 ] && [ "$sockets" -ge 1 ] ||
  usage "--nodes, --cpus, --sockets and --threads must be at least 1"
[ $((cpus % nodes)) = 0 ] || usage "--cpus $cpus is not a multiple of --nodes $nodes"
[ $((nodes % sockets)) = 0 ] || usage "--nodes $nodes is not a multiple of --sockets $sockets"
[ $((cpus % (sockets * threads))) = 0 ] || usage "--cpus $cpus is not a multiple of sockets x threads"
[ $((cpus / nodes % threads)) = 0 ] || usage "a node would share a core with another one"
all=$((nodes + memnodes)); [ "$barenodes" -lt "$nodes" ] || usage "--bare-nodes $barenodes: fewer than --nodes $nodes"
per=$((mem / (all - barenodes)))
case $maxremote in '') ;; *[!0-9.]*) usage "--max-remote needs a number, not '$maxremote'";; *) [ $count = 1 ] || usage "--max-remote needs --count";; esac
[ $per -ge 128 ] || usage "--mem-mb $mem leaves $per MiB per node, 128 at least are needed"
case $accel in auto|kvm|tcg) ;; *) usage "--accel $accel: auto, kvm or tcg";; esac
if [ -n "$matrix" ]; then
  IFS=';' read -ra rows <<<"$matrix"
  [ ${#rows[@]} = $all ] || usage "--dist-matrix has ${#rows[@]} rows, $all are needed"
  for r in "${rows[@]}"; do
    IFS=, read -ra cols <<<"$r"; [ ${#cols[@]} = $all ] || usage "--dist-matrix: row '$r' has not $all columns"
  done
elif [ "$dist" -le 10 ] || [ "$dist" -gt 254 ]; then usage "--dist $dist: 11 to 254"; fi

qemu=$(command -v qemu-system-x86_64) || die "qemu-system-x86_64 not found: apt-get install qemu-system-x86"
bb=$(command -v busybox) || die "busybox not found: apt-get install busybox-static"
"$bb" --list | grep -qx switch_root && "$bb" --list | grep -qx depmod && ! ldd "$bb" >/dev/null 2>&1 ||
  die "$bb is not the static one: apt-get install busybox-static"
for t in xz perl flock realpath; do command -v $t >/dev/null || die "$t not found"; done

# ---- the kernel: fetched once, unpacked without installing -------------------------------
cache=${NUMA_GUEST_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/numa-guest}
mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || die "cannot write to the cache folder $cache"
exec 9>"$cache/lock"; flock 9
if [ ! -e "$cache/kernel/ok" ]; then
  tmp=$(mktemp -d "$cache/new.XXXXXX") || die "mktemp failed"
  fail() { rm -rf "$tmp"; die "$@"; }
  deb=${NUMA_GUEST_KERNEL_DEB:-}
  if [ -z "$deb" ]; then
    command -v apt-get >/dev/null || fail "no apt-get here; set NUMA_GUEST_KERNEL_DEB"
    pkg=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: *\(linux-image-[0-9].*\)/\1/p' | head -1)
    [ -n "$pkg" ] || fail "the package linux-image-amd64 is not known here: run apt-get update"
    say "downloading $pkg"
    (cd "$tmp" && apt-get -qq -o APT::Sandbox::User=root download "$pkg") >"$tmp/log" 2>&1 ||
      fail "cannot download $pkg: $(tail -1 "$tmp/log")"
    deb=$(echo "$tmp"/linux-image-*.deb)
  fi
  # all modules except most of the drivers (drivers are 3/4 of the package)
  dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$tmp" --wildcards './boot/vmlinuz*' './lib/modules/*' \
      --exclude='./lib/modules/*/kernel/drivers/[!bcdnv]*' --exclude='*/kernel/sound/*' \
      --exclude='./lib/modules/*/kernel/drivers/net/*/*' 2>"$tmp/log" ||
    fail "cannot unpack $deb: $(tail -1 "$tmp/log")"
  kver=$(ls "$tmp/lib/modules"); mod=$tmp/lib/modules/$kver
  [ -e "$mod/kernel/fs/9p/9p.ko" ] || fail "kernel $kver has no 9p module"
  "$bb" depmod -b "$tmp" "$kver" || fail "depmod failed"
  # an uncompressed kernel starts through PVH, which spares TCG ten seconds of unpacking
  img=$(echo "$tmp"/boot/vmlinuz*)
  off=$(LC_ALL=C grep -aobP '\xFD7zXZ\x00' "$img" | head -1 | cut -d: -f1)
  if [ -n "$off" ] && tail -c +$((off + 1)) "$img" | xz -dc 2>/dev/null >"$tmp/vmlinux"
     head -c 4 "$tmp/vmlinux" 2>/dev/null | grep -q ELF; then :; else cp "$img" "$tmp/vmlinux"; fi
  mkdir "$tmp/kernel" && mv "$tmp/vmlinux" "$mod" "$tmp/kernel/" && mv "$tmp/kernel/$kver" "$tmp/kernel/modules"
  echo "$kver" >"$tmp/kernel/ok"
  rm -rf "$cache/kernel"; mv "$tmp/kernel" "$cache/kernel" || fail "cannot write $cache/kernel"
  rm -rf "$tmp"
fi
flock -u 9; exec 9>&-
kver=$(cat "$cache/kernel/ok"); moddir=$cache/kernel/modules
[ $prepare = 1 ] && { echo "$prog: kernel $kver ready"; exit 0; }

# ---- scratch folder; everything that is started is ended, whatever happens ----------------
dir=$(mktemp -d "${TMPDIR:-/tmp}/numa-guest.XXXXXX") || die "mktemp failed"
qpid= cats=()
cleanup() {
  trap '' INT TERM HUP
  [ -n "$qpid" ] && { kill -9 "$qpid"; wait "$qpid"; } 2>/dev/null
  [ ${#cats[@]} -gt 0 ] && kill "${cats[@]}" 2>/dev/null
  rm -rf "$dir"
}
trap cleanup EXIT; trap 'exit 130' INT; trap 'exit 143' TERM HUP

# ---- initramfs: busybox, the modules for the root file system, and the command -----------
root=$dir/root; mkdir -p "$root"/{bin,dev,proc,sys,mod,host,rw,new,job}
cp "$bb" "$root/bin/busybox"; ln -s busybox "$root/bin/sh"
list=$(awk -v want="virtio_pci virtio_console 9pnet_virtio 9p overlay" '
  { name=$1; sub(/:$/,"",name); base=name; sub(/.*\//,"",base); sub(/\.ko.*$/,"",base); gsub(/-/,"_",base)
    path[base]=name; deps[name]=""; for(i=2;i<=NF;i++) deps[name]=deps[name] " " $i }
  function add(n,  a,k,i){ if(n in done) return; done[n]=1
    k=split(deps[n],a," "); for(i=k;i>=1;i--) add(a[i]); print n }
  END { k=split(want,w," "); for(j=1;j<=k;j++) if(w[j] in path) add(path[w[j]]); else print "MISSING:" w[j] }
' "$moddir/modules.dep")
case $list in *MISSING:*) die "kernel $kver lacks a module: $list";; esac
n=0
for m in $list; do cp "$moddir/$m" "$root/mod/$(printf %02d $n)-${m##*/}"; n=$((n + 1)); done

{ echo '#!/bin/bash'
  for v in PATH HOME USER LANG LC_ALL LD_LIBRARY_PATH; do
    [ -n "${!v+x}" ] && printf 'export %s=%q\n' "$v" "${!v}"; done
  echo 'export NUMA_GUEST=1 TERM=dumb'
  for e in "${envs[@]}"; do
    case $e in *=*) printf 'export %s=%q\n' "${e%%=*}" "${e#*=}";;
      *) [ -n "${!e+x}" ] && printf 'export %s=%q\n' "$e" "${!e}";; esac
  done
  printf 'cd %q || exit 126\nexec' "$PWD"; printf ' %q' "$@"; echo
} >"$root/job/cmd"
printf '%s\n' "${mods[@]}" >"$root/job/modules"
i=0; : >"$root/job/rw"
for d in "${rw[@]}"; do echo "rw$i $d" >>"$root/job/rw"; i=$((i + 1)); done

cat >"$root/init" <<'INIT'
#!/bin/sh
export PATH=/bin
b=/bin/busybox
$b mount -t proc proc /proc; $b mount -t sysfs sysfs /sys; $b mount -t devtmpfs dev /dev
for m in /mod/*; do $b insmod $m || echo "insmod $m failed"; done
o=trans=virtio,version=9p2000.L,msize=512000,access=any
die() { echo "guest: $*"; echo "fail $*" >/dev/ttyS1; $b sleep 0.3; $b poweroff -f; $b sleep 9; }
$b mount -t 9p -o ro,cache=loose,$o host /host || die "cannot mount the host's files"
$b mount -t tmpfs -o size=50%,mpol=interleave rw /rw || $b mount -t tmpfs -o size=50% rw /rw
$b mkdir /rw/u /rw/w
$b mount -t overlay -o lowerdir=/host,upperdir=/rw/u,workdir=/rw/w root /new || die "cannot mount the overlay"
for d in proc sys dev run tmp; do [ -d /new/$d ] || $b mkdir -p /new/$d; done
$b mount -o move /proc /new/proc; $b mount -o move /sys /new/sys; $b mount -o move /dev /new/dev
$b mkdir -p /new/dev/pts /new/dev/shm
$b mount -t devpts devpts /new/dev/pts; $b mount -t tmpfs shm /new/dev/shm; $b mount -t tmpfs run /new/run
$b ln -sf /proc/self/fd /new/dev/fd; $b ln -sf fd/0 /new/dev/stdin; $b ln -sf fd/1 /new/dev/stdout; $b ln -sf fd/2 /new/dev/stderr
$b mount -t cgroup2 cgroup2 /new/sys/fs/cgroup 2>/dev/null
$b mount -t debugfs debugfs /new/sys/kernel/debug 2>/dev/null
k=$($b uname -r); $b mkdir -p /new/lib/modules/$k
$b mount -t 9p -o ro,cache=loose,$o modules /new/lib/modules/$k
while read -r t d; do [ -n "$t" ] || continue
  $b mkdir -p "$d" "/new$d"; $b mount -t 9p -o cache=mmap,$o $t "/new$d" || die "cannot mount $d"; done </job/rw
$b ip link set lo up; $b hostname numa-guest
$b mkdir -p /new/run/numa-guest /new/run/lock; $b cp /bin/busybox /job/cmd /job/run.pl /new/run/numa-guest/
while read -r m; do [ -n "$m" ] || continue
  $b chroot /new /run/numa-guest/busybox modprobe $m || die "cannot load module $m"; done </job/modules
exec $b switch_root /new /usr/bin/perl /run/numa-guest/run.pl
INIT
# Process 1: runs the command, waits until the host has taken all output, reports the status.
cat >"$root/job/run.pl" <<'PERL'
use strict; use POSIX ();
sub byname { my $n = shift; for my $p (glob "/sys/class/virtio-ports/*") {
  open my $f, "<", "$p/name" or next; my $l = <$f>; chomp $l; return "/dev/" . ($p =~ s{.*/}{}r) if $l eq $n } }
open my $out, ">", byname("guest.out") or die; open my $err, ">", byname("guest.err") or die;
open my $st, ">", "/dev/ttyS1" or die;
$| = 1; select $st; $| = 1;
print $st "up\n";
my $pid = fork;
if (!$pid) {
  POSIX::setsid(); open STDIN, "<", "/dev/null";
  open STDOUT, ">&", $out; open STDERR, ">&", $err; close $out; close $err; close $st;
  $ENV{PATH} ||= "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  exec "/bin/bash", "/run/numa-guest/cmd"; POSIX::_exit(127);
}
my $rc = 255;
while ((my $p = wait) > 0) { if ($p == $pid) { $rc = $? & 127 ? 128 + ($? & 127) : $? >> 8; last } }
for my $h ($out, $err) { my $v = ""; vec($v, fileno($h), 1) = 1; select undef, $v, undef, 20 }
print $st "rc $rc\n"; POSIX::tcdrain(fileno $st);
open my $s, ">", "/proc/sysrq-trigger"; syswrite $s, "o"; sleep 30;
PERL
chmod +x "$root/init"
(cd "$root" && find . | "$bb" cpio -o -H newc 2>/dev/null) >"$dir/initrd" || die "cannot pack the initramfs"
rm -rf "$root"

# ---- QEMU's command line ------------------------------------------------------------------
args=(-nodefaults -no-user-config -display none -no-reboot -m "$((per * (all - barenodes)))"
  -smp "$cpus,sockets=$sockets,cores=$((cpus / sockets / threads)),threads=$threads"
  -kernel "$cache/kernel/vmlinux" -initrd "$dir/initrd")
machine=q35; [ $hmat = 1 ] && machine=q35,hmat=on
if [ -n "$fake" ]; then append="numa=fake=$fake $append"
else
  pn=$((cpus / nodes))
  for ((i = 0; i < all; i++)); do
    o=node,nodeid=$i bare=0
    [ $i -lt $nodes ] && [ $i -ge $((nodes - barenodes)) ] && bare=1
    [ $bare = 1 ] || o=$o,memdev=m$i
    [ $i -lt $nodes ] && o=$o,cpus=$((i * pn))-$((i * pn + pn - 1))
    init=$i; [ $i -ge $nodes ] && init=$(((i - nodes) % nodes))
    [ $hmat = 1 ] && o=$o,initiator=$init
    [ $bare = 1 ] || args+=(-object "memory-backend-ram,size=${per}M,id=m$i")
    args+=(-numa "$o")
  done
  d() { if [ -n "$matrix" ]; then IFS=, read -ra cols <<<"${rows[$1]}"; echo "${cols[$2]}"
        elif [ "$1" = "$2" ]; then echo 10; else echo "$dist"; fi; }
  if [ $all -gt 1 ]; then for ((i = 0; i < all; i++)); do for ((j = 0; j < all; j++)); do
    args+=(-numa "dist,src=$i,dst=$j,val=$(d $i $j)"); done; done; fi
  if [ $hmat = 1 ]; then   # local 80 ns and 40 GB/s, scaled with the distance
    for ((i = 0; i < nodes; i++)); do for ((j = 0; j < all; j++)); do v=$(d $i $j)
      args+=(-numa "hmat-lb,initiator=$i,target=$j,hierarchy=memory,data-type=access-latency,latency=$((8 * v))"
        -numa "hmat-lb,initiator=$i,target=$j,hierarchy=memory,data-type=access-bandwidth,bandwidth=$((400 / v))G")
    done; done
  fi
fi
mkfifo "$dir/out" "$dir/err" "$dir/st" || die "mkfifo failed"
args+=(-serial "file:${console:-$dir/console}" -chardev "file,id=st,path=$dir/st" -device isa-serial,chardev=st
  -device virtio-serial-pci
  -chardev "file,id=out,path=$dir/out" -device virtserialport,chardev=out,name=guest.out
  -chardev "file,id=err,path=$dir/err" -device virtserialport,chardev=err,name=guest.err
  -virtfs "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap"
  -virtfs "local,path=$moddir,mount_tag=modules,security_model=none,readonly=on,multidevs=remap")
i=0; for d in "${rw[@]}"; do
  args+=(-virtfs "local,path=$d,mount_tag=rw$i,security_model=none,multidevs=remap"); i=$((i + 1)); done

if [ $count = 1 ]; then
  [ -z "$fake" ] && [ $barenodes = 0 ] || usage "--count does not go with --fake or --bare-nodes"
  [ $accel != kvm ] || usage "--count needs TCG"
  accel=tcg
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  command -v gcc >/dev/null || die "--count needs gcc"
  [ -e "$here/numa-count.c" ] || die "numa-count.c is not beside this script"
  gcc -O2 -shared -fPIC "$here/numa-count.c" -o "$dir/numa-count.so" 2>"$dir/log" || die "numa-count.c: $(head -1 "$dir/log")"
  args+=(-plugin "$dir/numa-count.so,nodes=$all,cpunodes=$nodes,node-mb=$per,pages=$countpages,out=$dir/count")
fi
hw_kvm() { [ -w /dev/kvm ] && { [ -d /sys/module/kvm_intel ] || [ -d /sys/module/kvm_amd ]; }; }
case $accel in
  auto) if hw_kvm; then tries=(kvm tcg); else tries=(tcg); fi;;
  kvm) [ -w /dev/kvm ] || die "--accel kvm: /dev/kvm is missing or not writable"; tries=(kvm);;
  *) tries=(tcg);;
esac

# A starved emulation may miss its own timers while the kernel starts (hence no_timer_check, too): try again once.
[ "$accel" = kvm ] || tries+=(tcg)
for a in "${tries[@]}"; do
  if [ $a = kvm ]; then acc=kvm model=${cpu:-host} limit=$((boot_timeout < 40 ? boot_timeout : 40))
  else acc=tcg,thread=multi model=${cpu:-max,vendor=GenuineIntel} limit=$boot_timeout; fi
  cat "$dir/out" & cats=($!); cat "$dir/err" >&2 & cats+=($!)
  exec 5<>"$dir/st"
  start=$(date +%s%N)
  "$qemu" -machine $machine -accel $acc -cpu "$model" "${args[@]}" \
    -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check $append" </dev/null 5>&- >"$dir/qemu.log" 2>&1 &
  qpid=$!
  up= rc= why= part=
  while :; do
    read -r -t 1 -u 5 line; got=$?
    now=$((($(date +%s%N) - start) / 1000000))
    part=$part$line   # a read that times out leaves the piece of a line that it got
    if [ $got = 0 ]; then
      line=${part%$'\r'} part=
      case $line in
        up) up=$now; start=$(date +%s%N); say "guest is up after $now ms ($a)";;
        rc\ *) rc=${line#rc }; say "command took $now ms"; break;;
        fail\ *) why=${line#fail }; break;;
      esac
    elif ! kill -0 "$qpid" 2>/dev/null; then
      while read -r -t 0.2 -u 5 line; do line=${line%$'\r'}; case $line in
        up) up=$now;; rc\ *) rc=${line#rc };; esac; done
      break
    elif [ -z "$up" ] && [ $now -gt $((limit * 1000)) ]; then why="not up after $limit s"; break
    elif [ -n "$up" ] && [ $now -gt $((timeout * 1000)) ]; then
      kill "$qpid"; wait "$qpid" 2>/dev/null; qpid=; wait "${cats[@]}" 2>/dev/null; cats=()
      echo "$prog: the command was stopped after $timeout s" >&2; exit 124
    fi
  done
  exec 5>&-
  if [ -n "$rc" ]; then   # give it a moment to power off, then take it down
    for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$qpid" 2>/dev/null || break; sleep 0.1; done
  fi
  kill "$qpid" 2>/dev/null; wait "$qpid" 2>/dev/null; qpid=
  # a reader still waiting for QEMU to open its end gets an end of file
  for f in out err; do (exec 6<>"$dir/$f") ; done
  [ -n "$rc" ] || kill "${cats[@]}" 2>/dev/null
  wait "${cats[@]}" 2>/dev/null; cats=()
  [ $count = 1 ] && cat "$dir/count" >&2
  if [ "$rc" = 0 ] && [ -n "$maxremote" ]; then
    share=$(sed -n 's/^remote share of the marked sections: \([0-9.]*\) % of [1-9].*/\1/p' "$dir/count" | tail -1)
    [ -n "$share" ] || { echo "$prog: no marked section was entered, so there is no share to check" >&2; exit 121; }
    awk "BEGIN { exit !($share <= $maxremote) }" ||
      { echo "$prog: $share % of the accesses are remote, at most $maxremote % are allowed" >&2; exit 121; }
  fi
  [ -n "$rc" ] && exit "$rc"
  tail -n 5 "$dir/qemu.log" | grep -v 'terminating on signal' >&2
  if [ -n "$up" ]; then
    echo "$prog: the guest died before the command ended; last console lines:" >&2
    tail -n 15 "${console:-$dir/console}" >&2; exit 123
  fi
  say "$a: ${why:-QEMU ended at once}"
done
tail -n 5 "${console:-$dir/console}" 2>/dev/null >&2
die "the guest did not start under ${tries[*]}: ${why:-QEMU ended at once, see above}"
