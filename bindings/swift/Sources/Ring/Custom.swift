import CLibring

// Reductions by a closure, which is associative and commutative. It runs on the thread of the call, never concurrently within one;
// calls on groups from inside it are refused. In a group of one it isn't called.
extension Group {
  /// Reduces the ranks' arrays, in place on every rank, by a function of two elements. Elements are of any trivial type: numbers,
  /// and structs and tuples of them; other types are refused, as are those that need an alignment of more than 16.
  public func allReduce<T>(_ array: inout [T], combining combine: (T, T) -> T) throws {
    try withBlocks(combine) { try allReduce(&array, combiningBlocks: $0) }
  }

  /// The same with a function of blocks: it changes the first, this rank's values, by the second, those received, of the same length.
  public func allReduce<T>(
    _ array: inout [T], combiningBlocks combine: (UnsafeMutableBufferPointer<T>, UnsafeBufferPointer<T>) -> Void
  ) throws {
    try array.withUnsafeMutableBufferPointer {
      try allReduce(UnsafeBufferPointer($0), into: $0, combiningBlocks: combine)
    }
  }

  /// The same over memory that the caller keeps. In place is `send` at the memory of `recv`; no other overlap is allowed.
  public func allReduce<T>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>,
    combiningBlocks combine: (UnsafeMutableBufferPointer<T>, UnsafeBufferPointer<T>) -> Void
  ) throws {
    let trivial = isTrivial(T.self)
    func why() -> String {
      trivial ? pairText("all_reduce_custom", send.count, recv.count) : notTrivial("all_reduce_custom", T.self)
    }
    try withReduction(combine) { reduction in
      try call(recv.count, fits: trivial && send.count == recv.count, why()) {
        ring_all_reduce_custom(
          $0, send.baseAddress, recv.baseAddress, $1, MemoryLayout<T>.stride, reduceBlocks, reduction)
      }
    }
  }

  /// Reduces the ranks' arrays by a function of two elements, and gives each rank its part of the result: `send` holds a part for
  /// each rank, packed in their order, of the lengths that `counts` has, alike on all ranks.
  public func reduceScatter<T>(
    _ send: [T], into recv: inout [T], counts: [Int], combining combine: (T, T) -> T
  ) throws {
    try both(send, &recv) { send, recv in
      try withBlocks(combine) { try reduceScatter(send, into: recv, counts: counts, combiningBlocks: $0) }
    }
  }

  /// The same over memory that the caller keeps, with a function of blocks: it changes the first, this rank's values, by the second,
  /// those received. In place is `recv` at this rank's part of `send`.
  public func reduceScatter<T>(
    _ send: UnsafeBufferPointer<T>, into recv: UnsafeMutableBufferPointer<T>, counts: [Int],
    combiningBlocks combine: (UnsafeMutableBufferPointer<T>, UnsafeBufferPointer<T>) -> Void
  ) throws {
    let trivial = isTrivial(T.self)
    func why() -> String {
      trivial
        ? "reduce_scatter_v_custom: send has \(send.count) elements, recv \(recv.count): counts are \(counts)"
        : notTrivial("reduce_scatter_v_custom", T.self)
    }
    try withReduction(combine) { reduction in
      try call(counts, fits: trivial && scatters(send.count, recv.count, counts), why()) {
        ring_reduce_scatter_v_custom(
          $0, send.baseAddress, recv.baseAddress, $1, MemoryLayout<T>.stride, reduceBlocks, reduction)
      }
    }
  }
}

/// What user_data points to.
private struct Reduction {
  let apply: (UnsafeMutableRawPointer, UnsafeRawPointer, Int) -> Void
}

/// The library's callback.
private func reduceBlocks(
  _ values: UnsafeMutableRawPointer?, _ received: UnsafeRawPointer?, _ count: Int, _ reduction: UnsafeMutableRawPointer?
) {
  reduction!.assumingMemoryBound(to: Reduction.self).pointee.apply(values!, received!, count)
}

private func withReduction<T>(
  _ combine: (UnsafeMutableBufferPointer<T>, UnsafeBufferPointer<T>) -> Void,
  _ body: (UnsafeMutableRawPointer) throws -> Void
) rethrows {
  try withoutActuallyEscaping(combine) { combine in
    var reduction = Reduction { values, received, count in
      combine(
        UnsafeMutableBufferPointer(start: values.bindMemory(to: T.self, capacity: count), count: count),
        UnsafeBufferPointer(start: received.bindMemory(to: T.self, capacity: count), count: count))
    }
    try withUnsafeMutablePointer(to: &reduction) { try body(UnsafeMutableRawPointer($0)) }
  }
}

private func withBlocks<T>(
  _ combine: (T, T) -> T, _ body: ((UnsafeMutableBufferPointer<T>, UnsafeBufferPointer<T>) -> Void) throws -> Void
) rethrows {
  try withoutActuallyEscaping(combine) { combine in
    try body { values, received in
      for index in values.indices { values[index] = combine(values[index], received[index]) }
    }
  }
}

/// The library aligns elements to 16 bytes at most, and other processes make no sense of references.
private func isTrivial<T>(_ type: T.Type) -> Bool {
  _isPOD(type) && MemoryLayout<T>.alignment <= 16
}

private func notTrivial<T>(_ call: String, _ type: T.Type) -> String {
  "\(call): \(type) has references, or an alignment of more than 16 bytes"
}
