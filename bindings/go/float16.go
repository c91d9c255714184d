package ring

import "math"

// Float16 is an IEEE 754 binary16, by its bits.
type Float16 uint16

// BFloat16 is the upper half of a float32, by its bits.
type BFloat16 uint16

// ToBFloat16 rounds to the nearest, ties to even. A NaN stays one.
func ToBFloat16(value float32) BFloat16 {
	bits := math.Float32bits(value)
	if value != value {
		// Its payload may be in the lower half alone.
		return BFloat16(bits>>16 | 0x40)
	}
	return BFloat16((bits + 0x7fff + bits>>16&1) >> 16)
}

// Float32 is the same value.
func (b BFloat16) Float32() float32 { return math.Float32frombits(uint32(b) << 16) }

// ToFloat16 rounds to the nearest, ties to even; what is too large becomes an infinity. A NaN stays one.
func ToFloat16(value float32) Float16 {
	bits := math.Float32bits(value)
	sign := uint16(bits >> 16 & 0x8000)
	magnitude := bits & 0x7fffffff
	const (
		infinity  = 0x7f800000
		normal    = 0x38800000 // 2^-14, the smallest with an exponent
		overflows = 0x477ff000 // 65520, the first that rounds to 2^16
	)
	switch {
	case magnitude > infinity:
		return Float16(sign | 0x7e00 | uint16(magnitude>>13&0x3ff))
	case magnitude >= overflows:
		return Float16(sign | 0x7c00)
	case magnitude < normal:
		// Adding a half makes one unit of it one of the smallest float16, and rounds.
		sum := math.Float32frombits(magnitude) + 0.5
		return Float16(sign | uint16(math.Float32bits(sum)-math.Float32bits(0.5)))
	}
	// 112 is the difference of the exponents' biases. What rounding carries goes into the exponent, as it should.
	rounded := magnitude - 112<<23 + 0xfff + magnitude>>13&1
	return Float16(sign | uint16(rounded>>13))
}

// Float32 is the same value.
func (f Float16) Float32() float32 {
	sign, exponent, mantissa := uint32(f)&0x8000<<16, uint32(f)>>10&0x1f, uint32(f)&0x3ff
	switch exponent {
	case 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	case 0:
		// Units of 2^-24.
		magnitude := float32(mantissa) / (1 << 24)
		return math.Float32frombits(sign | math.Float32bits(magnitude))
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
}
