// What the tests of ring.hpp share: ranks, and values that differ by rank and are the same in every type.
#ifndef TESTS_HPP
#define TESTS_HPP

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ring.hpp>
#include <string>
#include <sys/types.h>
#include <vector>

extern "C" {
#include "harness.h"
}

// A type of the host program's, which travels as the number that it is.
enum class level : std::int16_t {};
template <>
struct ring::dtype_of<level> {
  static constexpr ring::dtype value = ring::dtype::int16;
};

// A whole number in any type.
template <class T>
T whole(long number) {
  if constexpr (std::is_same_v<T, bool>) return number % 3 == 0;
  else if constexpr (std::is_same_v<T, std::complex<float>>) return {static_cast<float>(number), static_cast<float>(-2 * number)};
  else if constexpr (std::is_same_v<T, ring::float16> || std::is_same_v<T, ring::bfloat16>) return T(static_cast<float>(number));
  else return static_cast<T>(number);
}

// What rank has as element i of its array `which`. Sums of eight ranks' are exact in 8 bits of fraction.
inline long number(int rank, std::size_t i, int which = 0) {
  return (rank + 1) * static_cast<long>((i + static_cast<std::size_t>(which)) % 5 + 1);
}


// An array of T, bool included, between two guards.
template <class T>
class array {
 public:
  explicit array(std::size_t count) : size_(count) {
    CHECK(count < std::size_t(1) << 24);
    memory_.reset(new T[count + 2]);
    std::fill_n(memory_.get(), count + 2, whole<T>(99));
    std::fill_n(memory_.get() + 1, count, T{});
  }
  array(int rank, std::size_t count, int which = 0) : array(count) {
    for (std::size_t i = 0; i < count; i++) memory_[i + 1] = whole<T>(number(rank, i, which));
  }
  ~array() {
    CHECK(same(memory_[0], whole<T>(99)) && same(memory_[size_ + 1], whole<T>(99)), "a guard was written");
  }
  array(const array &) = delete;
  array &operator=(const array &) = delete;

  T *data() { return memory_.get() + 1; }
  const T *data() const { return memory_.get() + 1; }
  std::size_t size() const { return size_; }
  T &operator[](std::size_t i) { return data()[i]; }
  const T &operator[](std::size_t i) const { return data()[i]; }
  ring::span<T> part(std::size_t offset, std::size_t count) { return ring::span<T>(data(), size_).subspan(offset, count); }

  static bool same(const T &a, const T &b) { return std::memcmp(&a, &b, sizeof(T)) == 0; }

 private:
  std::size_t size_;
  std::unique_ptr<T[]> memory_;
};

template <class T>
void check_same(const T &got, const T &right, const char *call, std::size_t i) {
  CHECK(array<T>::same(got, right), "%s of %s, element %zu", call, ring::name(ring::dtype_v<T>).data(), i);
}

inline ring::config test_config(int rank, const char *hosts) {
  ring::config config;
  config.rank = rank;
  config.hosts = hosts;
  config.job_id = "test";
  config.connect_timeout = std::chrono::seconds(20);
  config.timeout = std::chrono::seconds(20);
  return config;
}

inline ring::group ring_of(int rank, const char *hosts) { return ring::group::create(test_config(rank, hosts)); }

inline ring::group ring_of_one() {
  ring::config config;
  config.rank = 0;
  config.hosts = "[[\"127.0.0.1:1\"]]";
  return ring::group::create(config);
}

// Runs a body as each rank of a ring, and has an exception that leaves it fail the rank.
template <void (*Body)(int rank, int size, const char *hosts)>
void run(int size, unsigned may_die = 0) {
  char *hosts = make_hosts(size, 1);
  run_ranks(
      size, hosts,
      [](int rank, int ranks, const char *theirs, void *) {
        try {
          Body(rank, ranks, theirs);
        } catch (const std::exception &thrown) {
          CHECK(false, "rank %d: %s", rank, thrown.what());
        }
      },
      nullptr, 60, may_die);
  std::free(hosts);
}

// The failure of a call that throws ring::error, which is checked against the same call's by value.
template <class Call>
ring::failure thrown_by(Call call) {
  ring::failure how;
  try {
    call();
  } catch (const ring::error &e) {
    how.status = e.status();
    how.rank = e.rank();
    how.detected_by = e.detected_by();
    how.os_error = e.os_error();
    how.sequence = e.sequence();
    how.text = e.what();
    CHECK(e.code() == e.status() && e.code().category() == ring::category());
  }
  return how;
}

void types();
void calls(int size);
void futures(int size);
void reductions(int size);
void failures(int size);
void faults(int size);

#endif
