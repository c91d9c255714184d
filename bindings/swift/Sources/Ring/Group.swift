import CLibring

/// A place in a ring of processes that reduce and exchange arrays.
///
/// Every rank makes the same collective calls in the same order with arguments that match; what differs is
/// ``RingError/Status-swift.struct/mismatch``, never a wrong number. Calls block until this rank has its result; those with
/// `await` don't block the thread. Any thread may use a group, and several may at once: collectives are served first come, first
/// served.
///
/// A failure that isn't of the call's own arguments stays: every later call throws it at once, and all that remains is to let go
/// of the group. With its last reference the group leaves the ring, which may take up to a second where a peer doesn't take
/// what was sent. A call holds a reference, so a group never ends under one; ``abort()`` ends calls.
///
/// A call that is refused for its arguments takes its number in the order of calls, here as in C: unless every rank's is refused,
/// the next collective is a mismatch.
public final class Group: @unchecked Sendable {
  // The library locks for itself, and the pointer never changes.
  let handle: OpaquePointer

  private init(owning handle: OpaquePointer) { self.handle = handle }

  deinit { ring_group_destroy(handle) }

  /// Joins the ring that a configuration describes. Blocks until all ranks have joined, or `connectTimeout` is over.
  public convenience init(_ configuration: Configuration) throws {
    self.init(owning: try Group.made { out in try configuration.withC { ring_group_create($0, out) } }!)
  }

  /// Joins the ring that the environment describes: `RING_RANK` with `RING_HOSTFILE` or `RING_RENDEZVOUS`, or what a launcher
  /// sets. README.md of libring lists the variables.
  public static func fromEnvironment() throws -> Group {
    Group(owning: try made { ring_group_create_from_env($0) }!)
  }

  /// Makes groups of this group's ranks: those that give the same `color`, 0 or more, form one, in the order of their keys and,
  /// where these are equal, of their ranks here. Every rank of the group makes the call; one whose color is negative gets nil.
  public func split(color: Int, key: Int = 0) throws -> Group? {
    try withExtendedLifetime(self) {
      let color = Int32(clamping: color)
      let key = Int32(clamping: key)
      return try Group.made(in: handle) { ring_group_split(handle, color, key, $0) }.map(Group.init(owning:))
    }
  }

  private static func made(
    in group: OpaquePointer? = nil, _ create: (UnsafeMutablePointer<OpaquePointer?>) throws -> ring_status_t
  ) throws -> OpaquePointer? {
    var out: OpaquePointer?
    let status = try create(&out)
    if status != RingError.Status.ok.rawValue { throw RingError(status, group: group) }
    return out
  }

  /// This process's rank, from 0.
  public var rank: Int { withExtendedLifetime(self) { Int(ring_group_rank(handle)) } }

  /// The number of ranks.
  public var size: Int { withExtendedLifetime(self) { Int(ring_group_size(handle)) } }

  /// Whether and how the group has failed, also between calls; nil while it is healthy. Never blocks. Throws from a callback and
  /// in a forked child alone.
  public func failure() throws -> RingError? {
    try withExtendedLifetime(self) { try RingError.of(group: handle) }
  }

  /// Sets how long a call that starts later may go without progress. Ranks may differ.
  public func setTimeout(_ timeout: Timeout) throws {
    try call { ring_group_set_timeout($0, timeout.milliseconds) }
  }

  /// Fails the group on every rank: calls that are blocked on it, here and elsewhere, throw
  /// ``RingError/Status-swift.struct/aborted`` within a tenth of a second, with this rank named, and so does every later one.
  /// Any thread may call it at any time; it never blocks. A group that has failed already keeps its failure.
  public func abort() throws {
    try call { ring_group_abort($0) }
  }

  /// What the group has counted since it was created.
  public func statistics() throws -> Statistics {
    var stats = ring_stats_t()
    stats.struct_size = MemoryLayout<ring_stats_t>.size
    try call { ring_group_stats($0, &stats) }
    return Statistics(stats)
  }
}

extension Group {
  /// Makes a call, and fetches what is known of its failure straight after it, on its thread.
  func call(_ body: (OpaquePointer) -> ring_status_t) throws {
    try withExtendedLifetime(self) {
      let status = body(handle)
      if status != RingError.Status.ok.rawValue { throw RingError(status, group: handle) }
    }
  }

  /// A count that the library refuses.
  private static let tooMany = -1

  /// Makes a call with a count that two buffers must agree on. Where they don't, the library refuses it for its count: so it takes its
  /// number, and ranks never go on with calls that aren't each other's.
  func call(
    _ count: Int, fits: Bool, _ why: @autoclosure () -> String, _ body: (OpaquePointer, Int) -> ring_status_t
  ) throws {
    do {
      try call { body($0, fits ? count : Group.tooMany) }
    } catch let error as RingError where !fits && error.status == .invalidArgument {
      throw error.saying("rank \(rank) of \(size): \(why())")
    }
  }

  /// The same of calls with a count for each rank, which the library refuses where it gets none.
  func call(
    _ counts: [Int], fits: Bool, _ why: @autoclosure () -> String,
    _ body: (OpaquePointer, UnsafePointer<Int>?) -> ring_status_t
  ) throws {
    do {
      try counts.withUnsafeBufferPointer { counts in try call { body($0, fits ? counts.baseAddress : nil) } }
    } catch let error as RingError where !fits && error.status == .invalidArgument {
      throw error.saying("rank \(rank) of \(size): \(why())")
    }
  }
}

/// What a group has counted since it was created. All numbers only grow.
public struct Statistics: Hashable, Sendable {
  /// Collectives and messages that this rank has finished with success, requests included.
  public let operations: UInt64
  /// Bytes that this rank has sent on the group's data connections.
  public let bytesSent: UInt64
  /// Bytes that it has received there.
  public let bytesReceived: UInt64
  /// Nanoseconds in calls. Those that run at the same time count each for itself.
  public let busyNanoseconds: UInt64
  /// Of these, nanoseconds asleep while waiting for the left neighbour (rank - 1).
  public let waitLeftNanoseconds: UInt64
  /// The same of the right neighbour (rank + 1).
  public let waitRightNanoseconds: UInt64
  /// Connections to this rank's port that were no peer's, or that had another job's id or secret.
  public let strangersRefused: UInt64

  init(_ stats: ring_stats_t) {
    operations = stats.operations
    bytesSent = stats.bytes_sent
    bytesReceived = stats.bytes_received
    busyNanoseconds = stats.busy_ns
    waitLeftNanoseconds = stats.wait_left_ns
    waitRightNanoseconds = stats.wait_right_ns
    strangersRefused = stats.strangers_refused
  }
}
