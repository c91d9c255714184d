import Foundation
import Ring
import XCTest

/// Ranks that are processes of their own, in the ring that the environment describes.
final class ProcessTests: XCTestCase {
  private func start(_ rank: Int, _ hostfile: URL, _ what: String) throws -> (Process, Pipe) {
    let process = Process()
    // Executables of a package lie beside its tests.
    #if os(macOS)
    let tests = Bundle(for: ProcessTests.self).bundleURL
    #else
    let tests = Bundle.main.executableURL!
    #endif
    process.executableURL = tests.deletingLastPathComponent().appendingPathComponent("ring-rank")
    process.arguments = [what]
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["RING_RANK": "\(rank)", "RING_HOSTFILE": hostfile.path, "RING_CONNECT_TIMEOUT_MS": "20000"]) { $1 }
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    return (process, output)
  }

  private func withHostfile(_ size: Int, _ body: (URL) throws -> Void) throws {
    let hostfile = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try makeHosts(size).write(to: hostfile, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: hostfile) }
    try body(hostfile)
  }

  func testRanksAreProcesses() throws {
    for size in [1, 3, 8] {
      try withHostfile(size) { hostfile in
        let ranks = try (0..<size).map { try start($0, hostfile, "sum") }
        let sums = (0..<5).map { Float(size * (size - 1) / 2) + Float(size * $0) / 2 }
        for (rank, (process, output)) in ranks.enumerated() {
          let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
          process.waitUntilExit()
          XCTAssertEqual(process.terminationStatus, 0, text)
          XCTAssertEqual(text, "\(rank) \(size) \(sums)\n")
        }
      }
    }
  }

  func testDeadPeerIsNamed() throws {
    try withHostfile(3) { hostfile in
      // This process is ranks 0 and 2.
      let (victim, _) = try start(1, hostfile, "stay")
      let errors = Collected<(Int, RingError)>()
      let done = DispatchGroup()
      let reduced = DispatchSemaphore(value: 0)
      for rank in [0, 2] {
        done.enter()
        Thread.detachNewThread {
          defer { done.leave() }
          var configuration = Configuration(rank: rank, hostfile: hostfile.path)
          configuration.connectTimeout = .seconds(20)
          guard let group = try? Group(configuration) else { return }
          var values = [Float](repeating: Float(rank), count: 5)
          do {
            try group.allReduce(&values, .sum)
            reduced.signal()
            try group.barrier()
          } catch { errors.add((rank, error as! RingError)) }
        }
      }
      for _ in 0..<2 { XCTAssertEqual(reduced.wait(timeout: .now() + 30), .success) }
      kill(victim.processIdentifier, SIGKILL)
      XCTAssertEqual(done.wait(timeout: .now() + 60), .success)
      victim.waitUntilExit()
      XCTAssertEqual(Set(errors.all.map { $0.0 }), [0, 2])
      for (_, error) in errors.all {
        XCTAssertEqual(error.status, .peerLost)
        XCTAssertEqual(error.rank, 1)
        XCTAssertTrue(error.text.contains(": the process of rank 1 ("), error.text)
      }
    }
  }

  func testEnvironmentIsReported() throws {
    try withHostfile(2) { hostfile in
      let (process, output) = try start(7, hostfile, "sum")
      let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      process.waitUntilExit()
      XCTAssertEqual(process.terminationStatus, 1)
      XCTAssertTrue(text.contains("RING_RANK"), text)
    }
  }
}
