import CLibring

/// The type of an array's elements, as libring knows it.
///
/// Numbers that this version doesn't name are kept as they are, and refused by the library.
public struct DataType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// The number in `ring.h`, which is also MLX's.
  public let rawValue: Int32

  /// A type by its number.
  public init(rawValue: Int32) { self.rawValue = rawValue }

  /// One byte; results are 0 or 1.
  public static let bool = DataType(constant: RING_DTYPE_BOOL)
  /// `UInt8`.
  public static let uint8 = DataType(constant: RING_DTYPE_UINT8)
  /// `UInt16`.
  public static let uint16 = DataType(constant: RING_DTYPE_UINT16)
  /// `UInt32`.
  public static let uint32 = DataType(constant: RING_DTYPE_UINT32)
  /// `UInt64`.
  public static let uint64 = DataType(constant: RING_DTYPE_UINT64)
  /// `Int8`.
  public static let int8 = DataType(constant: RING_DTYPE_INT8)
  /// `Int16`.
  public static let int16 = DataType(constant: RING_DTYPE_INT16)
  /// `Int32`.
  public static let int32 = DataType(constant: RING_DTYPE_INT32)
  /// `Int64`.
  public static let int64 = DataType(constant: RING_DTYPE_INT64)
  /// IEEE 754 binary16: `Float16`, where the platform has it.
  public static let float16 = DataType(constant: RING_DTYPE_FLOAT16)
  /// `Float`.
  public static let float32 = DataType(constant: RING_DTYPE_FLOAT32)
  /// `Double`.
  public static let float64 = DataType(constant: RING_DTYPE_FLOAT64)
  /// The upper half of a `Float`: ``BFloat16``.
  public static let bfloat16 = DataType(constant: RING_DTYPE_BFLOAT16)
  /// Two `Float`s: ``Complex64``.
  public static let complex64 = DataType(constant: RING_DTYPE_COMPLEX64)

  /// Bytes of one element; 0 for a number that the library doesn't know.
  public var size: Int { ring_dtype_size(rawValue) }

  /// The library's name of the type, such as "float32".
  public var description: String { String(cString: ring_dtype_name(rawValue)) }
}

/// A type whose arrays a ``Group`` reduces and moves.
///
/// The numeric types of the standard library, `Bool`, ``BFloat16`` and ``Complex64`` are. A type of your own may be, if it
/// is trivial and its stride is the size of its ``dataType``, such as a struct around the bits of a 16-bit float.
public protocol RingElement: Sendable {
  /// Zero: what fills an array before results are written to it.
  init()

  /// How the library sees the elements.
  static var dataType: DataType { get }
}

extension Bool: RingElement {
  /// ``DataType/bool``.
  public static var dataType: DataType { .bool }
}
extension UInt8: RingElement {
  /// ``DataType/uint8``.
  public static var dataType: DataType { .uint8 }
}
extension UInt16: RingElement {
  /// ``DataType/uint16``.
  public static var dataType: DataType { .uint16 }
}
extension UInt32: RingElement {
  /// ``DataType/uint32``.
  public static var dataType: DataType { .uint32 }
}
extension UInt64: RingElement {
  /// ``DataType/uint64``.
  public static var dataType: DataType { .uint64 }
}
extension UInt: RingElement {
  /// ``DataType/uint64``, or ``DataType/uint32`` where a word has four bytes.
  public static var dataType: DataType { MemoryLayout<UInt>.size == 8 ? .uint64 : .uint32 }
}
extension Int8: RingElement {
  /// ``DataType/int8``.
  public static var dataType: DataType { .int8 }
}
extension Int16: RingElement {
  /// ``DataType/int16``.
  public static var dataType: DataType { .int16 }
}
extension Int32: RingElement {
  /// ``DataType/int32``.
  public static var dataType: DataType { .int32 }
}
extension Int64: RingElement {
  /// ``DataType/int64``.
  public static var dataType: DataType { .int64 }
}
extension Int: RingElement {
  /// ``DataType/int64``, or ``DataType/int32`` where a word has four bytes.
  public static var dataType: DataType { MemoryLayout<Int>.size == 8 ? .int64 : .int32 }
}
extension Float: RingElement {
  /// ``DataType/float32``.
  public static var dataType: DataType { .float32 }
}
extension Double: RingElement {
  /// ``DataType/float64``.
  public static var dataType: DataType { .float64 }
}

// Swift has no Float16 on Intel's Macs.
#if !((os(macOS) || targetEnvironment(macCatalyst)) && arch(x86_64))
extension Float16: RingElement {
  /// ``DataType/float16``.
  public static var dataType: DataType { .float16 }
}
#endif

/// The upper half of a `Float`: its exponent, and eight bits of precision.
public struct BFloat16: RingElement, Hashable, CustomStringConvertible {
  /// The upper 16 bits of the `Float`.
  public var bitPattern: UInt16

  /// Zero.
  public init() { bitPattern = 0 }

  /// A number by its bits.
  public init(bitPattern: UInt16) { self.bitPattern = bitPattern }

  /// The nearest number, of two the even one. A NaN stays a NaN.
  public init(_ value: Float) {
    let bits = value.bitPattern
    if value.isNaN {
      // The quiet bit is set, since what is left of the payload may be 0, which is infinity.
      bitPattern = UInt16(truncatingIfNeeded: bits >> 16) | 0x40
    } else {
      // Half of the last place, less one where that place is even; a carry into the exponent is right.
      bitPattern = UInt16(truncatingIfNeeded: (bits &+ 0x7FFF &+ (bits >> 16 & 1)) >> 16)
    }
  }

  /// ``DataType/bfloat16``.
  public static var dataType: DataType { .bfloat16 }

  /// The number in decimal.
  public var description: String { Float(self).description }
}

extension Float {
  /// The same number, exactly.
  public init(_ value: BFloat16) { self.init(bitPattern: UInt32(value.bitPattern) << 16) }
}

/// A complex number of two `Float`s.
public struct Complex64: RingElement, Hashable {
  /// The real part.
  public var real: Float
  /// The imaginary part.
  public var imaginary: Float

  /// Zero.
  public init() { self.init(0, 0) }

  /// A number by its parts.
  public init(_ real: Float, _ imaginary: Float) {
    self.real = real
    self.imaginary = imaginary
  }

  /// ``DataType/complex64``.
  public static var dataType: DataType { .complex64 }
}
