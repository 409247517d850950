// Streams the views of an image once, each made of tiles in a cache of the least recently used ones: what a
// careful user of libtiff would write. It reads what docs/bench-tile.md describes from standard input, tiles by
// pread or, with WITH_TIFF, by libtiff, and prints a line of JSON.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
#ifdef WITH_TIFF
#include <tiffio.h>
#endif

namespace {

[[noreturn]] void fail(const std::string &text) {
  std::cerr << text << std::endl;
  std::exit(1);
}

struct Place {
  long offset;
  std::string path;
};

struct Request {
  long shape[2] = {0, 0}, tile[2] = {0, 0}, radius[2] = {0, 0};
  long element = 1, threads = 1, copy_threads = 1, cache = 0, views = 1, ordered = 0, directory = 0;
  std::string op = "none", tiff;
  std::vector<Place> files;
};

Request read_request() {
  Request r;
  std::string key;
  while (std::cin >> key && key != "end") {
    if (key == "shape") std::cin >> r.shape[0] >> r.shape[1];
    else if (key == "tile") std::cin >> r.tile[0] >> r.tile[1];
    else if (key == "radius") std::cin >> r.radius[0] >> r.radius[1];
    else if (key == "element") std::cin >> r.element;
    else if (key == "threads") std::cin >> r.threads;
    else if (key == "copy_threads") std::cin >> r.copy_threads;
    else if (key == "cache") std::cin >> r.cache;
    else if (key == "views") std::cin >> r.views;
    else if (key == "ordered") std::cin >> r.ordered;
    else if (key == "op") std::cin >> r.op;
    else if (key == "file" || key == "tiff") {
      Place p;
      std::cin >> p.offset;
      std::cin.get();
      std::getline(std::cin, p.path);
      if (key == "file") r.files.push_back(p);
      else r.tiff = p.path, r.directory = p.offset;
    } else fail("unknown line " + key);
  }
  if (!std::cin || r.tile[0] < 1 || r.tile[1] < 1 || r.shape[0] < 1 || r.shape[1] < 1) fail("the request ends too early");
  return r;
}

// Reader reads tiles for one thread.
class Reader {
 public:
  explicit Reader(const Request &r) : r_(r) {
    if (r.tiff.empty()) return;
#ifdef WITH_TIFF
    tiff_ = TIFFOpen(r.tiff.c_str(), "r");
    if (!tiff_ || !TIFFSetDirectory(tiff_, r.directory)) fail("libtiff cannot open " + r.tiff);
#else
    fail("libtiff was not there when this was compiled");
#endif
  }
  ~Reader() {
#ifdef WITH_TIFF
    if (tiff_) TIFFClose(tiff_);
#endif
  }
  Reader(const Reader &) = delete;
  Reader &operator=(const Reader &) = delete;

  void read(long number, unsigned char *out, size_t bytes) {
#ifdef WITH_TIFF
    if (tiff_) {
      if (TIFFReadEncodedTile(tiff_, number, out, bytes) < 0) fail("libtiff cannot read tile " + std::to_string(number));
      return;
    }
#endif
    const Place &p = r_.files.at(number);
    int f = open(p.path.c_str(), O_RDONLY | O_CLOEXEC);
    if (f < 0) fail(p.path + " cannot be opened");
    for (size_t done = 0; done < bytes;) {
      ssize_t n = pread(f, out + done, bytes - done, p.offset + done);
      if (n <= 0) fail(p.path + " cannot be read");
      done += n;
    }
    close(f);
  }

 private:
  const Request &r_;
#ifdef WITH_TIFF
  TIFF *tiff_ = nullptr;
#endif
};

// Cache keeps tiles, the least recently used first out; those in use stay.
class Cache {
 public:
  struct Tile {
    std::vector<unsigned char> data;
    long number = -1;
    int users = 0;
    bool ready = false;
  };
  Cache(size_t bytes, size_t tile) : tile_(tile), room_(std::max<size_t>(1, bytes / tile)) {}

  Tile *get(long number, Reader &reader) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      auto found = at_.find(number);
      if (found != at_.end()) {
        Tile *t = &*found->second;
        t->users++;
        order_.splice(order_.begin(), order_, found->second);
        changed_.wait(lock, [t] { return t->ready; });
        return t;
      }
      if (order_.size() < room_) {
        order_.emplace_front();
        order_.front().data.resize(tile_);
        break;
      }
      auto oldest = order_.end();
      for (auto i = order_.end(); i != order_.begin() && oldest == order_.end();)
        if ((--i)->users == 0) oldest = i;
      if (oldest != order_.end()) {
        at_.erase(oldest->number);
        order_.splice(order_.begin(), order_, oldest);
        break;
      }
      changed_.wait(lock);
    }
    Tile *t = &order_.front();
    at_[number] = order_.begin();
    t->number = number;
    t->users = 1;
    t->ready = false;
    lock.unlock();
    reader.read(number, t->data.data(), tile_);
    lock.lock();
    t->ready = true;
    changed_.notify_all();
    return t;
  }

  void put(Tile *t) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (--t->users == 0) changed_.notify_all();
  }

 private:
  size_t tile_, room_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Tile> order_;
  std::unordered_map<long, std::list<Tile>::iterator> at_;
};

struct View {
  std::vector<unsigned char> data;
  long number = -1;
};

// Stream makes views in threads and hands them over.
class Stream {
 public:
  explicit Stream(const Request &r)
      : r_(r), tile_bytes_(r.tile[0] * r.tile[1] * r.element), cache_(r.cache, tile_bytes_), views_(r.views) {
    for (int a = 0; a < 2; a++) grid_[a] = (r.shape[a] + r.tile[a] - 1) / r.tile[a];
    pitch_ = (r.tile[1] + 2 * r.radius[1]) * r.element;
    for (auto &v : views_) {
      v.data.resize(pitch_ * (r.tile[0] + 2 * r.radius[0]));
      free_.push_back(&v);
    }
    if (r.tiff.empty() && long(r.files.size()) != grid_[0] * grid_[1]) fail("there are not as many tiles as the image has");
  }

  template <class F>
  long run(F &&use) {
    std::vector<std::thread> threads;
    for (long k = 0; k < r_.threads; k++) threads.emplace_back([this] { work(); });
    long all = grid_[0] * grid_[1];
    for (long told = 0; told < all; told++) {
      View *v = take(told);
      use(v->data);
      std::lock_guard<std::mutex> lock(mutex_);
      free_.push_back(v);
      changed_.notify_all();
    }
    for (auto &t : threads) t.join();
    return all;
  }

 private:
  View *take(long told) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      for (auto i = ready_.begin(); i != ready_.end(); ++i)
        if (!r_.ordered || (*i)->number == told) {
          View *v = *i;
          ready_.erase(i);
          return v;
        }
      changed_.wait(lock);
    }
  }

  void work() {
    Reader reader(r_);
    for (;;) {
      View *v;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !free_.empty() || next_ == grid_[0] * grid_[1]; });
        if (next_ == grid_[0] * grid_[1]) return;
        v = free_.back();
        free_.pop_back();
        v->number = next_++;
      }
      fill(*v, reader);
      std::lock_guard<std::mutex> lock(mutex_);
      ready_.push_back(v);
      changed_.notify_all();
    }
  }

  void fill(View &v, Reader &reader) {
    long i[2] = {v.number / grid_[1], v.number % grid_[1]}, lo[2], hi[2];
    bool whole = true;
    for (int a = 0; a < 2; a++) {
      lo[a] = std::max(0L, i[a] * r_.tile[a] - r_.radius[a]);
      hi[a] = std::min(r_.shape[a], (i[a] + 1) * r_.tile[a] + r_.radius[a]);
      whole = whole && hi[a] - lo[a] == r_.tile[a] + 2 * r_.radius[a];
    }
    if (!whole) std::memset(v.data.data(), 0, v.data.size());
    for (long y = lo[0] / r_.tile[0]; y * r_.tile[0] < hi[0]; y++)
      for (long x = lo[1] / r_.tile[1]; x * r_.tile[1] < hi[1]; x++) {
        Cache::Tile *t = cache_.get(y * grid_[1] + x, reader);
        long top = std::max(lo[0], y * r_.tile[0]), end = std::min(hi[0], (y + 1) * r_.tile[0]);
        long left = std::max(lo[1], x * r_.tile[1]), right = std::min(hi[1], (x + 1) * r_.tile[1]);
        for (long row = top; row < end; row++)
          std::memcpy(&v.data[(row - i[0] * r_.tile[0] + r_.radius[0]) * pitch_ + (left - i[1] * r_.tile[1] + r_.radius[1]) * r_.element],
                      &t->data[((row - y * r_.tile[0]) * r_.tile[1] + left - x * r_.tile[1]) * r_.element], (right - left) * r_.element);
        cache_.put(t);
      }
  }

  const Request &r_;
  size_t tile_bytes_;
  Cache cache_;
  long grid_[2], pitch_, next_ = 0;
  std::vector<View> views_;
  std::vector<View *> free_;
  std::list<View *> ready_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

template <class T>
uint64_t sum(const std::vector<unsigned char> &data) {
  const T *p = reinterpret_cast<const T *>(data.data());
  uint64_t s = 0;
  for (size_t k = 0; k < data.size() / sizeof(T); k++) s += p[k];
  return s;
}

uint64_t sum_of(const std::vector<unsigned char> &data, long element) {
  switch (element) {
    case 1: return sum<uint8_t>(data);
    case 2: return sum<uint16_t>(data);
    case 4: return sum<uint32_t>(data);
    default: return sum<uint64_t>(data);
  }
}

double processor() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + 1e-6 * (u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

}  // namespace

int main() {
  Request r = read_request();
  auto stream = std::make_unique<Stream>(r);  // its memory is there before the clock starts
  uint64_t check = 0;
  double cpu = processor();
  auto began = std::chrono::steady_clock::now();
  long views = stream->run([&](const std::vector<unsigned char> &data) {
    if (r.op != "none") check += sum_of(data, r.element);
  });
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  std::cout << "{\"seconds\": " << seconds << ", \"cpu\": " << processor() - cpu << ", \"resident\": " << u.ru_maxrss * 1024
            << ", \"views\": " << views << ", \"check\": \"" << check << "\"}" << std::endl;
}
