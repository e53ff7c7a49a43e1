"""Disks that are full, read-only or broken, where the system lets us make them."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(const char *call) {
    const char *wanted = getenv("NDX_FAILS");
    return wanted != NULL && strcmp(wanted, call) == 0;
}
static int is_kind(int fd, mode_t kind) {
    struct stat file;
    return fstat(fd, &file) == 0 && (file.st_mode & S_IFMT) == kind;
}
static int refuse(void) { errno = EIO; return -1; }
#define REAL(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

int fsync(int fd) {
    const char *call = is_kind(fd, S_IFDIR) ? "fsync of the folder" : "fsync";
    return fails(call) ? refuse() : REAL(int, "fsync", int)(fd);
}
int msync(void *ptr, size_t nbytes, int flags) {
    if (fails("msync")) { return refuse(); }
    return REAL(int, "msync", void *, size_t, int)(ptr, nbytes, flags);
}
ssize_t write(int fd, const void *data, size_t nbytes) {
    if (is_kind(fd, S_IFREG) && fails("write")) { return refuse(); }
    return REAL(ssize_t, "write", int, const void *, size_t)(fd, data, nbytes);
}
ssize_t read(int fd, void *data, size_t nbytes) {
    if (is_kind(fd, S_IFREG) && fails("read")) { return refuse(); }
    return REAL(ssize_t, "read", int, void *, size_t)(fd, data, nbytes);
}
int posix_fallocate(int fd, off_t offset, off_t nbytes) {
    if (fails("posix_fallocate")) { return EIO; }
    if (fails("support of posix_fallocate")) { return EOPNOTSUPP; }
    return REAL(int, "posix_fallocate", int, off_t, off_t)(fd, offset, nbytes);
}
int posix_fallocate64(int fd, off_t offset, off_t nbytes) {
    return posix_fallocate(fd, offset, nbytes);
}
/* Large files as where huge pages are not known: one page beyond a multiple. */
void *mmap(void *ptr, size_t nbytes, int access, int flags, int fd, off_t offset) {
    enum { MULTIPLE = 1 << 21, PAGE = 4096 };
    void *(*real)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
    if (ptr == NULL && fd >= 0 && nbytes >= MULTIPLE && fails("alignment of mmap")) {
        char *space = real(NULL, nbytes + 2 * MULTIPLE, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (space == MAP_FAILED) { return MAP_FAILED; }
        ptr = space + (-(size_t)space & (MULTIPLE - 1)) + PAGE;
        flags |= MAP_FIXED;
    }
    return real(ptr, nbytes, access, flags, fd, offset);
}
void *mmap64(void *ptr, size_t nbytes, int access, int flags, int fd, off_t offset) {
    return mmap(ptr, nbytes, access, flags, fd, offset);
}
"""


def open_files(folder):
    """Return how many descriptors this process has of files in a folder."""
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        # The one that lists them is gone by now.
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{fd}").startswith(f"{folder}/")
    return count


def build_shim(folder):
    """Return a library whose calls fail as ``NDX_FAILS`` says, for LD_PRELOAD."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler, or no LD_PRELOAD")
    if os.environ.get("LD_PRELOAD"):
        pytest.skip("something else is preloaded (a sanitizer)")
    source, library = folder / "shim.c", folder / "shim.so"
    source.write_text(SHIM)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True
    )
    return library


def command(*words):
    """Run a command of the system; skip the test where that is not allowed."""
    try:
        done = subprocess.run(
            list(map(str, words)), capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        words = getattr(error, "stderr", None) or error
        pytest.skip(f"this needs to be root, with its tools: {words}")
    return done.stdout.strip()


@contextlib.contextmanager
def breakable(folder, megabytes=16):
    """Mount a disk that can be broken; yields its folder, and what breaks it."""
    for tool in ("losetup", "mkfs.ext4"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} here")
    folder.mkdir()
    image = folder.with_suffix(".image")
    image.touch()
    os.truncate(image, megabytes << 20)
    command("mkfs.ext4", "-q", "-O", "^has_journal", image)
    loop = command("losetup", "--find", "--show", image)
    with contextlib.ExitStack() as stack:
        stack.callback(subprocess.run, ["losetup", "--detach", loop], check=True)
        command("mount", loop, folder)
        stack.callback(subprocess.run, ["umount", "--lazy", folder], check=True)

        def fail():
            os.sync()
            # What is under the disk ends here: to read on is an I/O error.
            os.truncate(image, 4096)
            with open("/proc/sys/vm/drop_caches", "w") as caches:
                caches.write("1")

        stack.callback(os.truncate, image, megabytes << 20)
        yield folder, fail


def files_in(directory):
    """Return (descriptor, path, status) of the files that this process has there."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        try:
            path = os.readlink(entry)
        except OSError:
            continue
        if path.startswith(f"{directory}/"):
            found.append((int(entry.name), path, os.stat(entry)))
    return found


def cut(directory, keep=0):
    """Shorten all files there, as another process could; return how many."""
    files = files_in(directory)
    for number, _, _ in files:
        os.truncate(f"/proc/self/fd/{number}", keep)
    return len(files)
