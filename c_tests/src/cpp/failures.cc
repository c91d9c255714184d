// Refusals and failures: what is thrown and stored, who is named, and that ranks stay in step.
#include "tests.hpp"

#include <atomic>
#include <csignal>
#include <new>
#include <thread>
#include <unistd.h>

namespace {

using ring::status;

// Each call with lengths that don't fit, on all ranks: refused, and nothing is written.
void wrong_lengths(ring::group &group) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const int root = group.size() - 1;
  std::vector<int> many(3 * ranks), part(3), one_more(4), less(3 * ranks - 1);
  const std::vector<std::size_t> counts(ranks, 3), short_list(ranks - 1, 3), displs(ranks + 1), far(ranks, many.size());
  // Its sum, wrapped, is the right one.
  std::vector<std::size_t> huge(ranks, 3);
  huge[0] = SIZE_MAX - 2;
  huge.back() = 9;
  const auto refused = [&](auto call, bool is_own = true, const std::string &text = " elements and ") {
    const auto how = thrown_by(call);
    CHECK(how.status == status::invalid_argument && how.rank == -1 && how.sequence == 0, "%s", how.text.c_str());
    CHECK(!is_own || how.text.find(text) != std::string::npos, "%s", how.text.c_str());
    CHECK(!group.failure());
  };
  const auto op = ring::op::sum;
  refused([&] { group.all_reduce(part, one_more, op); });
  refused([&] { group.reduce_scatter(many, one_more, op); });
  const std::string length = std::to_string(less.size()), needs = " elements and needs " + std::to_string(3 * ranks) + " (",
                    rest = "'s 3 for each of " + std::to_string(ranks) + " ranks)";
  refused([&] { group.reduce_scatter(less, part, op); }, true, "ring_reduce_scatter: send has " + length + needs + "recv" + rest);
  refused([&] { group.all_gather(one_more, many); });
  refused([&] { group.all_gather(part, less); }, true, "ring_all_gather: recv has " + length + needs + "send" + rest);
  refused([&] { group.all_to_all(many, less); });
  if (ranks > 1) refused([&] { group.all_to_all(less, less); });
  refused([&] { group.all_gather_v(part, less, counts); });
  refused([&] { group.all_gather_v(part, many, short_list); });
  refused([&] { group.all_gather_v(part, many, counts, displs); });
  refused([&] { group.all_gather_v(part, many, counts, far); });
  if (ranks > 1) refused([&] { group.all_gather_v(part, many, huge); });
  refused([&] { group.all_gather_v(part, many, {}); });
  refused([&] { group.all_gather_v(one_more, many, counts); }, false);
  refused([&] { group.reduce_scatter_v(less, part, counts, op); });
  refused([&] { group.reduce_scatter_v(many, one_more, counts, op); });
  refused([&] { group.reduce_scatter_v(many, part, short_list, op); });
  std::vector<int> apart(many.size());
  refused([&] { group.all_to_all_v(many, counts, less, counts); });
  refused([&] { group.all_to_all_v(less, counts, apart, counts); });
  refused([&] { group.all_to_all_v(many, counts, apart, short_list); });
  refused([&] { group.all_to_all_v(many, counts, displs, apart, counts, {}); });
  refused([&] { group.all_to_all_v(many, counts, far, apart, counts, {}); });
  // The root's lengths alone count: the others' calls are as they should be, and the next one shows it.
  const auto own = [&](auto call) {
    if (group.rank() == root) refused(call);
  };
  own([&] { group.reduce(part, one_more, op, root); });
  own([&] { group.gather(part, less, root); });
  own([&] { group.scatter(less, part, root); });
  if (group.rank() != root)
    for (int i = 0; i < 3; i++) refused([&] { group.broadcast(part, group.size()); }, false);
  for (const int value : many) CHECK(value == 0);
  for (const int value : part) CHECK(value == 0);
  for (const int value : apart) CHECK(value == 0);
  // All ranks' calls have been refused alike: they are in step.
  part.assign(3, group.rank());
  group.all_reduce(part, op);
  CHECK(part[0] == group.size() * (group.size() - 1) / 2);
}

// A length that is wrong on one rank alone is found by all.
void wrong_on_one(ring::group &group) {
  std::vector<int> part(3), other(group.rank() == 0 ? 2 : 3);
  group.set_timeout(std::chrono::seconds(10));
  ring::failure how, next;
  if (group.rank() == 0) {
    group.all_reduce(part, other, ring::op::sum, how);
    CHECK(how.status == status::invalid_argument);
    group.barrier(next);
  } else {
    group.all_reduce(part, other, ring::op::sum, next);
  }
  CHECK(next.status == status::mismatch && next.text == group.failure().text, "%s", next.text.c_str());
  CHECK(next.text.find("refused") != std::string::npos, "%s", next.text.c_str());
}

void body(int rank, int size, const char *hosts) {
  auto group = ring_of(rank, hosts);
  wrong_lengths(group);
  std::error_code code;
  float value = 1;
  group.all_reduce(ring::span(&value, 1), ring::op::bxor, code);
  CHECK(code == status::unsupported && code == std::errc::not_supported);
  group.send(ring::span(&value, 1), size, code);
  CHECK(code == status::invalid_argument);
  group.recv(ring::span(&value, 1), -1, code);
  CHECK(code == status::invalid_argument);
  group.barrier(code);
  CHECK(!code);
  if (size > 1) wrong_on_one(group);
}

// Ranks that have come so far, in memory that they share.
std::atomic<int> *arrived;

// The last rank is killed while the others wait for it; every one, and its future, names it.
void bereaved(int rank, int size, const char *hosts) {
  auto group = ring_of(rank, hosts);
  const int dead = size - 1;
  std::vector<float> values(1000, 1.0f), more(1000);
  group.all_reduce(values, ring::op::sum);
  if (rank == dead) {
    for (const double start = seconds(); *arrived < size - 1;) {
      CHECK(seconds() < start + 20);
      usleep(1000);
    }
    raise(SIGKILL);
  }
  auto waiting = group.all_reduce_async(values, more, ring::op::sum);
  ++*arrived;
  const auto how = thrown_by([&] { waiting.get(); });
  CHECK(how.status == status::peer_lost && how.rank == dead, "%s", how.text.c_str());
  CHECK(how.detected_by >= 0 && how.detected_by < dead, "%s", how.text.c_str());
  CHECK(how.text.find("rank " + std::to_string(dead)) != std::string::npos, "%s", how.text.c_str());

  ring::failure stored;
  group.barrier(stored);
  const auto of_group = group.failure();
  for (const auto &other : {stored, of_group}) {
    CHECK(other.status == how.status && other.rank == dead && other.sequence == how.sequence, "%s", other.text.c_str());
    CHECK(other.detected_by == how.detected_by && other.os_error == how.os_error, "%s", other.text.c_str());
  }
  // A call's text is its name and number, and the group's.
  for (const auto &other : {stored, how})
    CHECK(other.text.find(of_group.text) != std::string::npos, "%s, not %s", other.text.c_str(), of_group.text.c_str());
  std::error_code code;
  (void)group.split(0, 0, code);
  CHECK(code == status::peer_lost);
  // A refusal of this call alone isn't that rank's doing.
  ring::failure refused;
  ring::set_log([&](ring::log_level, std::string_view) { group.barrier(refused); }, ring::log_level::debug);
  ring_of_one().abort();
  ring::set_log(nullptr);
  CHECK(refused.status == status::invalid_state && refused.rank == -1, "%s", refused.text.c_str());
  // Another thread has texts of its own.
  std::thread([&] {
    CHECK(thrown_by([&] { group.barrier(); }).text.find(of_group.text) != std::string::npos);
    CHECK(thrown_by([&] { (void)group.barrier_async(); }).rank == dead);
  }).join();
  ring::failure last;
  auto none = group.send_async(values, 0 == rank ? 1 % size : 0, last);
  CHECK(!none.valid() && last.rank == dead);
}

// Rank 0 aborts while the others wait; a request's future outlives the group's end and names it.
void aborted(int rank, int size, const char *hosts) {
  auto group = ring_of(rank, hosts);
  int value = 0;
  if (rank == 0) {
    group.barrier();
    group.abort();
    CHECK(group.failure().status == status::aborted && group.failure().rank == 0);
    return;
  }
  auto waiting = group.recv_async(ring::span(&value, 1), 0);
  ring::failure either;  // the abort may come while this rank is still in it
  group.barrier(either);
  const auto how = thrown_by([&] { waiting.wait(); });
  CHECK(how.status == status::aborted && how.rank == 0, "%s", how.text.c_str());
  CHECK(how.sequence == group.failure().sequence && size > 1);
  group = ring::group();
  ring::failure later;
  waiting.get(later);
  CHECK(later.status == status::aborted && later.rank == 0 && later.text == how.text, "%s", later.text.c_str());
}

// destroy() ends calls that other threads are in.
void ended(int rank, int size, const char *hosts) {
  auto group = ring_of(rank, hosts);
  if (rank != 0) {
    ring::failure how;
    group.barrier(how);
    CHECK(how && size > 1);
    return;
  }
  ring::failure how;
  std::thread inside([&] {
    int value;
    group.recv(ring::span(&value, 1), 1, how);
  });
  usleep(100000);
  group.destroy();
  inside.join();
  CHECK(how.status == status::aborted, "%s", how.text.c_str());
  CHECK(thrown_by([&] { group.barrier(); }).status == status::invalid_argument);
}

}  // namespace

void failures(int size) { run<body>(size); }

void faults(int size) {
  arrived = new (shared(sizeof *arrived)) std::atomic<int>(0);
  run<bereaved>(size, 1u << (size - 1));
  run<aborted>(size);
  run<ended>(size);
}
