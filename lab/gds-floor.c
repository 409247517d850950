/* floor: what C makes of one file, with as many threads and in as large pieces
 * as it is told; the yardstick for docs/benchmarks-arrays.md.
 *
 *   floor OP FILE BYTES THREADS PIECE REPS COLD SYNC SHIFT
 *
 * OP: read, direct (past the page cache) and mmap read the file into memory that is there; write and
 * write-direct write it from there into a file that is new each time; calls reads PIECE bytes a hundred thousand
 * times, anywhere; files opens, reads and closes files of PIECE bytes in the folder FILE; version. COLD 1: the page cache forgets
 * the file before. SYNC 1: a write has ended when its bytes are on the device. SHIFT: where memory begins in
 * its page. Threads take the next piece that nobody has. Prints one line of JSON: the median of REPS in
 * seconds and in processor time, bytes, peak resident KiB and a sampled sum of what came, or of what is in the file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { calls = 100000 };

static const char *op, *file;
static size_t bytes, piece;
static char *memory, *mapped;
static int fd, writes, folder;
static atomic_size_t next;

static void die(const char *what) {
  fprintf(stderr, "floor: %s: %s: %s\n", file, what, strerror(errno));
  exit(1);
}

static void move(int f, char *to, size_t n, size_t off) {
  for (size_t done = 0; done < n;) {
    ssize_t k = writes ? pwrite(f, to + done, n - done, off + done) : pread(f, to + done, n - done, off + done);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) die("moves nothing");
    done += k;
  }
}

static void *work(void *arg) {
  (void)arg;
  for (;;) {
    size_t at = atomic_fetch_add(&next, piece);
    if (at >= bytes) return NULL;
    size_t n = bytes - at < piece ? bytes - at : piece;
    if (folder) {
      char name[4096];
      snprintf(name, sizeof name, "%s/%zu", file, at / piece);
      int f = open(name, O_RDONLY);
      if (f < 0) die(name);
      move(f, memory + at, n, 0);
      close(f);
    } else if (mapped) {
      memcpy(memory + at, mapped + at, n);
    } else {
      move(fd, memory + at, n, at);
    }
  }
}

static int by_value(const void *a, const void *b) {
  double x = *(double *)a, y = *(double *)b;
  return (x > y) - (x < y);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static double processor(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* run moves everything once. */
static void run(int threads, int sync) {
  if (!strcmp(op, "calls")) {
    uint64_t x = 1;
    for (int i = 0; i < calls; i++) {
      x = x * 6364136223846793005ull + 1442695040888963407ull;
      move(fd, memory, piece, (x >> 33) % (bytes / piece) * piece);
    }
    return;
  }
  if (!strcmp(op, "mmap")) {
    mapped = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (mapped == MAP_FAILED) die("map");
    madvise(mapped, bytes, MADV_WILLNEED);
  }
  atomic_store(&next, 0);
  pthread_t t[64];
  for (int i = 0; i < threads; i++)
    if (pthread_create(&t[i], NULL, work, NULL)) die("thread");
  for (int i = 0; i < threads; i++) pthread_join(t[i], NULL);
  if (writes && sync && fdatasync(fd)) die("flush");
  if (mapped) munmap(mapped, bytes);
}

int main(int argc, char **argv) {
  if (argc != 10) {
    fprintf(stderr, "usage: floor read|direct|mmap|write|write-direct|calls|files FILE BYTES THREADS PIECE REPS COLD SYNC SHIFT\n");
    return 2;
  }
  op = argv[1], file = argv[2], bytes = strtoull(argv[3], NULL, 10), piece = strtoull(argv[5], NULL, 10);
  int threads = atoi(argv[4]), reps = atoi(argv[6]), cold = atoi(argv[7]), sync = atoi(argv[8]);
  size_t shift = strtoull(argv[9], NULL, 10), huge = 2 << 20;
  writes = !strncmp(op, "write", 5), folder = !strcmp(op, "files");
  int direct = strstr(op, "direct") != NULL;
  if (!bytes || !piece || piece > bytes || threads < 1 || threads > 64 || reps < 1 || reps > 64 || shift > 4095) die("what was asked for");
  size_t size = (bytes + shift + huge - 1) & ~(huge - 1);
  memory = mmap(NULL, size + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) die("memory");
  memory = (char *)(((uintptr_t)memory + huge - 1) & ~(uintptr_t)(huge - 1));
  madvise(memory, size, MADV_HUGEPAGE);
  memory += shift;
  memset(memory, 1, bytes); /* the pages are there */
  uint64_t x = 88172645463325252ull;
  for (size_t i = 0; writes && i + 8 <= bytes; i += 8) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    memcpy(memory + i, &x, 8);
  }
  double s[64], c[64];
  for (int r = 0; r < reps; r++) {
    if (writes) unlink(file);
    fd = open(file, (writes ? O_RDWR | O_CREAT : O_RDONLY) | (direct ? O_DIRECT : 0), 0666);
    if (fd < 0) die("open");
    if (cold && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED)) die("drop");
    double cpu = processor(), start = seconds();
    run(threads, sync);
    s[r] = seconds() - start, c[r] = processor() - cpu;
    close(fd);
  }
  size_t moved = strcmp(op, "calls") ? bytes : calls * piece, seen = strcmp(op, "calls") ? bytes : piece;
  uint64_t sum = 0;
  char *of = memory;
  if (writes) {
    fd = open(file, O_RDONLY);
    of = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (of == MAP_FAILED) die("map");
  }
  for (size_t i = 0; i < seen; i += 4093) sum = sum * 31 + (unsigned char)of[i];
  int first = reps > 1; /* the first pass of the process is told apart */
  double first_s = s[0];
  qsort(s + first, reps - first, sizeof *s, by_value);
  qsort(c + first, reps - first, sizeof *c, by_value);
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  int middle = first + (reps - first) / 2;
  printf("{\"first_s\": %.6f, \"s\": %.6f, \"cpu_s\": %.4f, \"bytes\": %zu, \"hwm_kb\": %ld, \"ck\": %llu}\n", first ? first_s : 0, s[middle],
         c[middle], moved, u.ru_maxrss, (unsigned long long)sum);
  return 0;
}
