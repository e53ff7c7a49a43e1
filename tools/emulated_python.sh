#!/bin/sh
# Python for another CPU, run by QEMU. `make test-aarch64` puts this in usr/bin of a folder
# with Debian's Python, where it is `sys.executable`: subprocesses are emulated, too, and
# the kernel need not know how to run such programs (binfmt_misc).
# Without SVE: emulated by QEMU, OpenBLAS's kernels for it raise flags of errors.
: "${QEMU_CPU:=neoverse-n1}"
export QEMU_CPU
PATH=${PATH:-/usr/bin:/bin} # tests empty it
root=$(cd "$(dirname "$(readlink -f "$0")")/../.." && pwd)
exec qemu-aarch64-static -L "$root" -0 "$root/usr/bin/python" "$root/usr/bin/python3" "$@"
