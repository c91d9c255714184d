/**
 * @file ring.hpp
 * libring from C++17: groups and futures that own what they stand for, buffers that know their length and type,
 * failures as exceptions or as values. A header alone, over ring.h, which says what each call does, what blocks, and each
 * status with its cause.
 *
 * - A function that can fail ends with a ring::report. Left out, a failure is thrown as ring::error; given a
 *   ring::failure or a std::error_code, it is stored there (success clears it), and what is returned is empty.
 * - A buffer is anything with std::data and std::size, such as a std::vector, std::array, array or std::span, or a
 *   ring::span(pointer, count). Its element type is the call's. Counts and displacements are std::size_t, such as in a
 *   std::vector<std::size_t>.
 * - Nothing is refused here: where the lengths of a call's buffers don't fit each other it is given to the library as one
 *   that it refuses, so that it takes its number as any refused call does. Nothing is read or written then.
 * - Any thread may call any function on any group, as in C.
 */
#ifndef RING_HPP
#define RING_HPP

#include "ring.h"

#include <atomic>
#include <chrono>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

/** libring. */
namespace ring {

/* ---- Enumerations: the numbers are those of ring.h ---- */

/** What a call returns; see ring_status. */
enum class status : std::int32_t {
  ok = RING_STATUS_OK,                             /**< The call succeeded. */
  invalid_argument = RING_STATUS_INVALID_ARGUMENT, /**< An argument is wrong; lengths don't fit; an empty group. */
  invalid_state = RING_STATUS_INVALID_STATE,       /**< A forked child's call, or one from a callback. */
  unsupported = RING_STATUS_UNSUPPORTED,           /**< Not in this build, or not defined for the type. */
  invalid_config = RING_STATUS_INVALID_CONFIG,     /**< The configuration is incomplete or wrong. */
  connect_failed = RING_STATUS_CONNECT_FAILED,     /**< The ring, or a connection, could not be formed. */
  auth_failed = RING_STATUS_AUTH_FAILED,           /**< A peer did not prove that it knows the secret. */
  mismatch = RING_STATUS_MISMATCH,                 /**< Ranks made calls that differ. */
  peer_lost = RING_STATUS_PEER_LOST,               /**< A peer has died, left or can't be reached. */
  timeout = RING_STATUS_TIMEOUT,                   /**< No progress for the group's timeout. */
  aborted = RING_STATUS_ABORTED,                   /**< The group was aborted or destroyed. */
  system = RING_STATUS_SYSTEM,                     /**< This host refused something. */
  out_of_memory = RING_STATUS_OUT_OF_MEMORY,       /**< Memory could not be allocated. */
  internal = RING_STATUS_INTERNAL,                 /**< The library has a fault of its own. */
  pending = RING_STATUS_PENDING,                   /**< The operation goes on; see future::wait_for. */
};

/** The type of an array's elements; see ring_dtype. */
enum class dtype : std::int32_t {
  boolean = RING_DTYPE_BOOL,        /**< bool */
  uint8 = RING_DTYPE_UINT8,         /**< std::uint8_t, std::byte */
  uint16 = RING_DTYPE_UINT16,       /**< std::uint16_t */
  uint32 = RING_DTYPE_UINT32,       /**< std::uint32_t */
  uint64 = RING_DTYPE_UINT64,       /**< std::uint64_t */
  int8 = RING_DTYPE_INT8,           /**< std::int8_t */
  int16 = RING_DTYPE_INT16,         /**< std::int16_t */
  int32 = RING_DTYPE_INT32,         /**< std::int32_t */
  int64 = RING_DTYPE_INT64,         /**< std::int64_t */
  float16 = RING_DTYPE_FLOAT16,     /**< ring::float16, and the compiler's own where it has one */
  float32 = RING_DTYPE_FLOAT32,     /**< float */
  float64 = RING_DTYPE_FLOAT64,     /**< double */
  bfloat16 = RING_DTYPE_BFLOAT16,   /**< ring::bfloat16, and the compiler's own where it has one */
  complex64 = RING_DTYPE_COMPLEX64, /**< std::complex<float> */
};

/** A reduction; see ring_op. */
enum class op : std::int32_t {
  sum = RING_OP_SUM,   /**< Sum; of bool: or. */
  max = RING_OP_MAX,   /**< Largest; of bool: or. */
  min = RING_OP_MIN,   /**< Smallest; of bool: and. */
  prod = RING_OP_PROD, /**< Product; of bool: and. */
  mean = RING_OP_MEAN, /**< Sum, divided once by the group's size; of floating-point and complex types. */
  band = RING_OP_BAND, /**< Bitwise and, of bool and integers, like the next two. */
  bor = RING_OP_BOR,   /**< Bitwise or. */
  bxor = RING_OP_BXOR, /**< Bitwise exclusive or. */
};

/** What goes over the connections; see ring_wire. */
enum class wire : std::int32_t {
  native = RING_WIRE_NATIVE, /**< libring's own protocol. */
  mlx = RING_WIRE_MLX,       /**< What stock MLX processes speak. */
};

/** How ranks reach each other; see ring_transport. */
enum class transport : std::int32_t {
  automatic = RING_TRANSPORT_AUTO, /**< The best that both sides have. */
  tcp = RING_TRANSPORT_TCP,        /**< TCP. */
  shm = RING_TRANSPORT_SHM,        /**< Shared memory between ranks of one host. */
};

/** How much a log line matters; see ring_log_level. */
enum class log_level : std::int32_t {
  error = RING_LOG_LEVEL_ERROR, /**< A group has failed. */
  warn = RING_LOG_LEVEL_WARN,   /**< Something is wrong, and the group lives on. */
  info = RING_LOG_LEVEL_INFO,   /**< What a person who watches would like to know. */
  debug = RING_LOG_LEVEL_DEBUG, /**< Everything. */
};

/** For config::flags: 16-bit floats are summed in float32; see RING_FLAG_WIDE_ACCUMULATION. */
inline constexpr std::uint32_t wide_accumulation = RING_FLAG_WIDE_ACCUMULATION;
/** A timeout that is never over. Any of UINT32_MAX milliseconds (49 days) or more counts as this one. */
inline constexpr std::chrono::milliseconds infinite = (std::chrono::milliseconds::max)();
/** A rank that is none, for group::send_recv. */
inline constexpr int no_rank = -1;

/* ---- Versions and names ---- */

/** The version of this header, to compare with version(). */
inline constexpr std::uint32_t header_version = RING_VERSION;
/** The ABI of this header, to compare with abi_version(). */
inline constexpr std::uint32_t header_abi_version = RING_ABI_VERSION;

/** The version of the library that is loaded: (major << 16) | (minor << 8) | patch. */
[[nodiscard]] inline std::uint32_t version() noexcept { return ring_version(); }
/** The same as text, such as "0.1.0". */
[[nodiscard]] inline std::string_view version_string() noexcept { return ring_version_string(); }
/** The ABI of the library that is loaded. */
[[nodiscard]] inline std::uint32_t abi_version() noexcept { return ring_abi_version(); }

/** The type's name, such as "float32"; "unknown" for a value that isn't one. */
[[nodiscard]] inline std::string_view name(dtype type) noexcept {
  return ring_dtype_name(static_cast<ring_dtype_t>(type));
}
/** The reduction's name, such as "sum"; "unknown" for a value that isn't one. */
[[nodiscard]] inline std::string_view name(op reduction) noexcept {
  return ring_op_name(static_cast<ring_op_t>(reduction));
}
/** The status's name in C, such as "RING_STATUS_TIMEOUT". */
[[nodiscard]] inline std::string_view name(status s) noexcept {
  return ring_status_name(static_cast<ring_status_t>(s));
}
/** One sentence about the status for a person. */
[[nodiscard]] inline std::string_view describe(status s) noexcept {
  return ring_status_string(static_cast<ring_status_t>(s));
}

/** Bytes of one element; 0 for a value that isn't a type. */
[[nodiscard]] constexpr std::size_t size_of(dtype type) noexcept {
  switch (type) {
    case dtype::boolean:
    case dtype::uint8:
    case dtype::int8: return 1;
    case dtype::uint16:
    case dtype::int16:
    case dtype::float16:
    case dtype::bfloat16: return 2;
    case dtype::uint32:
    case dtype::int32:
    case dtype::float32: return 4;
    case dtype::uint64:
    case dtype::int64:
    case dtype::float64:
    case dtype::complex64: return 8;
  }
  return 0;
}

/* ---- Types ---- */

/** An IEEE 754 binary16 as its bits. It becomes a float by itself, and is made of one by rounding to nearest even. */
struct float16 {
  std::uint16_t bits; /**< Sign, 5 bits of exponent, 10 of fraction. */

  /** Indeterminate, as any number is that isn't given a value; float16{} is 0. */
  float16() = default;
  /** The nearest value, ties to even; a NaN stays one. */
  explicit float16(float value) noexcept {
    std::uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    const std::uint32_t sign = wide >> 16 & 0x8000u, rest = wide & 0x7fffffffu;
    bits = static_cast<std::uint16_t>(sign | narrowed(rest));
  }
  /** The same value. */
  operator float() const noexcept {
    const std::uint32_t exponent = bits >> 10 & 31u, fraction = bits & 0x3ffu;
    std::uint32_t wide = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    if (exponent == 0) { /* zero or subnormal: so many times 2^-24, exactly */
      const float value = static_cast<float>(fraction) * 5.9604644775390625e-8f;
      return wide ? -value : value;
    }
    wide |= (exponent == 31 ? 255u : exponent + 112u) << 23 | fraction << 13;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  /** The value that has these bits. */
  [[nodiscard]] static constexpr float16 from_bits(std::uint16_t value) noexcept { return float16(value, 0); }

 private:
  constexpr float16(std::uint16_t value, int) noexcept : bits(value) {}

  /* A float's bits without its sign as those of the nearest binary16. A carry out of the fraction raises the exponent. */
  static std::uint32_t narrowed(std::uint32_t wide) noexcept {
    if (wide > 0x7f800000u) return 0x7e00u | (wide >> 13 & 0x3ffu);
    if (wide >= 0x47800000u) return 0x7c00u;  /* 2^16 and more */
    const std::uint32_t exponent = wide >> 23;
    if (exponent < 102) return 0;             /* below 2^-25, half of the smallest */
    if (exponent >= 113) return (wide - (112u << 23) + 0xfffu + (wide >> 13 & 1u)) >> 13;
    const std::uint32_t fraction = (wide & 0x7fffffu) | 0x800000u, shift = 126 - exponent;
    return (fraction + (1u << (shift - 1)) - 1 + (fraction >> shift & 1u)) >> shift;
  }
};

/** The upper half of a binary32 as its bits. It becomes a float by itself, and is made of one by rounding to nearest even. */
struct bfloat16 {
  std::uint16_t bits; /**< Sign, 8 bits of exponent, 7 of fraction. */

  /** Indeterminate, as any number is that isn't given a value; bfloat16{} is 0. */
  bfloat16() = default;
  /** The nearest value, ties to even; a NaN stays one. */
  explicit bfloat16(float value) noexcept {
    std::uint32_t wide;
    std::memcpy(&wide, &value, sizeof wide);
    const bool is_nan = (wide & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<std::uint16_t>(is_nan ? wide >> 16 | 0x40u : (wide + 0x7fffu + (wide >> 16 & 1u)) >> 16);
  }
  /** The same value. */
  operator float() const noexcept {
    const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
  /** The value that has these bits. */
  [[nodiscard]] static constexpr bfloat16 from_bits(std::uint16_t value) noexcept { return bfloat16(value, 0); }

 private:
  constexpr bfloat16(std::uint16_t value, int) noexcept : bits(value) {}
};

/** @cond */
namespace detail {

/* By size and signedness, since which of long and long long is std::int64_t, and whether char has a sign, is the
 * platform's. */
template <class T, class = void>
struct builtin_dtype {};
template <class T>
struct builtin_dtype<T, std::enable_if_t<std::is_integral_v<T> && (sizeof(T) <= 8)>> {
  static constexpr dtype value = sizeof(T) == 1   ? (std::is_signed_v<T> ? dtype::int8 : dtype::uint8)
                                 : sizeof(T) == 2 ? (std::is_signed_v<T> ? dtype::int16 : dtype::uint16)
                                 : sizeof(T) == 4 ? (std::is_signed_v<T> ? dtype::int32 : dtype::uint32)
                                                  : (std::is_signed_v<T> ? dtype::int64 : dtype::uint64);
};
template <dtype Type>
struct is_dtype {
  static constexpr dtype value = Type;
};
template <> struct builtin_dtype<bool> : is_dtype<dtype::boolean> {};
template <> struct builtin_dtype<std::byte> : is_dtype<dtype::uint8> {};
template <> struct builtin_dtype<float> : is_dtype<dtype::float32> {};
template <> struct builtin_dtype<double> : is_dtype<dtype::float64> {};
template <> struct builtin_dtype<std::complex<float>> : is_dtype<dtype::complex64> {};
template <> struct builtin_dtype<float16> : is_dtype<dtype::float16> {};
template <> struct builtin_dtype<bfloat16> : is_dtype<dtype::bfloat16> {};
/* Where C++23 has std::float16_t and std::bfloat16_t, gcc's are these. */
#if defined(__FLT16_MANT_DIG__)
__extension__ typedef _Float16 compiler_float16;
template <> struct builtin_dtype<compiler_float16> : is_dtype<dtype::float16> {};
#endif
#if defined(__BFLT16_MANT_DIG__)
__extension__ typedef __bf16 compiler_bfloat16;
template <> struct builtin_dtype<compiler_bfloat16> : is_dtype<dtype::bfloat16> {};
#endif
static_assert(std::numeric_limits<float>::is_iec559 && std::numeric_limits<double>::is_iec559);

}  // namespace detail
/** @endcond */

/**
 * The dtype of a C++ type, as `value`: every integer type by its size and sign, bool, std::byte, float, double,
 * std::complex<float>, ring::float16, ring::bfloat16 and the compiler's own 16-bit floats. Specialise it, with a member
 * `static constexpr ring::dtype value`, for a type of your own that has the same representation.
 */
template <class T>
struct dtype_of : detail::builtin_dtype<T> {};

/** The dtype of a C++ type, const or not. */
template <class T>
inline constexpr dtype dtype_v = dtype_of<std::remove_cv_t<T>>::value;

/* ---- Buffers ---- */

/** @cond */
namespace detail {

template <class C>
using pointer_of = decltype(std::data(std::declval<C &>()));
template <class C>
using element_of = std::remove_pointer_t<pointer_of<C>>;

template <class C, class = void>
struct is_buffer : std::false_type {};
template <class C>
struct is_buffer<C, std::void_t<pointer_of<C>, decltype(std::size(std::declval<C &>()))>>
    : std::is_pointer<pointer_of<C>> {};

/* A view has its elements elsewhere: a const one, or one that is about to end, gives them as well. */
template <class C, class = void>
struct is_view : std::false_type {};
template <class C>
struct is_view<C, std::enable_if_t<is_buffer<const C>::value && !std::is_array_v<C>>>
    : std::bool_constant<!std::is_const_v<element_of<const C>>> {};

}  // namespace detail
/** @endcond */

/** A pointer and a count: elements of someone else's, which are read, or written unless T is const. */
template <class T>
class span {
 public:
  using element_type = T;                      /**< As it is given. */
  using value_type = std::remove_cv_t<T>;      /**< Without const. */

  /** No elements. */
  constexpr span() noexcept = default;
  /** `size` elements from `data` on. */
  constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
  /** What {0, 3} would be: a list of numbers is no span. */
  span(std::nullptr_t, std::size_t) = delete;
  /** The elements of anything contiguous. */
  template <class C, class = std::enable_if_t<detail::is_buffer<std::remove_reference_t<C>>::value &&
                                              std::is_convertible_v<detail::element_of<std::remove_reference_t<C>> (*)[],
                                                                    T (*)[]>>>
  constexpr span(C &&elements) noexcept : data_(std::data(elements)), size_(std::size(elements)) {}

  /** The first element. */
  [[nodiscard]] constexpr T *data() const noexcept { return data_; }
  /** How many they are. */
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  /** Whether there are none. */
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  /** The first. */
  [[nodiscard]] constexpr T *begin() const noexcept { return data_; }
  /** Behind the last. */
  [[nodiscard]] constexpr T *end() const noexcept { return data_ + size_; }
  /** One of them; `index` is below size(). */
  [[nodiscard]] constexpr T &operator[](std::size_t index) const noexcept { return data_[index]; }
  /** `count` elements from `offset` on, which are there. */
  [[nodiscard]] constexpr span subspan(std::size_t offset, std::size_t count) const noexcept {
    return span(data_ + offset, count);
  }

 private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};

/** ring::span(vector) has the vector's elements. */
template <class C>
span(C &&) -> span<detail::element_of<std::remove_reference_t<C>>>;

/* ---- Failures ---- */

/** How a call has failed, or that it hasn't. */
struct failure {
  ring::status status = ring::status::ok; /**< ok where nothing has failed. */
  /** The rank at fault, -1 if it isn't known, takes two, or if the group goes on: a call that was refused names none. */
  int rank = -1;
  int detected_by = -1;        /**< The rank that saw it first, -1 if not known. */
  int os_error = 0;            /**< errno, 0 if none. */
  std::uint64_t sequence = 0;  /**< Number of the collective or message that failed, from 1; 0 between calls. */
  std::string text;            /**< One line: the call, the rank and its address, the OS error, the first cause. */

  /** Whether there is one. */
  explicit operator bool() const noexcept { return status != ring::status::ok; }
};

/** The category of a ring::status as a std::error_code. */
[[nodiscard]] inline const std::error_category &category() noexcept {
  class ring_category final : public std::error_category {
   public:
    const char *name() const noexcept override { return "ring"; }
    std::string message(int value) const override { return ring_status_string(value); }
    std::error_condition default_error_condition(int value) const noexcept override {
      switch (value) {
        case RING_STATUS_INVALID_ARGUMENT: return std::errc::invalid_argument;
        case RING_STATUS_UNSUPPORTED: return std::errc::not_supported;
        case RING_STATUS_TIMEOUT: return std::errc::timed_out;
        case RING_STATUS_ABORTED: return std::errc::operation_canceled;
        case RING_STATUS_OUT_OF_MEMORY: return std::errc::not_enough_memory;
        default: return std::error_condition(value, *this);
      }
    }
  };
  static const ring_category only;
  return only;
}

/** The status as a std::error_code, whose == takes a ring::status, too. */
[[nodiscard]] inline std::error_code make_error_code(status s) noexcept {
  return std::error_code(static_cast<int>(s), category());
}

/** A failure that is thrown; what() is its text. */
class error : public std::runtime_error {
 public:
  /** The failure. */
  explicit error(const failure &f)
      : std::runtime_error(f.text), status_(f.status), rank_(f.rank), detected_by_(f.detected_by),
        os_error_(f.os_error), sequence_(f.sequence) {}

  /** What the call returned. */
  [[nodiscard]] ring::status status() const noexcept { return status_; }
  /** See failure::rank. */
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /** See failure::detected_by. */
  [[nodiscard]] int detected_by() const noexcept { return detected_by_; }
  /** See failure::os_error. */
  [[nodiscard]] int os_error() const noexcept { return os_error_; }
  /** See failure::sequence. */
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }
  /** The status as a std::error_code. */
  [[nodiscard]] std::error_code code() const noexcept { return make_error_code(status_); }

 private:
  ring::status status_;
  int rank_, detected_by_, os_error_;
  std::uint64_t sequence_;
};

/**
 * Where a call's failure goes, as its last argument: left out, it is thrown; a ring::failure or a std::error_code
 * gets it, and is cleared where the call succeeds. Without exceptions (-fno-exceptions) what would be thrown ends the
 * program.
 */
class report {
 public:
  /** Failures are thrown. */
  constexpr report() noexcept = default;
  /** They are stored, with all that is known. */
  constexpr report(ring::failure &to) noexcept : failure_(&to) {}
  /** Their status is stored. */
  constexpr report(std::error_code &to) noexcept : code_(&to) {}

  /** Tells how a call has ended. */
  void operator()(ring::failure &&how) const {
    if (failure_) {
      *failure_ = std::move(how);
    } else if (code_) {
      *code_ = how ? make_error_code(how.status) : std::error_code();
    } else if (how) {
#if defined(__cpp_exceptions)
      throw error(how);
#else
      std::terminate();
#endif
    }
  }

 private:
  ring::failure *failure_ = nullptr;
  std::error_code *code_ = nullptr;
};

/** @cond */
namespace detail {

/* A text of the library's, from a function like ring_last_error. Where memory is short it is empty: the status counts. */
template <class Read>
std::string text(Read read) noexcept {
#if defined(__cpp_exceptions)
  try {
#endif
    std::string got(read(nullptr, 0), '\0');
    read(got.data(), got.size() + 1);
    return got;
#if defined(__cpp_exceptions)
  } catch (...) {
    return std::string();
  }
#endif
}

/* A group's handle, which its futures know, too: they tell the rank at fault, and may outlive it. */
struct anchor {
  explicit anchor(ring_group_t *handle) noexcept : group(handle) {}

  std::mutex mutex;                   /* held while the failure is read, so that the group isn't destroyed meanwhile */
  std::atomic<ring_group_t *> group;  /* NULL once it is destroyed or released */
  ring_failure_t last = {sizeof(ring_failure_t), RING_STATUS_OK, -1, -1, 0, 0}; /* what it was then */

  ring_failure_t read() {
    const std::lock_guard<std::mutex> locked(mutex);
    return read_locked();
  }
  /* Takes the handle away. */
  ring_group_t *take() {
    const std::lock_guard<std::mutex> locked(mutex);
    last = read_locked();
    return group.exchange(nullptr);
  }

 private:
  ring_failure_t read_locked() {
    ring_failure_t now = last;
    ring_group_t *handle = group.load();
    if (handle && ring_group_failure(handle, &now) != RING_STATUS_OK) now = last;
    return now;
  }
};

/* Lengths of two buffers of a call, and whether they are as the call has them. */
struct lengths {
  const char *call, *rule;  /* no rule where one has the other's length for each rank */
  std::size_t send, recv;
  bool fit;
  bool in_send = false;     /* which one, */
  int ranks = 0;            /* and how many they are */

  /* What the library is told; it refuses the count that stands for what doesn't fit, since no memory holds so many. */
  std::size_t count(std::size_t elements) const noexcept {
    return fit ? elements : (std::numeric_limits<std::size_t>::max)();
  }
  std::string text() const {
    const std::string name(call);
    if (rule) return name + ": send has " + std::to_string(send) + " elements and recv " + std::to_string(recv) + ", but " + rule;
    const std::uint64_t whole = in_send ? send : recv, part = in_send ? recv : send;
    return name + (in_send ? ": send has " : ": recv has ") + std::to_string(whole) + " elements and needs " +
           std::to_string(part * static_cast<std::uint64_t>(ranks)) + (in_send ? " (recv's " : " (send's ") +
           std::to_string(part) + " for each of " + std::to_string(ranks) + " ranks)";
  }
};

/* What a call that returned this has to tell. To be called next on the same thread, which has the text. */
inline failure failure_of(ring_status_t returned, anchor *group, const lengths *sizes = nullptr) {
  failure how;
  if (returned == RING_STATUS_OK) return how;
  how.status = static_cast<status>(returned);
  const bool is_ours = sizes && !sizes->fit && returned == RING_STATUS_INVALID_ARGUMENT && group && group->group.load();
  how.text = is_ours ? sizes->text() : text(ring_last_error);
  if (!group) return how;
  const ring_failure_t of_group = group->read();
  /* Another status than the group's is one of this call alone. */
  if (of_group.status != returned) return how;
  how.rank = of_group.rank;
  how.detected_by = of_group.detected_by;
  how.os_error = of_group.os_error;
  how.sequence = of_group.sequence;
  return how;
}

/* In a configuration 0 is the default, so a negative rest of a deadline must not become it. */
inline std::uint32_t to_ms(std::chrono::milliseconds time, std::uint32_t least) noexcept {
  const auto count = time.count();
  if (count == 0) return 0;
  if (count < 0) return least;
  return static_cast<std::uint64_t>(count) >= RING_TIMEOUT_INFINITE ? RING_TIMEOUT_INFINITE
                                                                    : static_cast<std::uint32_t>(count);
}

constexpr ring_op_t number(op how) noexcept { return static_cast<ring_op_t>(how); }
template <class T, class = void>
struct has_dtype : std::false_type {};
template <class T>
struct has_dtype<T, std::void_t<decltype(dtype_of<T>::value)>> : std::true_type {};
/* What a caller did wrong is said by a static_assert. Nothing is instantiated then that would fail before it, or after it. */
template <class T>
constexpr ring_dtype_t number() noexcept {
  static_assert(has_dtype<T>::value,
                "this element type has no ring dtype: specialise ring::dtype_of, or reduce by a function");
  if constexpr (has_dtype<T>::value) {
    static_assert(std::is_trivially_copyable_v<T>, "elements travel as their bytes");
    static_assert(sizeof(T) == size_of(dtype_v<T>), "dtype_of<T> has another size than T");
    return static_cast<ring_dtype_t>(dtype_v<T>);
  } else {
    return -1;
  }
}

template <class C>
constexpr bool checked_buffer() noexcept {
  static_assert(is_buffer<C>::value, "a buffer is something with std::data and std::size, such as std::vector; one value is "
                                     "ring::span(&x, 1); std::vector<bool> is none");
  return is_buffer<C>::value;
}

/* What is sent. */
template <class C>
constexpr auto input(const C &buffer) noexcept {
  if constexpr (checked_buffer<const C>()) {
    return span<const std::remove_cv_t<element_of<const C>>>(std::data(buffer), std::size(buffer));
  } else {
    return span<const std::byte>();
  }
}

/* What is received, or sent after the call has returned: not the elements of an object that is about to end. */
template <class C>
constexpr auto lasting(C &&buffer) noexcept {
  using bare = std::remove_reference_t<C>;
  if constexpr (checked_buffer<bare>()) {
    /* A view of const elements is known by being no more than its bytes: what owns them isn't. */
    static_assert(std::is_lvalue_reference_v<C> || is_view<std::remove_cv_t<bare>>::value ||
                      (std::is_const_v<element_of<bare>> && std::is_trivially_copyable_v<bare>),
                  "the buffer ends before the call does");
    return span<element_of<bare>>(std::data(buffer), std::size(buffer));
  } else {
    return span<std::byte>();
  }
}

template <class C>
constexpr auto output(C &&buffer) noexcept {
  using bare = std::remove_reference_t<C>;
  if constexpr (is_buffer<bare>::value) static_assert(!std::is_const_v<element_of<bare>>, "the buffer is const");
  return lasting(std::forward<C>(buffer));
}

template <class T>
constexpr ring_dtype_t type_of(span<T>) noexcept {
  return number<std::remove_cv_t<T>>();
}

/* The buffers of a call that has two. */
template <class T>
struct buffers {
  using element = T;
  static constexpr std::size_t bytes = sizeof(T);
  span<const T> in;
  span<T> out;

  static constexpr ring_dtype_t type() noexcept { return number<T>(); }
};
template <class Send, class Recv>
constexpr auto both(const Send &send, Recv &&recv) noexcept {
  const auto in = input(send);
  const auto out = output(std::forward<Recv>(recv));
  using element = typename decltype(out)::element_type;
  static_assert(std::is_same_v<typename decltype(in)::value_type, element>, "send and recv have elements of different types");
  return buffers<element>{in, out};
}

inline lengths alike(const char *call, std::size_t send, std::size_t recv) noexcept {
  return {call, "they must be as many", send, recv, send == recv};
}
/* `whole` is `ranks` times `part`; in an empty group anything fits, which is refused as such. */
inline bool holds(std::size_t whole, std::size_t part, int ranks) noexcept {
  if (ranks < 1) return true;
  const auto parts = static_cast<std::size_t>(ranks);
  return whole % parts == 0 && whole / parts == part;
}

inline std::size_t plus(std::size_t a, std::size_t b) noexcept {
  return a > (std::numeric_limits<std::size_t>::max)() - b ? (std::numeric_limits<std::size_t>::max)() : a + b;
}
/* Elements of a buffer with these parts. */
inline std::size_t extent(span<const std::size_t> counts, span<const std::size_t> displs) noexcept {
  std::size_t end = 0;
  for (std::size_t i = 0; i < counts.size(); i++) {
    if (displs.empty()) end = plus(end, counts[i]);
    else if (counts[i] > 0 && end < plus(displs[i], counts[i])) end = plus(displs[i], counts[i]);
  }
  return end;
}
/* Whether counts and displacements are one a rank, and their parts are the buffer, or lie in it. */
inline bool parts_fit(std::size_t elements, span<const std::size_t> counts, span<const std::size_t> displs,
                      int ranks) noexcept {
  const auto entries = static_cast<std::size_t>(ranks < 0 ? 0 : ranks);
  if (counts.size() != entries || !counts.data() || (!displs.empty() && displs.size() != entries)) return false;
  const std::size_t end = extent(counts, displs);
  return displs.empty() ? end == elements : end <= elements;
}

inline constexpr const char *packed_parts = "counts must have an entry for each rank, and their parts be in the buffers";

/* A reduction by a function of C++. What it throws waits for the call's end, as C may not be unwound. The elements
 * that it didn't reduce must not become numbers elsewhere: the group is aborted before the library goes on, which then
 * sends nothing more. A callback can't call on a group, so another thread does. */
template <class T, class Fn>
struct reduction {
  static_assert(std::is_trivially_copyable_v<T>, "elements travel as their bytes");
  static_assert(alignof(T) <= 16, "elements are aligned to 16 bytes at most");

  Fn &fn;
  ring_group_t *group;
  std::exception_ptr thrown = nullptr;

  static void run(void *acc, const void *input, std::size_t count, void *self) noexcept {
    auto &of = *static_cast<reduction *>(self);
    if (of.thrown) return;
#if defined(__cpp_exceptions)
    try {
      of.apply(static_cast<T *>(acc), static_cast<const T *>(input), count);
    } catch (...) {
      of.thrown = std::current_exception();
      try {
        std::thread([handle = of.group] { ring_group_abort(handle); }).join();
      } catch (const std::system_error &) { /* no thread to be had: rethrow() aborts, later */
      }
    }
#else
    of.apply(static_cast<T *>(acc), static_cast<const T *>(input), count);
#endif
  }

  void apply(T *acc, const T *input, std::size_t count) {
    if constexpr (std::is_invocable_v<Fn &, const T &, const T &>) {
      for (std::size_t i = 0; i < count; i++) acc[i] = static_cast<T>(fn(std::as_const(acc[i]), input[i]));
    } else {
      constexpr bool takes_many = std::is_invocable_v<Fn &, T *, const T *, std::size_t>;
      static_assert(takes_many, "the function is T(T acc, T in) or void(T *acc, const T *in, std::size_t count); "
                                "ring::op::sum is meant for RING_OP_SUM");
      if constexpr (takes_many) fn(acc, input, count);
    }
  }

  void rethrow() const {
    if (!thrown) return;
    ring_group_abort(group);
    std::rethrow_exception(thrown);
  }
};

}  // namespace detail
/** @endcond */

/* ---- Configuration ---- */

/** What a group is made of; see ring_config. Exactly one of hostfile, hosts and rendezvous is set. */
struct config {
  int rank = -1;                          /**< This rank, from 0. */
  int size = 0;                           /**< Ranks: with a rendezvous; else 0 or as many as there are hosts. */
  std::optional<std::string> hostfile;    /**< Path of a JSON hostfile, */
  std::optional<std::string> hosts;       /**< or its text, */
  std::optional<std::string> rendezvous;  /**< or "host:port" where rank 0 listens. */
  std::string job_id;                     /**< Ranks with another one are refused. */
  std::optional<std::string> secret;      /**< Shared secret: 16 to 4096 bytes of any kind. */
  std::chrono::milliseconds connect_timeout{0};  /**< For the whole of group::create; 0 is 60 s, ring::infinite none. */
  std::chrono::milliseconds timeout{0};          /**< Without progress, each call; 0 is 300 s, ring::infinite none. */
  std::uint32_t connections = 0;                 /**< Per neighbour and address; 0 is 1. */
  ring::wire wire = ring::wire::native;          /**< What goes over the connections. */
  ring::transport transport = ring::transport::automatic; /**< How ranks reach each other. */
  std::uint32_t flags = 0;                       /**< 0 or ring::wide_accumulation. */
  std::optional<std::string> trace_dir;          /**< Directory for traces, one file a rank. */
  std::chrono::milliseconds stall_warning{0};    /**< A call without progress for so long is logged; 0: none is. */

  /** The same in C. It points into this one, and is good as long as this one stays as it is. */
  [[nodiscard]] ring_config_t native() const & noexcept {
    const auto text = [](const std::optional<std::string> &it) { return it ? it->c_str() : nullptr; };
    ring_config_t c;
    ring_config_init(&c, sizeof c);
    c.rank = rank;
    c.size = size;
    c.hostfile = text(hostfile);
    c.hosts = text(hosts);
    c.rendezvous = text(rendezvous);
    c.job_id = job_id.c_str();
    c.secret = text(secret);
    c.secret_len = secret ? secret->size() : 0;
    c.connect_timeout_ms = detail::to_ms(connect_timeout, 1);
    c.timeout_ms = detail::to_ms(timeout, 1);
    c.connections = connections;
    c.wire = static_cast<ring_wire_t>(wire);
    c.transport = static_cast<ring_transport_t>(transport);
    c.flags = flags;
    c.trace_dir = text(trace_dir);
    c.stall_warning_ms = detail::to_ms(stall_warning, 1);
    return c;
  }
  /** Of one that is about to end there is none. */
  ring_config_t native() const && = delete;
};

/** What a group has counted; see ring_stats. */
struct stats {
  std::uint64_t operations = 0;        /**< Collectives and messages that have succeeded. */
  std::uint64_t bytes_sent = 0;        /**< On data connections, headers included. */
  std::uint64_t bytes_received = 0;    /**< Likewise. */
  std::chrono::nanoseconds busy{0};       /**< In calls. */
  std::chrono::nanoseconds wait_left{0};  /**< Of these, asleep for the left neighbour. */
  std::chrono::nanoseconds wait_right{0}; /**< For the right one. */
  std::uint64_t strangers_refused = 0; /**< Connections that were no peer's. */
};

/* ---- Futures ---- */

/**
 * A call that goes on beside its caller; see ring_request. Its buffers outlive it, and belong to the library until it is
 * done: those that are sent may be read meanwhile, no other. The destructor waits for its end. It may outlive its group.
 */
class [[nodiscard]] future {
 public:
  /** None. */
  future() noexcept = default;
  /** Takes over a request of C's, which is then destroyed here. Its failures name no rank. */
  explicit future(ring_request_t *request) noexcept : request_(request) {}
  /** Takes over another's call, and leaves it without. */
  future(future &&other) noexcept
      : request_(std::exchange(other.request_, nullptr)), group_(std::move(other.group_)) {}
  /** Waits for the end of its own call first. */
  future &operator=(future &&other) noexcept {
    future old(std::move(other));
    std::swap(request_, old.request_);
    std::swap(group_, old.group_);
    return *this;
  }
  future(const future &) = delete;
  future &operator=(const future &) = delete;
  ~future() { ring_request_destroy(request_); }

  /** Whether it has a call: not one that was refused, moved away or fetched by get(). */
  [[nodiscard]] bool valid() const noexcept { return request_ != nullptr; }
  /** Whether the call is done, with success or without. Never waits. */
  [[nodiscard]] bool ready(report to = {}) const {
    bool done = false;
    tell(ring_request_test(request_, &done), to);
    return done;
  }
  /** Waits for the call's end, and reports its failure. May be repeated, by several threads, too. */
  void wait(report to = {}) const { tell(ring_request_wait(request_, RING_TIMEOUT_INFINITE), to); }
  /** Waits for so long at most; whether it is done, with success or with a failure, which is reported. */
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(std::chrono::duration<Rep, Period> time, report to = {}) const {
    /* More than milliseconds can count would wrap, and so would less. */
    const std::chrono::duration<double> seconds(time);
    const bool is_long = seconds >= std::chrono::milliseconds(RING_TIMEOUT_INFINITE), is_over = !(seconds.count() > 0);
    const auto ms = is_long ? infinite : is_over ? infinite.zero() : std::chrono::ceil<std::chrono::milliseconds>(time);
    const ring_status_t got = ring_request_wait(request_, detail::to_ms(ms, 0));
    tell(got == RING_STATUS_PENDING ? RING_STATUS_OK : got, to);
    return got != RING_STATUS_PENDING;
  }
  /** Waits for the call's end, frees it, and reports its failure: once, after which valid() is false. */
  void get(report to = {}) {
    const future last(std::move(*this));
    last.wait(to);
  }

  /** The request in C, which stays this one's. */
  [[nodiscard]] ring_request_t *native_handle() const noexcept { return request_; }
  /** Gives the request away; the caller destroys it. */
  [[nodiscard]] ring_request_t *release() noexcept { return std::exchange(request_, nullptr); }

 private:
  friend class group;
  future(ring_request_t *request, std::shared_ptr<detail::anchor> group) noexcept
      : request_(request), group_(std::move(group)) {}
  void tell(ring_status_t returned, const report &to) const { to(detail::failure_of(returned, group_.get())); }

  ring_request_t *request_ = nullptr;
  std::shared_ptr<detail::anchor> group_;
};

/* ---- Groups ---- */

/**
 * A communicator: this process's place in a ring of processes; see ring_group. Its calls are those of ring.h: what a name
 * means, what blocks, which calls are collective and what is allowed in place is said there.
 *
 * It is moved, not copied, and its end is ring_group_destroy. One without a group, as a moved one is, has rank and size -1,
 * and its calls are invalid_argument. While other threads are in calls on it, end it with destroy(), not by its destructor.
 */
class group {
 public:
  /** None. */
  group() noexcept = default;
  /** Takes over a group of C's, which is then destroyed here. */
  explicit group(ring_group_t *handle) : anchor_(handle ? std::make_shared<detail::anchor>(handle) : nullptr) {}
  /** Takes over another's group, and leaves it without. */
  group(group &&) noexcept = default;
  /** Leaves its own ring first. */
  group &operator=(group &&other) noexcept {
    if (this != &other) {
      destroy();
      anchor_ = std::move(other.anchor_);
    }
    return *this;
  }
  group(const group &) = delete;
  group &operator=(const group &) = delete;
  ~group() { destroy(); }

  /** Joins the ring that the configuration describes: ring_group_create. */
  [[nodiscard]] static group create(const config &from, report to = {}) {
    const ring_config_t c = from.native();
    return made([&](ring_group_t **out) { return ring_group_create(&c, out); }, nullptr, to);
  }
  /** Joins the ring that the environment describes: ring_group_create_from_env. */
  [[nodiscard]] static group from_env(report to = {}) { return made(ring_group_create_from_env, nullptr, to); }
  /**
   * ring_group_split: ranks that give one color form a group, in the order of their keys. With a negative color there is
   * none, and what is returned is empty.
   */
  [[nodiscard]] group split(int color, int key = 0, report to = {}) {
    return made([&](ring_group_t **out) { return ring_group_split(native_handle(), color, key, out); }, anchor_.get(), to);
  }
  /** Leaves the ring: ring_group_destroy. Calls that other threads are in return aborted. */
  void destroy() noexcept {
    if (anchor_) ring_group_destroy(anchor_->take());
  }

  /** Whether there is a group. */
  [[nodiscard]] explicit operator bool() const noexcept { return native_handle() != nullptr; }
  /** The group in C, which stays this one's; NULL where there is none. */
  [[nodiscard]] ring_group_t *native_handle() const noexcept { return anchor_ ? anchor_->group.load() : nullptr; }
  /** Gives the group away; the caller destroys it. */
  [[nodiscard]] ring_group_t *release() noexcept { return anchor_ ? anchor_->take() : nullptr; }

  /** This process's rank, from 0. */
  [[nodiscard]] int rank() const noexcept { return ring_group_rank(native_handle()); }
  /** How many ranks there are. */
  [[nodiscard]] int size() const noexcept { return ring_group_size(native_handle()); }
  /** For calls that start later; 0 is 300 s, ring::infinite none. */
  void set_timeout(std::chrono::milliseconds timeout, report to = {}) {
    tell(ring_group_set_timeout(native_handle(), detail::to_ms(timeout, 1)), to);
  }
  /** Fails the group on every rank, also while threads are in calls: ring_group_abort. */
  void abort(report to = {}) { tell(ring_group_abort(native_handle()), to); }
  /** Whether and how the group has failed, also between calls; the same for every caller. */
  [[nodiscard]] ring::failure failure(report to = {}) const {
    ring_failure_t now = {};
    now.struct_size = sizeof now;
    ring::failure how;
    const ring_group_t *handle = native_handle();
    const ring_status_t got = ring_group_failure(handle, &now);
    tell(got, to);
    if (got != RING_STATUS_OK || now.status == RING_STATUS_OK) return how;
    how.status = static_cast<ring::status>(now.status);
    how.rank = now.rank;
    how.detected_by = now.detected_by;
    how.os_error = now.os_error;
    how.sequence = now.sequence;
    how.text = detail::text([&](char *buf, std::size_t len) { return ring_group_last_error(handle, buf, len); });
    return how;
  }
  /** What the group has counted. */
  [[nodiscard]] ring::stats stats(report to = {}) const {
    ring_stats_t s = {};
    s.struct_size = sizeof s;
    tell(ring_group_stats(native_handle(), &s), to);
    const auto time = [](std::uint64_t ns) { return std::chrono::nanoseconds(static_cast<std::int64_t>(ns)); };
    return {s.operations,       s.bytes_sent,        s.bytes_received,    time(s.busy_ns),
            time(s.wait_left_ns), time(s.wait_right_ns), s.strangers_refused};
  }

  /** @name Reductions
   * recv is as long as send; reduce_scatter's send is as long as all ranks' recv. recv may be send itself. */
  /** @{ */

  /** ring_all_reduce. */
  template <class Send, class Recv>
  void all_reduce(const Send &send, Recv &&recv, op how, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    const auto sizes = detail::alike("ring_all_reduce", b.in.size(), b.out.size());
    tell(ring_all_reduce(native_handle(), b.in.data(), b.out.data(), sizes.count(b.in.size()), b.type(),
                         detail::number(how)),
         to, &sizes);
  }
  /** ring_all_reduce in place. */
  template <class Buffer>
  void all_reduce(Buffer &&buffer, op how, report to = {}) {
    const auto view = detail::output(std::forward<Buffer>(buffer));
    all_reduce(view, view, how, to);
  }
  /** ring_reduce_scatter; this rank's part may be the one inside send. */
  template <class Send, class Recv>
  void reduce_scatter(const Send &send, Recv &&recv, op how, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    const auto sizes = send_holds("ring_reduce_scatter", b.in.size(), b.out.size());
    tell(ring_reduce_scatter(native_handle(), b.in.data(), b.out.data(), sizes.count(b.out.size()), b.type(),
                             detail::number(how)),
         to, &sizes);
  }
  /** ring_reduce_scatter_v: counts has an entry for each rank, whose parts are packed in send. */
  template <class Send, class Recv>
  void reduce_scatter_v(const Send &send, Recv &&recv, span<const std::size_t> counts, op how, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    const auto sizes = scattered("ring_reduce_scatter_v", b.in.size(), b.out.size(), counts);
    tell(ring_reduce_scatter_v(native_handle(), b.in.data(), b.out.data(), sizes.fit ? counts.data() : nullptr, b.type(),
                               detail::number(how)),
         to, &sizes);
  }
  /** ring_reduce. Elsewhere than at the root recv is ignored, and may be empty. */
  template <class Send, class Recv>
  void reduce(const Send &send, Recv &&recv, op how, int root, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    auto sizes = detail::alike("ring_reduce", b.in.size(), b.out.size());
    sizes.fit |= rank() != root;
    tell(ring_reduce(native_handle(), b.in.data(), b.out.data(), sizes.count(b.in.size()), b.type(),
                     detail::number(how), root),
         to, &sizes);
  }

  /** @} */
  /** @name Reductions by a function of your own
   * Elements of any trivially copyable type, such as a struct, are reduced by `T fn(T acc, T in)`, once for each, or by
   * `void fn(T *acc, const T *in, std::size_t count)`, which leaves its results in acc. It is associative and commutative,
   * runs on the calling thread, and makes no calls on groups. In a group of one it isn't called.
   *
   * What it throws is thrown here, once the call has ended, whatever the report. The group is aborted then, since the
   * numbers that it didn't make must not be missing elsewhere unnoticed: other ranks' calls are aborted, or, where they
   * had no need of this rank's reductions, right, and the next ones aborted. */
  /** @{ */

  /** ring_all_reduce_custom. */
  template <class Send, class Recv, class Fn,
            class = std::enable_if_t<!std::is_convertible_v<Fn, op> && !std::is_convertible_v<Fn, report>>>
  void all_reduce(const Send &send, Recv &&recv, Fn &&fn, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    detail::reduction<typename decltype(b)::element, std::remove_reference_t<Fn>> by{fn, native_handle()};
    const auto sizes = detail::alike("ring_all_reduce_custom", b.in.size(), b.out.size());
    const auto got =
        ring_all_reduce_custom(by.group, b.in.data(), b.out.data(), sizes.count(b.in.size()), b.bytes, by.run, &by);
    by.rethrow();
    tell(got, to, &sizes);
  }
  /** ring_all_reduce_custom in place. */
  template <class Buffer, class Fn,
            class = std::enable_if_t<!std::is_convertible_v<Fn, op> && !std::is_convertible_v<Fn, report>>>
  void all_reduce(Buffer &&buffer, Fn &&fn, report to = {}) {
    const auto view = detail::output(std::forward<Buffer>(buffer));
    all_reduce(view, view, std::forward<Fn>(fn), to);
  }
  /** ring_reduce_scatter_v_custom. */
  template <class Send, class Recv, class Fn,
            class = std::enable_if_t<!std::is_convertible_v<Fn, op> && !std::is_convertible_v<Fn, report>>>
  void reduce_scatter_v(const Send &send, Recv &&recv, span<const std::size_t> counts, Fn &&fn, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    detail::reduction<typename decltype(b)::element, std::remove_reference_t<Fn>> by{fn, native_handle()};
    const auto sizes = scattered("ring_reduce_scatter_v_custom", b.in.size(), b.out.size(), counts);
    const auto got = ring_reduce_scatter_v_custom(by.group, b.in.data(), b.out.data(), sizes.fit ? counts.data() : nullptr,
                                                  b.bytes, by.run, &by);
    by.rethrow();
    tell(got, to, &sizes);
  }

  /** @} */
  /** @name Data movement
   * What holds a part for each rank is size() times as long as the other buffer. In place one is this rank's part of
   * the other: `ring::span(all).subspan(rank * count, count)`. */
  /** @{ */

  /** ring_all_gather. */
  template <class Send, class Recv>
  void all_gather(const Send &send, Recv &&recv, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    const auto sizes = recv_holds("ring_all_gather", b.in.size(), b.out.size());
    tell(ring_all_gather(native_handle(), b.in.data(), b.out.data(), sizes.count(b.in.size()), b.type()), to, &sizes);
  }
  /** ring_all_gather_v: counts has an entry for each rank, whose parts are packed in recv. */
  template <class Send, class Recv>
  void all_gather_v(const Send &send, Recv &&recv, span<const std::size_t> counts, report to = {}) {
    all_gather_v(send, std::forward<Recv>(recv), counts, span<const std::size_t>(), to);
  }
  /** The same with each part's place in recv, which they needn't fill; no displacements at all pack them. */
  template <class Send, class Recv>
  void all_gather_v(const Send &send, Recv &&recv, span<const std::size_t> counts, span<const std::size_t> displs,
                    report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    const detail::lengths sizes = {"ring_all_gather_v", detail::packed_parts, b.in.size(), b.out.size(),
                                   size() < 1 || detail::parts_fit(b.out.size(), counts, displs, size())};
    tell(ring_all_gather_v(native_handle(), b.in.data(), b.in.size(), b.out.data(), sizes.fit ? counts.data() : nullptr,
                           displs.empty() ? nullptr : displs.data(), b.type()),
         to, &sizes);
  }
  /** ring_broadcast: the buffer is read on the root and written elsewhere. */
  template <class Buffer>
  void broadcast(Buffer &&buffer, int root, report to = {}) {
    const auto view = detail::output(std::forward<Buffer>(buffer));
    tell(ring_broadcast(native_handle(), view.data(), view.size(), detail::type_of(view), root), to);
  }
  /** ring_gather. Elsewhere than at the root recv is ignored, and may be empty. */
  template <class Send, class Recv>
  void gather(const Send &send, Recv &&recv, int root, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    auto sizes = recv_holds("ring_gather", b.in.size(), b.out.size());
    sizes.fit |= rank() != root;
    tell(ring_gather(native_handle(), b.in.data(), b.out.data(), sizes.count(b.in.size()), b.type(), root), to, &sizes);
  }
  /** ring_scatter. Elsewhere than at the root send is ignored, and may be empty. */
  template <class Send, class Recv>
  void scatter(const Send &send, Recv &&recv, int root, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    auto sizes = send_holds("ring_scatter", b.in.size(), b.out.size());
    sizes.fit |= rank() != root;
    tell(ring_scatter(native_handle(), b.in.data(), b.out.data(), sizes.count(b.out.size()), b.type(), root), to, &sizes);
  }
  /** ring_all_to_all: both buffers have a block for each rank. */
  template <class Send, class Recv>
  void all_to_all(const Send &send, Recv &&recv, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    const auto sizes = blocks("ring_all_to_all", b.in.size(), b.out.size());
    tell(ring_all_to_all(native_handle(), b.in.data(), b.out.data(), sizes.count(block(b.in.size())), b.type()),
         to, &sizes);
  }
  /** ring_all_to_all_v, with blocks packed in the order of ranks. */
  template <class Send, class Recv>
  void all_to_all_v(const Send &send, span<const std::size_t> send_counts, Recv &&recv,
                    span<const std::size_t> recv_counts, report to = {}) {
    const span<const std::size_t> packed;
    all_to_all_v(send, send_counts, packed, std::forward<Recv>(recv), recv_counts, packed, to);
  }
  /** The same with each block's place; no displacements at all pack them. */
  template <class Send, class Recv>
  void all_to_all_v(const Send &send, span<const std::size_t> send_counts, span<const std::size_t> send_displs,
                    Recv &&recv, span<const std::size_t> recv_counts, span<const std::size_t> recv_displs, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    const bool fit = detail::parts_fit(b.in.size(), send_counts, send_displs, size()) &&
                     detail::parts_fit(b.out.size(), recv_counts, recv_displs, size());
    const detail::lengths sizes = {"ring_all_to_all_v", detail::packed_parts, b.in.size(), b.out.size(), size() < 1 || fit};
    tell(ring_all_to_all_v(native_handle(), b.in.data(), sizes.fit ? send_counts.data() : nullptr,
                           send_displs.empty() ? nullptr : send_displs.data(), b.out.data(),
                           sizes.fit ? recv_counts.data() : nullptr,
                           recv_displs.empty() ? nullptr : recv_displs.data(), b.type()),
         to, &sizes);
  }
  /** ring_barrier. */
  void barrier(report to = {}) { tell(ring_barrier(native_handle()), to); }

  /** @} */
  /** @name Messages */
  /** @{ */

  /** ring_send. */
  template <class Buffer>
  void send(const Buffer &buffer, int dst, report to = {}) {
    const auto view = detail::input(buffer);
    tell(ring_send(native_handle(), view.data(), view.size(), detail::type_of(view), dst), to);
  }
  /** ring_recv: a message as long as the buffer. */
  template <class Buffer>
  void recv(Buffer &&buffer, int src, report to = {}) {
    const auto view = detail::output(std::forward<Buffer>(buffer));
    tell(ring_recv(native_handle(), view.data(), view.size(), detail::type_of(view), src), to);
  }
  /** ring_send_recv; dst or src may be ring::no_rank. */
  template <class Send, class Recv>
  void send_recv(const Send &send, int dst, Recv &&recv, int src, report to = {}) {
    const auto b = detail::both(send, std::forward<Recv>(recv));
    tell(ring_send_recv(native_handle(), b.in.data(), b.in.size(), dst, b.out.data(), b.out.size(), src, b.type()), to);
  }

  /** @} */
  /** @name Calls that go on beside their caller
   * Each is the call without _async; what it refuses is reported at once, and the future is empty. The buffers outlive
   * the future. Dropping the future waits. */
  /** @{ */

  /** ring_all_reduce_async. */
  template <class Send, class Recv>
  future all_reduce_async(Send &&send, Recv &&recv, op how, report to = {}) {
    const auto b = detail::both(detail::lasting(std::forward<Send>(send)), std::forward<Recv>(recv));
    const auto sizes = detail::alike("ring_all_reduce_async", b.in.size(), b.out.size());
    ring_request_t *request = nullptr;
    tell(ring_all_reduce_async(native_handle(), b.in.data(), b.out.data(), sizes.count(b.in.size()), b.type(),
                               detail::number(how), &request),
         to, &sizes);
    return future(request, anchor_);
  }
  /** ring_all_reduce_async in place. */
  template <class Buffer>
  future all_reduce_async(Buffer &&buffer, op how, report to = {}) {
    const auto view = detail::output(std::forward<Buffer>(buffer));
    return all_reduce_async(view, view, how, to);
  }
  /** ring_reduce_scatter_async. */
  template <class Send, class Recv>
  future reduce_scatter_async(Send &&send, Recv &&recv, op how, report to = {}) {
    const auto b = detail::both(detail::lasting(std::forward<Send>(send)), std::forward<Recv>(recv));
    const auto sizes = send_holds("ring_reduce_scatter_async", b.in.size(), b.out.size());
    ring_request_t *request = nullptr;
    tell(ring_reduce_scatter_async(native_handle(), b.in.data(), b.out.data(), sizes.count(b.out.size()), b.type(),
                                   detail::number(how), &request),
         to, &sizes);
    return future(request, anchor_);
  }
  /** ring_all_gather_async. */
  template <class Send, class Recv>
  future all_gather_async(Send &&send, Recv &&recv, report to = {}) {
    const auto b = detail::both(detail::lasting(std::forward<Send>(send)), std::forward<Recv>(recv));
    const auto sizes = recv_holds("ring_all_gather_async", b.in.size(), b.out.size());
    ring_request_t *request = nullptr;
    tell(ring_all_gather_async(native_handle(), b.in.data(), b.out.data(), sizes.count(b.in.size()), b.type(), &request),
         to, &sizes);
    return future(request, anchor_);
  }
  /** ring_broadcast_async. */
  template <class Buffer>
  future broadcast_async(Buffer &&buffer, int root, report to = {}) {
    const auto view = detail::output(std::forward<Buffer>(buffer));
    ring_request_t *request = nullptr;
    tell(ring_broadcast_async(native_handle(), view.data(), view.size(), detail::type_of(view), root, &request), to);
    return future(request, anchor_);
  }
  /** ring_all_to_all_async. */
  template <class Send, class Recv>
  future all_to_all_async(Send &&send, Recv &&recv, report to = {}) {
    const auto b = detail::both(detail::lasting(std::forward<Send>(send)), std::forward<Recv>(recv));
    const auto sizes = blocks("ring_all_to_all_async", b.in.size(), b.out.size());
    ring_request_t *request = nullptr;
    tell(ring_all_to_all_async(native_handle(), b.in.data(), b.out.data(), sizes.count(block(b.in.size())), b.type(),
                               &request),
         to, &sizes);
    return future(request, anchor_);
  }
  /** ring_send_async. */
  template <class Buffer>
  future send_async(Buffer &&buffer, int dst, report to = {}) {
    const auto view = detail::lasting(std::forward<Buffer>(buffer));
    ring_request_t *request = nullptr;
    tell(ring_send_async(native_handle(), view.data(), view.size(), detail::type_of(view), dst, &request), to);
    return future(request, anchor_);
  }
  /** ring_recv_async. */
  template <class Buffer>
  future recv_async(Buffer &&buffer, int src, report to = {}) {
    const auto view = detail::output(std::forward<Buffer>(buffer));
    ring_request_t *request = nullptr;
    tell(ring_recv_async(native_handle(), view.data(), view.size(), detail::type_of(view), src, &request), to);
    return future(request, anchor_);
  }
  /** ring_barrier_async. */
  future barrier_async(report to = {}) {
    ring_request_t *request = nullptr;
    tell(ring_barrier_async(native_handle(), &request), to);
    return future(request, anchor_);
  }

  /** @} */

 private:
  template <class Make>
  static group made(Make make, detail::anchor *parent, const report &to) {
    group result;
    result.anchor_ = std::make_shared<detail::anchor>(nullptr); /* what may throw comes before there is a group to lose */
    ring_group_t *handle = nullptr;
    const ring_status_t got = make(&handle);
    result.anchor_->group = handle;
    if (!handle) result.anchor_.reset();
    to(detail::failure_of(got, parent));
    return result;
  }
  void tell(ring_status_t returned, const report &to, const detail::lengths *sizes = nullptr) const {
    to(detail::failure_of(returned, anchor_.get(), sizes));
  }
  detail::lengths send_holds(const char *call, std::size_t send, std::size_t recv) const noexcept {
    return {call, nullptr, send, recv, detail::holds(send, recv, size()), true, size()};
  }
  detail::lengths recv_holds(const char *call, std::size_t send, std::size_t recv) const noexcept {
    return {call, nullptr, send, recv, detail::holds(recv, send, size()), false, size()};
  }
  detail::lengths scattered(const char *call, std::size_t send, std::size_t recv,
                            span<const std::size_t> counts) const noexcept {
    const bool fit = size() < 1 || (detail::parts_fit(send, counts, {}, size()) &&
                                    recv == counts[static_cast<std::size_t>(rank())]);
    return {call, detail::packed_parts, send, recv, fit};
  }
  /* Elements that go to each rank. */
  std::size_t block(std::size_t whole) const noexcept { return size() < 1 ? 0 : whole / static_cast<std::size_t>(size()); }
  detail::lengths blocks(const char *call, std::size_t send, std::size_t recv) const noexcept {
    return {call, "each has a block for each rank", send, recv, send == recv && detail::holds(send, block(send), size())};
  }

  std::shared_ptr<detail::anchor> anchor_;
};

/* ---- Log ---- */

/** Takes a log line, which lives for the call; on any thread, one at a time. It makes no calls on groups. */
using log_function = std::function<void(log_level, std::string_view)>;

/** @cond */
namespace detail {

/* The function that the library has. It isn't freed at the program's end, when threads may still log. */
struct log_state {
  std::mutex mutex;
  log_function *current = nullptr;
};
inline log_state &log_of_process() {
  static auto *state = new log_state;
  return *state;
}
/* A call from inside the function is the library's to refuse, and must not wait for one that waits for the function. */
inline thread_local bool is_logging = false;

inline void log_line(ring_log_level_t level, const char *message, void *function) noexcept {
  is_logging = true;
#if defined(__cpp_exceptions)
  try {
#endif
    (*static_cast<log_function *>(function))(static_cast<log_level>(level), message);
#if defined(__cpp_exceptions)
  } catch (...) { /* nobody is there to take it */
  }
#endif
  is_logging = false;
}

}  // namespace detail
/** @endcond */

/**
 * Sends log lines of a level and more serious ones to the function from now on, for the whole process; an empty one turns
 * the log off, as it is at first: ring_set_log_callback. When this returns the former function isn't running and is
 * freed. What the function throws is lost. It is called until it is replaced, also while the process ends.
 */
inline void set_log(log_function function, log_level most = log_level::info, report to = {}) {
  auto next = function ? std::make_unique<log_function>(std::move(function)) : nullptr;
  auto &state = detail::log_of_process();
  std::unique_lock<std::mutex> locked(state.mutex, std::defer_lock);
  if (!detail::is_logging) locked.lock();
  const ring_status_t got =
      ring_set_log_callback(next ? detail::log_line : nullptr, next.get(), static_cast<ring_log_level_t>(most));
  if (got == RING_STATUS_OK) {
    delete state.current;
    state.current = next.release();
  }
  to(detail::failure_of(got, nullptr));
}

}  // namespace ring

/** @cond */
template <>
struct std::is_error_code_enum<ring::status> : std::true_type {};
/** @endcond */

#endif  // RING_HPP
