// Reductions by functions of C++, and what happens when they throw.
#include "tests.hpp"

namespace {

// 24 bytes, of which two members are reduced, each in its own way.
struct best {
  double score;
  int rank;
  long votes;
};

best better(const best &a, const best &b) {
  const bool is_a = a.score > b.score || (a.score == b.score && a.rank < b.rank);
  return {is_a ? a.score : b.score, is_a ? a.rank : b.rank, a.votes + b.votes};
}

best of_rank(int rank, std::size_t i) { return {static_cast<double>((rank * 7 + static_cast<int>(i)) % 5), rank, number(rank, i)}; }

best of_all(int size, std::size_t i) {
  best right = of_rank(0, i);
  for (int r = 1; r < size; r++) right = better(right, of_rank(r, i));
  return right;
}

void check(const best &got, int size, std::size_t i, const char *call) {
  const best right = of_all(size, i);
  CHECK(got.score == right.score && got.rank == right.rank && got.votes == right.votes, "%s, element %zu", call, i);
}

void functions(ring::group &group, std::size_t count) {
  const int rank = group.rank(), size = group.size();
  std::vector<best> send(count), recv(count);
  for (std::size_t i = 0; i < count; i++) send[i] = of_rank(rank, i);
  group.all_reduce(send, recv, better);
  for (std::size_t i = 0; i < count; i++) check(recv[i], size, i, "a function");

  std::size_t elements = 0;
  recv = send;
  group.all_reduce(recv, [&elements](best *acc, const best *in, std::size_t n) {
    elements += n;
    for (std::size_t i = 0; i < n; i++) acc[i] = better(acc[i], in[i]);
  });
  for (std::size_t i = 0; i < count; i++) check(recv[i], size, i, "a lambda on blocks");
  CHECK((elements > 0) == (size > 1 && count > 0));

  std::vector<std::size_t> counts(static_cast<std::size_t>(size));
  for (int r = 0; r < size; r++) counts[static_cast<std::size_t>(r)] = r == 0 ? count : 1;
  std::vector<best> all(count + static_cast<std::size_t>(size) - 1), part(counts[static_cast<std::size_t>(rank)]);
  for (std::size_t i = 0; i < all.size(); i++) all[i] = of_rank(rank, i);
  std::error_code code;
  group.reduce_scatter_v(all, part, counts, better, code);
  CHECK(!code);
  const std::size_t start = rank == 0 ? 0 : count + static_cast<std::size_t>(rank) - 1;
  for (std::size_t i = 0; i < part.size(); i++) check(part[i], size, start + i, "reduce_scatter_v");

  // An object with a state, kept between calls; a type that the library has reduces by a function, too.
  struct counting {
    int calls = 0;
    float operator()(float a, float b) {
      calls++;
      return a > b ? a : b;
    }
  } object;
  std::vector<float> values(count, static_cast<float>(rank));
  group.all_reduce(values, object);
  for (const float value : values) CHECK(value == static_cast<float>(size - 1));
  CHECK((object.calls > 0) == (size > 1 && count > 0));
  std::vector<ring::bfloat16> narrow(count, ring::bfloat16(static_cast<float>(rank)));
  group.all_reduce(narrow, [](auto a, auto b) { return a + b; });  // floats, rounded once a step
  for (const auto value : narrow) CHECK(float(value) == static_cast<float>(size * (size - 1) / 2));
}

void wrong_lengths(ring::group &group) {
  std::vector<best> three(3), four(4);
  bool was_called = false;
  const auto fn = [&](const best &a, const best &) {
    was_called = true;
    return a;
  };
  CHECK(thrown_by([&] { group.all_reduce(three, four, fn); }).status == ring::status::invalid_argument);
  const std::vector<std::size_t> counts(static_cast<std::size_t>(group.size()) + 1);
  ring::failure how;
  group.reduce_scatter_v(three, four, counts, fn, how);
  CHECK(how.status == ring::status::invalid_argument && !was_called, "%s", how.text.c_str());
  group.barrier();
}

struct refusal {
  int rank;
};

// The last rank's function throws, in a small call and in a large one. Nobody gets a wrong number.
template <std::size_t Count>
void throwing(int rank, int size, const char *hosts) {
  auto group = ring_of(rank, hosts);
  const bool throws = rank == size - 1;
  std::vector<long> values(Count, rank + 1);
  int thrown = -1;
  ring::failure how;
  std::size_t calls = 0;
  try {
    group.all_reduce(
        values,
        [&](long *acc, const long *in, std::size_t n) {
          calls++;
          if (throws) throw refusal{rank};
          for (std::size_t i = 0; i < n; i++) acc[i] += in[i];
        },
        how);
  } catch (const refusal &it) {
    thrown = it.rank;
  }
  CHECK(throws ? thrown == rank && calls == 1 : thrown == -1, "%d, %zu calls", thrown, calls);
  if (!throws && !how)
    for (const long value : values) CHECK(value == size * (size + 1) / 2, "%ld", value);
  if (!throws && how) CHECK(how.status == ring::status::aborted && how.rank == size - 1, "%s", how.text.c_str());
  const auto next = thrown_by([&] { group.barrier(); });
  CHECK(next.status == ring::status::aborted && next.rank == size - 1, "%s", next.text.c_str());
}

void body(int rank, int, const char *hosts) {
  auto group = ring_of(rank, hosts);
  for (const std::size_t count : {0, 1, 7, 257, 30011}) functions(group, count);
  wrong_lengths(group);
}

}  // namespace

void reductions(int size) {
  run<body>(size);
  if (size < 2) return;
  run<throwing<5>>(size);
  run<throwing<200003>>(size);
}
