import CLibring

/// A collective or a message that was started and goes on beside its caller.
///
/// Until it is done its memory belongs to the library: the caller neither writes, frees nor reads it, but what is only sent, which it
/// may read. So it is memory that the caller has allocated; that of a Swift array is its caller's only within a closure.
/// Any thread may use a request. With its last reference it ends, and waits first if it still runs.
public final class Request: @unchecked Sendable {
  // The library locks for itself, and the pointer never changes. The group is there for the numbers of its failure.
  private let handle: OpaquePointer
  private let group: Group

  fileprivate init(_ handle: OpaquePointer, of group: Group) {
    self.handle = handle
    self.group = group
  }

  deinit { ring_request_destroy(handle) }

  /// Whether it is done, with success or without: ``wait(_:)`` tells. Never waits.
  public func isDone() throws -> Bool {
    var done = false
    try group.call { _ in withExtendedLifetime(self) { ring_request_test(handle, &done) } }
    return done
  }

  /// Waits for its end, and throws what the blocking call would have thrown; or
  /// ``RingError/Status-swift.struct/pending`` if it still runs when the time is over. May be repeated.
  public func wait(_ timeout: Timeout = .infinite) throws {
    try group.call { _ in withExtendedLifetime(self) { ring_request_wait(handle, timeout.milliseconds) } }
  }

  /// Waits for its end without blocking the thread. A task that is cancelled aborts the group.
  public func finished() async throws {
    try await group.perform { _ in try self.wait() }
  }
}

// Each starts a call and returns at once; the call has its place in the order of the group's calls from then on.
extension Group {
  /// Starts ``allReduce(_:into:_:)-swift.method``.
  public func startAllReduce<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>, _ op: ReduceOp
  ) throws -> Request {
    try start(recv.count, fits: send.count == recv.count, pairText("all_reduce", send.count, recv.count)) {
      ring_all_reduce_async($0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue, op.rawValue, $2)
    }
  }

  /// Starts ``reduceScatter(_:into:_:)-swift.method``.
  public func startReduceScatter<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>, _ op: ReduceOp
  ) throws -> Request {
    try start(recv.count, fits: areParts(recv.count, of: send.count), partsText("reduce_scatter", "send", send.count, recv.count)) {
      ring_reduce_scatter_async($0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue, op.rawValue, $2)
    }
  }

  /// Starts ``allGather(_:into:)-swift.method``.
  public func startAllGather<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>
  ) throws -> Request {
    try start(send.count, fits: areParts(send.count, of: recv.count), partsText("all_gather", "recv", recv.count, send.count)) {
      ring_all_gather_async($0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue, $2)
    }
  }

  /// Starts ``broadcast(_:root:)-swift.method``.
  public func startBroadcast<T: RingElement>(_ buffer: UnsafeMutableBufferPointer<T>, root: Int) throws -> Request {
    try start(buffer.count) {
      ring_broadcast_async($0, buffer.baseAddress, $1, T.dataType.rawValue, Int32(clamping: root), $2)
    }
  }

  /// Starts ``allToAll(_:into:)-swift.method``.
  public func startAllToAll<T: RingElement>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>
  ) throws -> Request {
    try start(send.count / size, fits: areBlocks(send.count, recv.count), blocksText(send.count, recv.count)) {
      ring_all_to_all_async($0, send.baseAddress, recv.baseAddress, $1, T.dataType.rawValue, $2)
    }
  }

  /// Starts ``send(_:to:)-swift.method``.
  public func startSend<T: RingElement>(_ buffer: UnsafeBufferPointer<T>, to destination: Int) throws -> Request {
    try start(buffer.count) {
      ring_send_async($0, buffer.baseAddress, $1, T.dataType.rawValue, Int32(clamping: destination), $2)
    }
  }

  /// Starts ``receive(into:from:)-swift.method``.
  public func startReceive<T: RingElement>(into buffer: UnsafeMutableBufferPointer<T>, from source: Int) throws -> Request {
    try start(buffer.count) {
      ring_recv_async($0, buffer.baseAddress, $1, T.dataType.rawValue, Int32(clamping: source), $2)
    }
  }

  /// Starts ``barrier()-swift.method``: it is done once every rank has started or called this barrier.
  public func startBarrier() throws -> Request {
    try start(0) { group, _, out in ring_barrier_async(group, out) }
  }

  private func start(
    _ count: Int, fits: Bool = true, _ why: @autoclosure () -> String = "",
    _ body: (OpaquePointer, Int, UnsafeMutablePointer<OpaquePointer?>) -> ring_status_t
  ) throws -> Request {
    var out: OpaquePointer?
    try call(count, fits: fits, why()) { body($0, $1, &out) }
    return Request(out!, of: self)
  }
}
