// Every call that blocks, in every type: what it gives, and that it writes nothing else.
#include "tests.hpp"

#include <numeric>

namespace {

template <class T>
T sum(int size, std::size_t i, int which = 0) {
  long total = 0;
  bool any = false;
  for (int rank = 0; rank < size; rank++) {
    total += number(rank, i, which);
    any |= number(rank, i, which) % 3 == 0;
  }
  if constexpr (std::is_same_v<T, bool>) return any;
  else return whole<T>(total);
}

template <class T>
void check_reductions(ring::group &group, std::size_t count) {
  const int rank = group.rank(), size = group.size();
  const auto ranks = static_cast<std::size_t>(size);
  const array<T> send(rank, count);
  array<T> recv(count);
  group.all_reduce(send, recv, ring::op::sum);
  for (std::size_t i = 0; i < count; i++) check_same(recv[i], sum<T>(size, i), "all_reduce", i);
  for (std::size_t i = 0; i < count; i++) check_same(send[i], whole<T>(number(rank, i)), "all_reduce's send", i);

  array<T> both(rank, count, 1);
  group.all_reduce(both, ring::op::sum);
  for (std::size_t i = 0; i < count; i++) check_same(both[i], sum<T>(size, i, 1), "all_reduce in place", i);

  const array<T> all(rank, count * ranks);
  array<T> part(count);
  group.reduce_scatter(all, part, ring::op::sum);
  const std::size_t start = count * static_cast<std::size_t>(rank);
  for (std::size_t i = 0; i < count; i++) check_same(part[i], sum<T>(size, start + i), "reduce_scatter", i);

  for (int root = 0; root < size; root += 3) {
    array<T> result(rank == root ? count : 0);
    group.reduce(send, result, ring::op::sum, root);
    for (std::size_t i = 0; i < result.size(); i++) check_same(result[i], sum<T>(size, i), "reduce", i);
  }
}

template <class T>
void check_moves(ring::group &group, std::size_t count) {
  const int rank = group.rank(), size = group.size();
  const auto ranks = static_cast<std::size_t>(size), own = static_cast<std::size_t>(rank);
  const array<T> send(rank, count);
  array<T> all(count * ranks);
  const auto check_all = [&](const char *call) {
    for (std::size_t i = 0; i < all.size(); i++)
      check_same(all[i], whole<T>(number(static_cast<int>(i / count), i % count)), call, i);
  };
  group.all_gather(send, all);
  check_all("all_gather");
  for (std::size_t i = 0; i < all.size(); i++) all[i] = i / (count + !count) == own ? send[i % count] : T{};
  group.all_gather(all.part(own * count, count), all);
  check_all("all_gather in place");

  for (int root = 0; root < size; root += 3) {
    array<T> gathered(rank == root ? count * ranks : 0);
    group.gather(send, gathered, root);
    for (std::size_t i = 0; i < gathered.size(); i++)
      check_same(gathered[i], whole<T>(number(static_cast<int>(i / count), i % count)), "gather", i);

    const array<T> whole_array(root, rank == root ? count * ranks : 0, 2);
    array<T> part(count);
    group.scatter(whole_array, part, root);
    for (std::size_t i = 0; i < count; i++) check_same(part[i], whole<T>(number(root, own * count + i, 2)), "scatter", i);

    array<T> same(rank, count, 3);
    group.broadcast(same, root);
    for (std::size_t i = 0; i < count; i++) check_same(same[i], whole<T>(number(root, i, 3)), "broadcast", i);
  }

  const array<T> blocks(rank, count * ranks);
  group.all_to_all(blocks, all);
  for (std::size_t i = 0; i < all.size(); i++)
    check_same(all[i], whole<T>(number(static_cast<int>(i / count), own * count + i % count)), "all_to_all", i);

  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  array<T> got(count);
  group.send_recv(send, right, got, left);
  for (std::size_t i = 0; i < count; i++) check_same(got[i], whole<T>(number(left, i)), "send_recv", i);
  if (rank == 0 && size > 1) group.send(send, size - 1);
  if (rank == size - 1 && size > 1) {
    group.recv(got, 0);
    for (std::size_t i = 0; i < count; i++) check_same(got[i], whole<T>(number(0, i)), "recv", i);
  }
  group.send_recv(ring::span<const T>(), ring::no_rank, ring::span<T>(), ring::no_rank);
}

// Parts of rank + 2 elements, and none of rank 1's; then with gaps, in the reverse order.
template <class T>
void check_lists(ring::group &group) {
  const int rank = group.rank(), size = group.size();
  const auto ranks = static_cast<std::size_t>(size), own = static_cast<std::size_t>(rank);
  std::vector<std::size_t> counts(ranks), packed(ranks), gaps(ranks);
  for (std::size_t r = 0; r < ranks; r++) counts[r] = r == 1 ? 0 : r + 2;
  for (std::size_t r = 1; r < ranks; r++) packed[r] = packed[r - 1] + counts[r - 1];
  const std::size_t total = packed[ranks - 1] + counts[ranks - 1];
  for (std::size_t r = 0; r < ranks; r++) gaps[r] = (ranks - 1 - r) * (ranks + 3) + 1;
  const std::size_t wide = ranks * (ranks + 3) + 1;

  const array<T> send(rank, counts[own]);
  array<T> all(total), spread(wide);
  group.all_gather_v(send, all, counts);
  group.all_gather_v(send, spread, counts, gaps);
  std::size_t gathered = 0;
  for (std::size_t r = 0; r < ranks; r++)
    for (std::size_t i = 0; i < counts[r]; i++, gathered++) {
      check_same(all[packed[r] + i], whole<T>(number(static_cast<int>(r), i)), "all_gather_v", i);
      check_same(spread[gaps[r] + i], whole<T>(number(static_cast<int>(r), i)), "all_gather_v with gaps", i);
    }
  CHECK(gathered == total);
  check_same(spread[0], T{}, "all_gather_v with gaps", 0);

  const array<T> addends(rank, total);
  array<T> part(counts[own]);
  group.reduce_scatter_v(addends, part, counts, ring::op::sum);
  for (std::size_t i = 0; i < part.size(); i++) check_same(part[i], sum<T>(size, packed[own] + i), "reduce_scatter_v", i);

  // Rank r sends r + d elements to rank d; a block's are told from another's by their place in send.
  std::vector<std::size_t> out(ranks), in(ranks), out_at(ranks), in_at(ranks);
  for (std::size_t r = 0; r < ranks; r++) out[r] = in[r] = own + r;
  for (std::size_t r = 1; r < ranks; r++) out_at[r] = in_at[r] = out_at[r - 1] + out[r - 1];
  const std::size_t total_out = out_at[ranks - 1] + out[ranks - 1];
  const auto start_of = [&](std::size_t r) {  // where rank r has what goes to this one
    std::size_t start = 0;
    for (std::size_t d = 0; d < own; d++) start += r + d;
    return start;
  };
  const array<T> blocks(rank, total_out);
  array<T> taken(total_out), also(total_out + 1);
  group.all_to_all_v(blocks, out, taken, in);
  array<T> later(total_out + 1);
  std::copy_n(blocks.data(), total_out, later.data() + 1);
  for (auto *places : {&in_at, &out_at})
    for (auto &at : *places) at++;
  group.all_to_all_v(later, out, out_at, also, in, in_at);
  for (std::size_t r = 0; r < ranks; r++)
    for (std::size_t i = 0; i < in[r]; i++) {
      const T right = whole<T>(number(static_cast<int>(r), start_of(r) + i));
      check_same(taken[in_at[r] - 1 + i], right, "all_to_all_v", i);
      check_same(also[in_at[r] + i], right, "all_to_all_v with gaps", i);
    }
}

template <class... T>
struct all_of {
  static void check(ring::group &group) {
    for (const std::size_t count : {0, 1, 7, 257}) (check_reductions<T>(group, count), ...);
    for (const std::size_t count : {1, 7, 257}) (check_moves<T>(group, count), ...);
    (check_lists<T>(group), ...);
  }
};
using every_type =
    all_of<bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long, unsigned long, long long,
           unsigned long long, wchar_t, char16_t, char32_t, float, double, std::complex<float>, ring::float16, ring::bfloat16>;

void check_operations(ring::group &group) {
  const int size = group.size();
  const auto check = [&](ring::op how, auto step) {
    std::vector<int> values = {group.rank() + 2, 5 - group.rank()};
    group.all_reduce(values, how);
    for (int i = 0; i < 2; i++) {
      int right = i == 0 ? 2 : 5;
      for (int r = 1; r < size; r++) right = step(right, i == 0 ? r + 2 : 5 - r);
      CHECK(values[static_cast<std::size_t>(i)] == right, "%s", ring::name(how).data());
    }
  };
  check(ring::op::sum, [](int a, int b) { return a + b; });
  check(ring::op::max, [](int a, int b) { return a > b ? a : b; });
  check(ring::op::min, [](int a, int b) { return a < b ? a : b; });
  check(ring::op::prod, [](int a, int b) { return a * b; });
  check(ring::op::band, [](int a, int b) { return a & b; });
  check(ring::op::bor, [](int a, int b) { return a | b; });
  check(ring::op::bxor, [](int a, int b) { return a ^ b; });
  double mean = group.rank();
  group.all_reduce(ring::span(&mean, 1), ring::op::mean);
  CHECK(mean == (size - 1) / 2.0);
}

// All that is a buffer.
void check_buffers(ring::group &group) {
  const float total = static_cast<float>(group.size());
  std::vector<float> vector(3, 1.0f);
  std::array<float, 3> fixed = {1, 1, 1};
  float plain[3] = {1, 1, 1};
  group.all_reduce(vector, fixed, ring::op::sum);
  group.all_reduce(ring::span(plain), ring::op::sum);
  group.all_reduce(ring::span(vector.data(), 2), ring::op::sum);
  group.all_reduce(std::vector<float>(3, 2.0f), plain, ring::op::sum);  // what is only read may be about to end
  CHECK(vector[0] == total && vector[1] == total && vector[2] == 1 && fixed[2] == total && plain[2] == 2 * total);
  level mine[2] = {level(1), level(2)};
  std::byte bytes[1] = {std::byte(group.rank())};
  group.all_reduce(mine, ring::op::sum);
  group.all_reduce(bytes, ring::op::max);
  CHECK(mine[1] == level(2 * group.size()) && bytes[0] == std::byte(group.size() - 1));
}

void check_split(ring::group &group) {
  const int rank = group.rank(), size = group.size();
  auto half = group.split(rank % 2, -rank);
  CHECK(half.size() == (size + (rank % 2 == 0)) / 2 && half.rank() == half.size() - 1 - rank / 2);
  int sum = rank;
  half.all_reduce(ring::span(&sum, 1), ring::op::sum);
  int right = 0;
  for (int r = rank % 2; r < size; r += 2) right += r;
  CHECK(sum == right);
  auto none = group.split(rank == 0 ? -1 : 7);
  CHECK(bool(none) == (rank != 0));
  if (none) none.barrier();
  const auto counted = group.stats();
  group.barrier();
  const auto now = group.stats();
  CHECK(now.operations == counted.operations + 1 && now.strangers_refused == 0);
  CHECK(now.busy >= counted.busy && now.wait_left.count() >= 0 && now.wait_right.count() >= 0);
  CHECK(size == 1 || (now.bytes_sent > counted.bytes_sent && now.bytes_received > counted.bytes_received));
}

void body(int rank, int size, const char *hosts) {
  auto group = ring_of(rank, hosts);
  CHECK(group && group.rank() == rank && group.size() == size && !group.failure());
  every_type::check(group);
  check_operations(group);
  check_buffers(group);
  check_split(group);
  group.set_timeout(ring::infinite);
  group.barrier();
}

}  // namespace

void calls(int size) { run<body>(size); }
