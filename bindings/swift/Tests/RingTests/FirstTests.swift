import XCTest
import Ring
final class FirstTests: XCTestCase {
  func testOne() throws {
    let group = try Group(Configuration(rank: 0, hosts: "[\"here:0\"]"))
    var a = [1, 2, 3]
    try group.allReduce(&a, .sum)
    XCTAssertEqual(a, [1, 2, 3])
  }
}
