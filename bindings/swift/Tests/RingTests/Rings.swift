import Foundation
import Ring
import XCTest

#if canImport(Glibc)
import Glibc
#endif

/// A hostfile's text for a ring of this size on ports of 127.0.0.1 that nobody listens on.
func makeHosts(_ size: Int) -> String {
  let entries = (0..<size).map { _ in "[\"127.0.0.1:\(Ports.next())\"]" }
  return "[\(entries.joined(separator: ","))]"
}

/// Ports below the range of outgoing connections, elsewhere for each run.
private enum Ports {
  private static let lowest = 10000
  private static let count = 19990
  private static let lock = NSLock()
  private static var offset = Int(getpid()) * 7

  static func next() -> Int {
    lock.lock()
    defer { lock.unlock() }
    while true {
      offset += 1
      let port = lowest + offset % count
      if isFree(port) { return port }
    }
  }

  private static func isFree(_ port: Int) -> Bool {
    #if canImport(Glibc)
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    #else
    let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = in_port_t(port).bigEndian
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
  }
}

/// A configuration with timeouts for tests.
func makeConfiguration(_ rank: Int, _ hosts: String) -> Configuration {
  var configuration = Configuration(rank: rank, hosts: hosts)
  configuration.connectTimeout = .seconds(20)
  configuration.timeout = .seconds(30)
  return configuration
}

/// What ranks that run beside each other hand in.
final class Collected<Value>: @unchecked Sendable {
  private let lock = NSLock()
  private var values: [Value] = []

  func add(_ value: Value) {
    lock.lock()
    values.append(value)
    lock.unlock()
  }

  var all: [Value] {
    lock.lock()
    defer { lock.unlock() }
    return values
  }
}

/// Threads as the ranks of a ring: runs `body` on each, and fails the test where one throws or they take more than a minute.
func ring(
  of size: Int, file: StaticString = #filePath, line: UInt = #line, _ body: @escaping @Sendable (Group) throws -> Void
) {
  let hosts = makeHosts(size)
  let failures = Collected<String>()
  let done = DispatchGroup()
  for rank in 0..<size {
    done.enter()
    Thread.detachNewThread {
      do { try body(Group(makeConfiguration(rank, hosts))) } catch { failures.add("rank \(rank) of \(size): \(error)") }
      done.leave()
    }
  }
  XCTAssertEqual(done.wait(timeout: .now() + 60), .success, "a ring of \(size) hangs", file: file, line: line)
  for failure in failures.all { XCTFail(failure, file: file, line: line) }
}

/// The same with ranks that suspend.
func asyncRing(of size: Int, _ body: @escaping @Sendable (Group) async throws -> Void) async throws {
  let hosts = makeHosts(size)
  try await withThrowingTaskGroup(of: Void.self) { tasks in
    for rank in 0..<size {
      // Forming blocks, and the runtime has only as many threads as there are cores.
      let group = Task<Group, Error> {
        try await withCheckedThrowingContinuation { continuation in
          Thread.detachNewThread { continuation.resume(with: Result { try Group(makeConfiguration(rank, hosts)) }) }
        }
      }
      tasks.addTask { try await body(group.value) }
    }
    try await tasks.waitForAll()
  }
}

/// Says what is wrong; tests on other threads throw.
struct Wrong: Error, CustomStringConvertible {
  let description: String
}

func expect(_ condition: Bool, _ what: @autoclosure () -> String, line: Int = #line) throws {
  if !condition { throw Wrong(description: "line \(line): \(what())") }
}

func expectEqual<T: Equatable>(_ got: T, _ wanted: T, _ what: @autoclosure () -> String = "", line: Int = #line) throws {
  try expect(got == wanted, "\(what()) got \(got), wanted \(wanted)", line: line)
}

/// The failure that `body` throws.
func failure(line: Int = #line, _ body: () throws -> Void) throws -> RingError {
  do { try body() } catch let error as RingError { return error }
  throw Wrong(description: "line \(line): no failure")
}
