import CLibring

/// Why a call failed.
///
/// `status` says what a program can decide by, `text` tells a person the whole: the call and its number, the rank at fault
/// and its address, the system's error in words, and the first cause.
public struct RingError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What kind of failure it is.
  public let status: Status
  /// The rank at fault; nil if it isn't known, takes two, or the failure is this call's alone. With
  /// ``Status-swift.struct/aborted`` it is the rank that aborted.
  public let rank: Int?
  /// The rank that saw the group's failure first; nil if it isn't known, or the failure is this call's alone.
  public let detectedBy: Int?
  /// The system's error number (`errno`), 0 if none.
  public let osError: Int32
  /// Number of the collective, or of the message from one rank to another, both from 1; 0 between calls, and if the failure is
  /// this call's alone.
  public let sequence: UInt64
  /// One line for a person.
  public let text: String

  /// The text.
  public var description: String { text }

  /// What a call's failure is. Numbers that this version doesn't name are kept as they are.
  public struct Status: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The number in `ring.h`.
    public let rawValue: Int32

    /// A status by its number.
    public init(rawValue: Int32) { self.rawValue = rawValue }

    /// The call succeeded. No error has it.
    public static let ok = Status(constant: RING_STATUS_OK)
    /// An unknown value, lengths that don't fit, an overlap, or a rank that isn't in the group.
    public static let invalidArgument = Status(constant: RING_STATUS_INVALID_ARGUMENT)
    /// The group belongs to the parent of this forked process, or the call came from a callback.
    public static let invalidState = Status(constant: RING_STATUS_INVALID_STATE)
    /// This build of the library doesn't have it, or the operation isn't defined for the type.
    public static let unsupported = Status(constant: RING_STATUS_UNSUPPORTED)
    /// The configuration is incomplete or wrong; the text names the setting.
    public static let invalidConfig = Status(constant: RING_STATUS_INVALID_CONFIG)
    /// The ring could not be formed, or two ranks can't reach each other.
    public static let connectFailed = Status(constant: RING_STATUS_CONNECT_FAILED)
    /// A peer did not prove that it knows the shared secret.
    public static let authFailed = Status(constant: RING_STATUS_AUTH_FAILED)
    /// Ranks made calls that differ; the text shows both.
    public static let mismatch = Status(constant: RING_STATUS_MISMATCH)
    /// A peer has died, has left, or can't be reached any more.
    public static let peerLost = Status(constant: RING_STATUS_PEER_LOST)
    /// A call made no progress for as long as the group's timeout allows.
    public static let timeout = Status(constant: RING_STATUS_TIMEOUT)
    /// The group was aborted while the call ran, or before.
    public static let aborted = Status(constant: RING_STATUS_ABORTED)
    /// This host refused something that isn't about a peer, such as descriptors or threads.
    public static let system = Status(constant: RING_STATUS_SYSTEM)
    /// Memory could not be allocated.
    public static let outOfMemory = Status(constant: RING_STATUS_OUT_OF_MEMORY)
    /// The library has a fault of its own.
    public static let `internal` = Status(constant: RING_STATUS_INTERNAL)
    /// The time to wait for a request was over before the operation.
    public static let pending = Status(constant: RING_STATUS_PENDING)

    /// The constant's name in `ring.h`, such as "RING_STATUS_TIMEOUT".
    public var description: String { String(cString: ring_status_name(rawValue)) }

    /// One sentence about the status for a person.
    public var sentence: String { String(cString: ring_status_string(rawValue)) }
  }
}

extension RingError {
  /// What is known of a call of this thread that has just returned `status`. The library keeps the text by thread, so nothing
  /// may come between: this isn't async, and nor is what calls it.
  init(_ status: Int32, group: OpaquePointer?) {
    let text = RingError.text { ring_last_error($0, $1) }
    // A failure that isn't the group's has no numbers. Which of the two it is, only the status tells.
    let numbers = RingError.numbers(of: group).flatMap { $0.status == status ? $0 : nil }
    self.init(status, numbers, text)
  }

  /// The failure of a group; nil while it is healthy.
  static func of(group: OpaquePointer) throws -> RingError? {
    var failure = ring_failure_t()
    failure.struct_size = MemoryLayout<ring_failure_t>.size
    let told = ring_group_failure(group, &failure)
    if told != Status.ok.rawValue { throw RingError(told, group: nil) }
    if failure.status == Status.ok.rawValue { return nil }
    return RingError(failure.status, failure, text { ring_group_last_error(group, $0, $1) })
  }

  /// With another text.
  func saying(_ text: String) -> RingError {
    RingError(status: status, rank: rank, detectedBy: detectedBy, osError: osError, sequence: sequence, text: text)
  }

  private init(_ status: Int32, _ numbers: ring_failure_t?, _ text: String) {
    func rank(_ number: Int32?) -> Int? { number.flatMap { $0 < 0 ? nil : Int($0) } }
    self.init(
      status: Status(rawValue: status), rank: rank(numbers?.rank), detectedBy: rank(numbers?.detected_by),
      osError: numbers?.os_error ?? 0, sequence: numbers?.sequence ?? 0, text: text)
  }

  private static func numbers(of group: OpaquePointer?) -> ring_failure_t? {
    guard let group = group else { return nil }
    var failure = ring_failure_t()
    failure.struct_size = MemoryLayout<ring_failure_t>.size
    return ring_group_failure(group, &failure) == Status.ok.rawValue ? failure : nil
  }

  /// What a function of the library copies: first asked how long it is.
  static func text(_ copy: (UnsafeMutablePointer<CChar>?, Int) -> Int) -> String {
    let length = copy(nil, 0)
    var bytes = [CChar](repeating: 0, count: length + 1)
    _ = bytes.withUnsafeMutableBufferPointer { copy($0.baseAddress, $0.count) }
    return String(cString: bytes)
  }
}
