import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * A library that is loaded with LD_PRELOAD and intercepts the C library's calls that change files. It counts the calls named
 * in FAULT_CALLS (default: all but read) on files whose path begins with FAULT_UNDER and contains FAULT_FILE. At call FAULT_AT
 * it kills the process (FAULT_DO=kill), sends it SIGTERM (FAULT_DO=term), or makes this and all later calls fail with an errno
 * (FAULT_DO=5). A process that exits normally writes the count to FAULT_COUNT.
 */
const SOURCE = String.raw`
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_long calls;

static int fault(const char *name, const char *path) {
  const char *under = getenv("FAULT_UNDER"), *names = getenv("FAULT_CALLS"), *at = getenv("FAULT_AT"), *what = getenv("FAULT_DO");
  if (under == NULL || path == NULL || strncmp(path, under, strlen(under)) != 0) return 0;
  const char *file = getenv("FAULT_FILE");
  if (file != NULL && strstr(path, file) == NULL) return 0;
  if (names == NULL ? strcmp(name, "read") == 0 : strstr(names, name) == NULL) return 0;
  const long n = atomic_fetch_add(&calls, 1) + 1;
  if (at == NULL || what == NULL || n < atol(at)) return 0;
  if (strcmp(what, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(what, "term") == 0) {
    if (n == atol(at)) kill(getpid(), SIGTERM);
    return 0;
  }
  return atoi(what);
}

static int fault_fd(const char *name, int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return fault(name, path);
}

__attribute__((destructor)) static void report(void) {
  const char *file = getenv("FAULT_COUNT");
  FILE *out = file == NULL ? NULL : fopen(file, "w");
  if (out == NULL) return;
  fprintf(out, "%ld", (long)calls);
  fclose(out);
}

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))
#define FAIL(e) do { errno = (e); return -1; } while (0)
#define FD(type, symbol, call, params, args, ...) \
  type symbol params { const int e = fault_fd(call, fd); if (e) FAIL(e); return REAL(type, #symbol, __VA_ARGS__) args; }

FD(ssize_t, write, "write", (int fd, const void *b, size_t n), (fd, b, n), int, const void *, size_t)
FD(ssize_t, pwrite, "write", (int fd, const void *b, size_t n, off_t o), (fd, b, n, o), int, const void *, size_t, off_t)
FD(ssize_t, pwrite64, "write", (int fd, const void *b, size_t n, off64_t o), (fd, b, n, o), int, const void *, size_t, off64_t)
FD(ssize_t, pread, "read", (int fd, void *b, size_t n, off_t o), (fd, b, n, o), int, void *, size_t, off_t)
FD(ssize_t, pread64, "read", (int fd, void *b, size_t n, off64_t o), (fd, b, n, o), int, void *, size_t, off64_t)
FD(int, fsync, "sync", (int fd), (fd), int)
FD(int, fdatasync, "sync", (int fd), (fd), int)
FD(int, ftruncate, "truncate", (int fd, off_t n), (fd, n), int, off_t)
FD(int, ftruncate64, "truncate", (int fd, off64_t n), (fd, n), int, off64_t)

int rename(const char *from, const char *to) {
  const int e = fault("rename", from);
  if (e) FAIL(e);
  return REAL(int, "rename", const char *, const char *)(from, to);
}
int unlink(const char *path) {
  const int e = fault("unlink", path);
  if (e) FAIL(e);
  return REAL(int, "unlink", const char *)(path);
}
int link(const char *from, const char *to) {
  const int e = fault("link", to);
  if (e) FAIL(e);
  return REAL(int, "link", const char *, const char *)(from, to);
}
int symlink(const char *target, const char *path) {
  const int e = fault("link", path);
  if (e) FAIL(e);
  return REAL(int, "symlink", const char *, const char *)(target, path);
}
int mkdir(const char *path, mode_t mode) {
  const int e = fault("mkdir", path);
  if (e) FAIL(e);
  return REAL(int, "mkdir", const char *, mode_t)(path, mode);
}
`;

interface Fault {
  /** Only files whose absolute path begins with this. */
  readonly under: string;
  /** Only files whose path contains this. Default: all. */
  readonly file?: string | undefined;
  /** Calls, separated by commas: read, write, sync, truncate, rename, unlink, link, mkdir. Default: all but read. */
  readonly calls?: string | undefined;
  /** The call at which the fault begins, from 1. Without it calls are only counted. */
  readonly at?: number;
  /** An errno, `kill` to kill the process, or `term` to send it SIGTERM. */
  readonly do?: number | 'kill' | 'term';
  /** File to which the number of calls is written. */
  readonly count?: string;
}

export interface FaultLibrary {
  /** Environment variables for the process. */
  environment(fault: Fault): Record<string, string>;
  count(file: string): number;
}

/** Compiles the library into a folder, or returns why that is impossible. */
export function faultLibrary(folder: string): FaultLibrary | { readonly missing: string } {
  if (process.platform !== 'linux') return { missing: 'LD_PRELOAD and /proc/self/fd need Linux' };
  const [source, library] = [join(folder, 'fault.c'), join(folder, 'fault.so')];
  writeFileSync(source, SOURCE);
  const made = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-w', '-o', library, source, '-ldl'], { encoding: 'utf8' });
  if (made.status !== 0) return { missing: `no C compiler (${made.error?.message ?? made.stderr.slice(0, 200)})` };
  return {
    environment: ({ under, file, calls, at, do: what, count }) => ({
      LD_PRELOAD: library,
      FAULT_UNDER: under,
      ...(file === undefined ? {} : { FAULT_FILE: file }),
      ...(calls === undefined ? {} : { FAULT_CALLS: calls }),
      ...(at === undefined ? {} : { FAULT_AT: String(at) }),
      ...(what === undefined ? {} : { FAULT_DO: String(what) }),
      ...(count === undefined ? {} : { FAULT_COUNT: count }),
    }),
    count: (file) => Number(readFileSync(file, 'utf8')),
  };
}
