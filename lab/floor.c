/* floor: what the machine and the C libraries can do with the same files, the
 * yardstick for docs/benchmarks.md.
 *
 *   floor pread PIECE THREADS REPS FILE...         read in pieces into a reused buffer
 *   floor zstd  CHUNK_BYTES THREADS REPS FILE...   pread + ZSTD_decompressDCtx
 *   floor blosc CHUNK_BYTES THREADS REPS FILE...   pread + blosc_decompress_ctx, one thread each
 *   floor shard CHUNK_BYTES THREADS REPS FILE...   index at the end, then pread + zstd for each inner chunk
 *   floor deflate CHUNK_BYTES THREADS REPS FILE... pread + libdeflate, gzip
 *   floor nothing                                  start and end of a process
 *   floor versions                                 of the libraries
 *
 * Prints one line of JSON as lab/arrays does: seconds of the first of REPS and the
 * median of the others, bytes of output, peak resident KiB.
 */
#define _GNU_SOURCE
#include <blosc.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

static char **files;
static int nfiles, threads;
static size_t size;
static const char *mode;
static atomic_int next_file;
static atomic_ullong total;

static void die(const char *what, const char *file) {
  fprintf(stderr, "floor: %s: %s\n", file, what);
  exit(1);
}

static size_t read_all(const char *file, char **buf, size_t *cap) {
  int fd = open(file, O_RDONLY);
  struct stat st;
  if (fd < 0 || fstat(fd, &st)) die("cannot open", file);
  if ((size_t)st.st_size > *cap) {
    *cap = st.st_size;
    *buf = realloc(*buf, *cap);
  }
  for (off_t o = 0; o < st.st_size;) {
    ssize_t n = pread(fd, *buf + o, st.st_size - o, o);
    if (n <= 0) die("short read", file);
    o += n;
  }
  close(fd);
  return st.st_size;
}

static void *work(void *arg) {
  (void)arg;
  size_t cap = 0;
  char *in = NULL, *out = aligned_alloc(2 << 20, (size + (2 << 20)) & ~(size_t)((2 << 20) - 1));
  memset(out, 0, size);
  ZSTD_DCtx *d = ZSTD_createDCtx();
  struct libdeflate_decompressor *ld = libdeflate_alloc_decompressor();
  for (;;) {
    int i = atomic_fetch_add(&next_file, 1);
    if (i >= nfiles) break;
    const char *f = files[i];
    if (!strcmp(mode, "pread")) {
      int fd = open(f, O_RDONLY);
      struct stat st;
      if (fd < 0 || fstat(fd, &st)) die("cannot open", f);
      for (off_t o = 0; o < st.st_size;) {
        ssize_t n = pread(fd, out, size, o);
        if (n <= 0) die("short read", f);
        o += n;
      }
      close(fd);
      atomic_fetch_add(&total, st.st_size);
      continue;
    }
    if (!strcmp(mode, "shard")) { /* index, then one pread for each inner chunk */
      int fd = open(f, O_RDONLY);
      struct stat st;
      if (fd < 0 || fstat(fd, &st)) die("cannot open", f);
      const char *inner = getenv("INNER"); /* inner chunks of a shard */
      if (!inner) die("INNER is not set", f);
      size_t n = strtoull(inner, NULL, 10), len = n * 16 + 4;
      uint64_t *index = malloc(len);
      if (pread(fd, index, len, st.st_size - len) != (ssize_t)len) die("short index", f);
      for (size_t k = 0; k < n; k++) {
        uint64_t off = index[2 * k], cb = index[2 * k + 1];
        if (off == UINT64_MAX) continue;
        if (cb > cap) in = realloc(in, cap = cb);
        if (pread(fd, in, cb, off) != (ssize_t)cb) die("short chunk", f);
        if (ZSTD_decompressDCtx(d, out, size, in, cb) != size) die("zstd", f);
        atomic_fetch_add(&total, size);
      }
      free(index);
      close(fd);
      continue;
    }
    size_t n = read_all(f, &in, &cap), got = 0;
    if (!strcmp(mode, "zstd")) {
      if (ZSTD_decompressDCtx(d, out, size, in, n) != size) die("zstd", f);
    } else if (!strcmp(mode, "blosc")) {
      if (blosc_decompress_ctx(in, out, size, 1) != (int)size) die("blosc", f);
    } else if (!strcmp(mode, "deflate")) {
      if (libdeflate_gzip_decompress(ld, in, n, out, size, &got) || got != size) die("gzip", f);
    } else {
      die("unknown mode", mode);
    }
    atomic_fetch_add(&total, size);
  }
  libdeflate_free_decompressor(ld);
  ZSTD_freeDCtx(d);
  free(in);
  free(out);
  return NULL;
}

static int by_value(const void *a, const void *b) {
  double x = *(double *)a, y = *(double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  if (argc == 2 && !strcmp(argv[1], "nothing")) return 0;
  if (argc == 2 && !strcmp(argv[1], "versions"))
    return printf("libzstd %s, c-blosc %s, libdeflate %s\n", ZSTD_versionString(), BLOSC_VERSION_STRING, LIBDEFLATE_VERSION_STRING) < 0;
  if (argc < 6) {
    fprintf(stderr, "usage: floor MODE BYTES THREADS REPS FILE...\n");
    return 2;
  }
  mode = argv[1];
  size = strtoull(argv[2], NULL, 10);
  threads = atoi(argv[3]);
  int reps = atoi(argv[4]);
  if (!size || threads < 1 || threads > 256 || reps < 1) die("BYTES, THREADS (up to 256) and REPS must be positive", mode);
  files = argv + 5;
  nfiles = argc - 5;
  double s[64];
  if (reps > 64) reps = 64;
  for (int r = 0; r < reps; r++) {
    atomic_store(&next_file, 0);
    atomic_store(&total, 0);
    struct timespec a, b;
    pthread_t t[256];
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < threads; i++) pthread_create(&t[i], NULL, work, NULL);
    for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
    clock_gettime(CLOCK_MONOTONIC, &b);
    s[r] = b.tv_sec - a.tv_sec + (b.tv_nsec - a.tv_nsec) / 1e9;
  }
  int first = reps > 1, rest = reps - first;
  double first_s = s[0], *v = s + first;
  qsort(v, rest, sizeof *v, by_value);
  double med = rest % 2 ? v[rest / 2] : (v[rest / 2 - 1] + v[rest / 2]) / 2;
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  double cpu = u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
  printf("{\"first_s\":%.9f,\"s\":%.9f,\"cpu_s\":%.6f,\"bytes\":%llu,\"hwm_kb\":%ld}\n", first ? first_s : 0, med, cpu / reps, (unsigned long long)atomic_load(&total), u.ru_maxrss);
  return 0;
}
