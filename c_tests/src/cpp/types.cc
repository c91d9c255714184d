// Types, names, buffers and handles: all that needs no ring.
#include "tests.hpp"

#include <cmath>
#include <cstring>

namespace {

template <class T>
constexpr bool is(ring::dtype type) {
  return ring::dtype_v<T> == type && ring::dtype_v<const T> == type;
}

static_assert(is<bool>(ring::dtype::boolean) && is<float>(ring::dtype::float32) && is<double>(ring::dtype::float64));
static_assert(is<std::int8_t>(ring::dtype::int8) && is<std::uint8_t>(ring::dtype::uint8));
static_assert(is<std::int16_t>(ring::dtype::int16) && is<std::uint16_t>(ring::dtype::uint16));
static_assert(is<std::int32_t>(ring::dtype::int32) && is<std::uint32_t>(ring::dtype::uint32));
static_assert(is<std::int64_t>(ring::dtype::int64) && is<std::uint64_t>(ring::dtype::uint64));
static_assert(is<long long>(ring::dtype::int64) && is<unsigned long long>(ring::dtype::uint64));
static_assert(is<long>(sizeof(long) == 8 ? ring::dtype::int64 : ring::dtype::int32));
static_assert(is<char>(std::is_signed_v<char> ? ring::dtype::int8 : ring::dtype::uint8));
static_assert(is<signed char>(ring::dtype::int8) && is<unsigned char>(ring::dtype::uint8));
static_assert(is<char16_t>(ring::dtype::uint16) && is<char32_t>(ring::dtype::uint32));
static_assert(is<std::byte>(ring::dtype::uint8) && is<std::complex<float>>(ring::dtype::complex64));
static_assert(is<ring::float16>(ring::dtype::float16) && is<ring::bfloat16>(ring::dtype::bfloat16));
static_assert(is<level>(ring::dtype::int16));
static_assert(ring::float16::from_bits(0x3c00).bits == 0x3c00 && ring::bfloat16::from_bits(7).bits == 7);
static_assert(std::is_trivially_copyable_v<ring::float16> && std::is_trivially_default_constructible_v<ring::bfloat16>);
static_assert(sizeof(ring::float16) == 2 && sizeof(ring::bfloat16) == 2);
static_assert(!std::is_copy_constructible_v<ring::group> && std::is_nothrow_move_constructible_v<ring::group>);
static_assert(!std::is_copy_constructible_v<ring::future> && std::is_nothrow_move_assignable_v<ring::future>);
static_assert(std::is_base_of_v<std::runtime_error, ring::error>);
static_assert(ring::span<const int>().empty() && ring::header_version == RING_VERSION);
// A list of numbers is no span, an array's const elements can't be written.
static_assert(!std::is_constructible_v<ring::span<const std::size_t>, std::nullptr_t, std::size_t>);
static_assert(!std::is_convertible_v<const std::vector<int> &, ring::span<int>>);
static_assert(!std::is_convertible_v<std::vector<int> &, ring::span<long>>);
static_assert(std::is_convertible_v<std::vector<std::size_t>, ring::span<const std::size_t>>);

// Rounds to nearest even from what the type can hold: the value above and below, and which is nearer.
template <class Narrow>
void check_rounding(std::uint16_t infinity) {
  for (std::uint32_t bits = 0; bits < infinity; bits++) {
    const auto low = Narrow::from_bits(static_cast<std::uint16_t>(bits));
    const auto high = Narrow::from_bits(static_cast<std::uint16_t>(bits + 1));
    CHECK(Narrow(float(low)).bits == bits, "%x", bits);
    CHECK(Narrow(-float(low)).bits == (bits | 0x8000u), "%x", bits);
    // Where infinity is next, the value that would follow decides.
    const double above = bits + 1 == infinity ? 2 * double(low) - double(Narrow::from_bits(static_cast<std::uint16_t>(bits - 1)))
                                              : double(high);
    const double middle = (double(low) + above) / 2;
    if (static_cast<double>(static_cast<float>(middle)) != middle) continue;  // finer than any float
    const auto half = static_cast<float>(middle);
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    CHECK(Narrow(half).bits == even, "%x", bits);
    CHECK(Narrow(std::nextafter(half, 0.0f)).bits == bits, "%x", bits);
    CHECK(Narrow(std::nextafter(half, INFINITY)).bits == bits + 1, "%x", bits);
  }
  CHECK(Narrow(INFINITY).bits == infinity && std::isinf(float(Narrow::from_bits(infinity))));
  CHECK(std::isnan(float(Narrow(NAN))) && std::isnan(float(Narrow(-NAN))));
  CHECK(Narrow{}.bits == 0 && float(Narrow{}) == 0);
}

void numbers() {
  check_rounding<ring::float16>(0x7c00);
  check_rounding<ring::bfloat16>(0x7f80);
  CHECK(float(ring::float16::from_bits(1)) == std::ldexp(1.0f, -24));
  CHECK(float(ring::float16::from_bits(0xc248)) == -3.140625f);
  CHECK(float(ring::bfloat16::from_bits(0x4049)) == 3.140625f);
  CHECK(std::signbit(float(ring::float16::from_bits(0x8000))));
  // The smallest NaN's fraction lies in bits that are cut off.
  float least;
  const std::uint32_t bits = 0x7f800001;
  std::memcpy(&least, &bits, sizeof least);
  CHECK(std::isnan(float(ring::float16(least))) && std::isnan(float(ring::bfloat16(least))));
}

void names() {
  CHECK(ring::version() == ring::header_version && ring::abi_version() == ring::header_abi_version);
  CHECK(ring::version_string() == ring_version_string());
  CHECK(ring::name(ring::dtype::bfloat16) == "bfloat16" && ring::name(ring::op::bxor) == "bxor");
  CHECK(ring::name(ring::status::timeout) == "RING_STATUS_TIMEOUT");
  CHECK(ring::describe(ring::status::timeout) == ring_status_string(RING_STATUS_TIMEOUT));
  for (std::int32_t i = -1; i < 20; i++)
    CHECK(ring::size_of(static_cast<ring::dtype>(i)) == ring_dtype_size(i), "dtype %d", i);
  const std::error_code code = ring::status::peer_lost;
  CHECK(code == ring::status::peer_lost && code != ring::status::timeout && code.category().name() == std::string("ring"));
  CHECK(code.message() == ring_status_string(RING_STATUS_PEER_LOST));
  CHECK(ring::make_error_code(ring::status::timeout) == std::errc::timed_out);
  CHECK(ring::make_error_code(ring::status::aborted) == std::errc::operation_canceled);
  CHECK(!ring::make_error_code(ring::status::ok) && code != std::errc::timed_out);
}

void configurations() {
  ring::config config;
  ring_config_t c = config.native(), plain;
  ring_config_init(&plain, sizeof plain);
  CHECK(*c.job_id == '\0');
  c.job_id = nullptr;
  CHECK(std::memcmp(&c, &plain, sizeof c) == 0, "a default isn't C's");
  config.rank = 2;
  config.size = 3;
  config.hostfile = "a";
  config.hosts = "";
  config.rendezvous = "c";
  config.job_id = "d";
  config.secret = std::string("0123\0" "567", 8);
  config.connect_timeout = ring::infinite;
  config.timeout = std::chrono::milliseconds(-5);
  config.connections = 4;
  config.wire = ring::wire::mlx;
  config.transport = ring::transport::tcp;
  config.flags = ring::wide_accumulation;
  config.trace_dir = "e";
  config.stall_warning = std::chrono::seconds(2);
  c = config.native();
  CHECK(c.rank == 2 && c.size == 3 && *c.hostfile == 'a' && *c.hosts == '\0' && *c.rendezvous == 'c' && *c.job_id == 'd');
  CHECK(c.secret_len == 8 && std::memcmp(c.secret, "0123\0" "567", 8) == 0);
  CHECK(c.connect_timeout_ms == RING_TIMEOUT_INFINITE && c.timeout_ms == 1 && c.connections == 4);
  CHECK(c.wire == RING_WIRE_MLX && c.transport == RING_TRANSPORT_TCP && c.flags == RING_FLAG_WIDE_ACCUMULATION);
  CHECK(*c.trace_dir == 'e' && c.stall_warning_ms == 2000);
  config.timeout = std::chrono::milliseconds(RING_TIMEOUT_INFINITE) - std::chrono::milliseconds(1);
  CHECK(config.native().timeout_ms == RING_TIMEOUT_INFINITE - 1);
}

void empty_handles() {
  ring::group none;
  CHECK(!none && none.rank() == -1 && none.size() == -1 && !none.native_handle() && !none.release());
  std::array<float, 3> three{};
  std::array<float, 2> two{};
  for (const auto &how : {thrown_by([&] { none.all_reduce(three, ring::op::sum); }), thrown_by([&] { none.barrier(); }),
                          thrown_by([&] { none.all_to_all(three, three); }), thrown_by([&] { none.all_gather(three, two); }),
                          thrown_by([&] { none.all_reduce(three, two, ring::op::sum); }), thrown_by([&] { (void)none.split(0); }),
                          thrown_by([&] { none.all_gather_v(three, two, {}); }), thrown_by([&] { none.abort(); }),
                          thrown_by([&] { none.all_to_all_v(three, {}, two, {}); }), thrown_by([&] { (void)none.stats(); }),
                          thrown_by([&] { none.reduce_scatter_v(three, two, {}, ring::op::sum); }),
                          thrown_by([&] { (void)none.failure(); }), thrown_by([&] { (void)none.barrier_async(); })}) {
    CHECK(how.status == ring::status::invalid_argument && how.rank == -1, "%s", how.text.c_str());
    CHECK(how.text.find("group is NULL") != std::string::npos, "%s", how.text.c_str());
  }
  ring::future nothing;
  CHECK(!nothing.valid());
  CHECK(thrown_by([&] { nothing.wait(); }).status == ring::status::invalid_argument);
  std::error_code code;
  CHECK(!nothing.ready(code) && code == ring::status::invalid_argument);
  none.destroy();
  // A success clears what was stored.
  ring::config alone;
  alone.rank = 0;
  alone.hosts = "[[\"127.0.0.1:1\"]]";
  ring::failure how;
  how.status = ring::status::timeout;
  how.text = "old";
  auto one = ring::group::create(alone, how);
  CHECK(one && !how && how.text.empty());
  one.barrier(code);
  CHECK(!code);
  alone.rank = 5;
  auto refused = ring::group::create(alone, how);
  CHECK(!refused && how && how.status == ring::status::invalid_config && !how.text.empty());
  CHECK(thrown_by([&] { (void)ring::group::create(alone); }).text == how.text);
  // Handles that come from C and go there.
  ring_group_t *handle = one.release();
  CHECK(handle && !one && one.rank() == -1);
  ring::group again(handle);
  CHECK(again.size() == 1 && again.native_handle() == handle);
  auto &same = again;
  again = std::move(same);
  ring::group moved(std::move(again));
  CHECK(!again && moved.rank() == 0);  // NOLINT: what a moved one is, is promised
}

}  // namespace

void types() {
  numbers();
  names();
  configurations();
  empty_handles();
}
