import CLibring

/// How elements are reduced.
///
/// Integers wrap, and floating-point maxima and minima keep a NaN of any rank. An operation that isn't defined for a type is
/// ``RingError/Status-swift.struct/unsupported``. Reductions of your own are closures: see
/// ``Group/allReduce(_:combining:)``.
public struct ReduceOp: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The number in `ring.h`.
  public let rawValue: Int32

  /// An operation by its number.
  public init(rawValue: Int32) { self.rawValue = rawValue }

  /// Sum; of `Bool`: or.
  public static let sum = ReduceOp(constant: RING_OP_SUM)
  /// Largest; of `Bool`: or.
  public static let max = ReduceOp(constant: RING_OP_MAX)
  /// Smallest; of `Bool`: and.
  public static let min = ReduceOp(constant: RING_OP_MIN)
  /// Product; of `Bool`: and.
  public static let product = ReduceOp(constant: RING_OP_PROD)
  /// The sum, then one division by the number of ranks. Floating-point and complex types only.
  public static let mean = ReduceOp(constant: RING_OP_MEAN)
  /// Bitwise and. `Bool` and integers only, like the next two.
  public static let bitwiseAnd = ReduceOp(constant: RING_OP_BAND)
  /// Bitwise or.
  public static let bitwiseOr = ReduceOp(constant: RING_OP_BOR)
  /// Bitwise exclusive or.
  public static let bitwiseXor = ReduceOp(constant: RING_OP_BXOR)

  /// The library's name of the operation, such as "sum".
  public var description: String { String(cString: ring_op_name(rawValue)) }
}
