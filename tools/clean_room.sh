#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves that the two commands of README.md work on a machine that has nothing: bootstraps a minimal Debian 12 into a
# temporary folder, copies the committed tree (HEAD) into it and runs them there, with only what ./dev installs. By hand,
# as root, with debootstrap, git and util-linux; takes as long as one build without a cache.
#
#   tools/clean_room.sh [--keep]     --keep leaves the folder for a look, and says where it is
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

keep=false
[[ ${1:-} != --keep ]] || keep=true

# Mounts live in a namespace of their own and vanish with it, so that nothing of this machine can be removed below.
if [[ ${FACET_CLEAN_ROOM:-} != inside ]]; then
  exec env FACET_CLEAN_ROOM=inside unshare --mount --pid --fork --propagation private "${BASH_SOURCE[0]}" "$@"
fi

say() { printf '== %s\n' "$*"; }

# The first Debian mirror that this machine's apt uses.
find_mirror() {
  local found
  # Files that are not there are no failure: the one that is counts.
  found=$({
    sed -n 's/^URIs: *\([^ ]*\).*/\1/p' /etc/apt/sources.list.d/*.sources
    sed -n 's/^deb \(\[[^]]*\] \)\?\([^ ]*\).*/\2/p' /etc/apt/sources.list /etc/apt/sources.list.d/*.list
  } 2>/dev/null | grep -m 1 -E '/debian/?$' || true)
  echo "${found:-http://deb.debian.org/debian}"
}

room=$(mktemp -d)
clean_up() {
  umount "$room/proc" "$room/dev/pts" 2>/dev/null || true
  if $keep; then
    say "kept $room"
  else
    rm -rf --one-file-system "$room"
  fi
}
trap clean_up EXIT

say "bootstrapping Debian 12"
if ! debootstrap --variant=minbase bookworm "$room" "$(find_mirror)" >"$room.log" 2>&1; then
  tail -n 20 "$room.log"
  exit 1
fi
rm -f "$room.log"
cp /etc/resolv.conf "$room/etc/resolv.conf"
mount -t proc proc "$room/proc"
mount --bind /dev/pts "$room/dev/pts"  # terminals, for the tests of the chat
git clone -q . "$room/facet"

in_room() { chroot "$room" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin bash -c "cd / && $1"; }

n_failed=0
report() {  # NAME, then whether it went well
  if $2; then
    say "$1: passed"
  else
    say "$1: FAILED"
    n_failed=$((n_failed + 1))
  fi
}

say './dev run "What is the capital of France?"'
answer=$(in_room '/facet/dev run "What is the capital of France?"') && ran=true || ran=false
printf '%s\n' "$answer"
[[ $answer == *Paris* ]] || ran=false
report run $ran

say "once more, now that it is built"
began=${EPOCHREALTIME/./}
in_room '/facet/dev run --help >/dev/null' && ran=true || ran=false
report "run --help, $(((${EPOCHREALTIME/./} - began) / 1000)) ms" $ran

say "./dev test"
in_room '/facet/dev test' && ran=true || ran=false
report test $ran

exit $((n_failed > 0))
