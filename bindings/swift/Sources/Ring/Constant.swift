// An enumeration of ring.h is a type of its own to Swift, and the functions take the number. The type has no name here: the
// header has a typedef of the number by the same one.
extension RawRepresentable where RawValue == Int32 {
  init<Constant: RawRepresentable>(constant: Constant) where Constant.RawValue: BinaryInteger {
    self.init(rawValue: Int32(constant.rawValue))!
  }
}
