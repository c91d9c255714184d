import Foundation

// Calls that don't block the thread of their task. Each runs on a thread of its own, so that a task's calls are made in its
// order; tasks beside each other have none, and each needs a group of its own, or `start...`, which has its place at once.
// A task that is cancelled aborts the group, on all ranks: a call that one rank leaves is of no use to the others. It then throws
// RingError with Status.aborted.
extension Group {
  /// Runs any calls on the group on a thread that may block. If the task is cancelled the group is aborted.
  public func perform<Result: Sendable>(_ body: @escaping @Sendable (Group) throws -> Result) async throws -> Result {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        // Not a dispatch queue: those have as many threads as there are cores, and get one more a second where all block.
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body(self) }) }
      }
    } onCancel: {
      // It fails in a forked child alone, where nothing runs.
      try? self.abort()
    }
  }

  /// The ranks' arrays, reduced element by element.
  public func allReduce<T: RingElement>(_ array: [T], _ op: ReduceOp) async throws -> [T] {
    try await filling(array) { group, result in try group.allReduce(&result, op) }
  }

  /// This rank's part of the ranks' arrays, reduced: the array is `size` parts, of which rank r gets the r-th.
  public func reduceScatter<T: RingElement>(_ array: [T], _ op: ReduceOp) async throws -> [T] {
    try await filling(zeros(array.count / size)) { group, result in try group.reduceScatter(array, into: &result, op) }
  }

  /// The ranks' arrays, alike long, one after the other.
  public func allGather<T: RingElement>(_ array: [T]) async throws -> [T] {
    try await filling(zeros(array.count * size)) { group, result in try group.allGather(array, into: &result) }
  }

  /// The array of rank `root`, as long as the array here.
  public func broadcast<T: RingElement>(_ array: [T], root: Int) async throws -> [T] {
    try await filling(array) { group, result in try group.broadcast(&result, root: root) }
  }

  /// The ranks' arrays, reduced, on rank `root`; nil elsewhere.
  public func reduce<T: RingElement>(_ array: [T], _ op: ReduceOp, root: Int) async throws -> [T]? {
    let result = try await filling(array) { group, result in try group.reduce(&result, op, root: root) }
    return root == rank ? result : nil
  }

  /// The ranks' arrays, alike long, one after the other, on rank `root`; nil elsewhere.
  public func gather<T: RingElement>(_ array: [T], root: Int) async throws -> [T]? {
    let result = try await filling(zeros(root == rank ? array.count * size : 0)) { group, result in
      try group.gather(array, into: &result, root: root)
    }
    return root == rank ? result : nil
  }

  /// This rank's part, of `count` elements, of the array of rank `root`. Elsewhere the array is ignored, and may be empty.
  public func scatter<T: RingElement>(_ array: [T], count: Int, root: Int) async throws -> [T] {
    try await filling(zeros(count)) { group, result in try group.scatter(array, into: &result, root: root) }
  }

  /// A block of each rank, in their order, for the array's blocks, of which the d-th goes to rank d.
  public func allToAll<T: RingElement>(_ array: [T]) async throws -> [T] {
    try await filling(zeros(array.count)) { group, result in try group.allToAll(array, into: &result) }
  }

  /// Waits until every rank of the group has called it.
  public func barrier() async throws {
    try await perform { try $0.barrier() }
  }

  /// Sends the array to a rank.
  public func send<T: RingElement>(_ array: [T], to destination: Int) async throws {
    try await perform { try $0.send(array, to: destination) }
  }

  /// The next message of a rank, which must have `count` elements.
  public func receive<T: RingElement>(_: T.Type = T.self, count: Int, from source: Int) async throws -> [T] {
    try await filling(zeros(count)) { group, result in try group.receive(into: &result, from: source) }
  }

  private func zeros<T: RingElement>(_ count: Int) -> [T] { [T](repeating: T(), count: count) }

  private func filling<T: RingElement>(
    _ array: [T], _ body: @escaping @Sendable (Group, inout [T]) throws -> Void
  ) async throws -> [T] {
    try await perform { group in
      var result = array
      try body(group, &result)
      return result
    }
  }
}
