package bytesize

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Bytes is an amount of memory, 0 … Max when it is one that is held.
type Bytes int64

// Units.
const (
	B   Bytes = 1
	KiB       = 1024 * B
	MiB       = 1024 * KiB
	GiB       = 1024 * MiB
	TiB       = 1024 * GiB
)

// Max is the largest amount: scripts of the ledger's store count in doubles, which are exact below 2^53.
const Max Bytes = 1<<53 - 1

// ErrRange is wrapped when an amount or a sum lies outside 0 … Max.
var ErrRange = errors.New("amount of bytes is out of range")

// Of checks an amount from outside.
func Of(n int64) (Bytes, error) {
	if n < 0 || n > int64(Max) {
		return 0, fmt.Errorf("%w: %d", ErrRange, n)
	}
	return Bytes(n), nil
}

// Add is b + c, with ErrRange when either or the sum is out of range.
func (b Bytes) Add(c Bytes) (Bytes, error) {
	if b < 0 || c < 0 || b > Max || c > Max || b+c > Max {
		return 0, fmt.Errorf("%w: %d + %d", ErrRange, b, c)
	}
	return b + c, nil
}

// Sub is b − c, with ErrRange when c is more than b.
func (b Bytes) Sub(c Bytes) (Bytes, error) {
	if b < 0 || c < 0 || c > b {
		return 0, fmt.Errorf("%w: %d - %d", ErrRange, b, c)
	}
	return b - c, nil
}

var units = []struct {
	name  string
	bytes Bytes
}{
	{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB}, {"B", B},
}

// String is the amount in the largest unit that it fills, with at most two decimals: "1.5 GiB". It is for people; Text
// is exact.
func (b Bytes) String() string {
	for _, u := range units {
		if b >= u.bytes || -b >= u.bytes {
			number := strconv.FormatFloat(float64(b)/float64(u.bytes), 'f', 2, 64)
			if strings.Contains(number, ".") {
				number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
			}
			return number + " " + u.name
		}
	}
	return "0 B"
}

// MarshalText is the exact amount in the largest unit that divides it: "64GiB".
func (b Bytes) MarshalText() ([]byte, error) {
	for _, u := range units {
		if b != 0 && b%u.bytes == 0 {
			return fmt.Appendf(nil, "%d%s", b/u.bytes, u.name), nil
		}
	}
	return []byte("0B"), nil
}

// UnmarshalText reads what Parse reads.
func (b *Bytes) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*b = parsed
	return nil
}

// Parse reads a number with a unit, "64GiB", "1.5 MiB", "4096B"; a number without one is bytes. Decimal units (kB, MB,
// GB, TB) are read as powers of 1000. Fractions of a byte are refused.
func Parse(text string) (Bytes, error) {
	number := strings.TrimSpace(text)
	unit := B
	for _, u := range append(units[:len(units)-1:len(units)-1], decimal...) {
		if cut, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(cut), u.bytes
			break
		}
	}
	if unit == B {
		number = strings.TrimSpace(strings.TrimSuffix(number, "B"))
	}
	if whole, err := strconv.ParseInt(number, 10, 64); err == nil {
		if whole < 0 || whole > int64(Max/unit) {
			return 0, fmt.Errorf("%w: %q", ErrRange, text)
		}
		return Bytes(whole) * unit, nil
	}
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || strings.ContainsAny(number, "xXpP_eEnN") {
		return 0, fmt.Errorf("amount of bytes %q is not a number with a unit like 512MiB", text)
	}
	value *= float64(unit)
	if value < 0 || value > float64(Max) || value != math.Trunc(value) {
		return 0, fmt.Errorf("%w: %q", ErrRange, text)
	}
	return Bytes(value), nil
}

var decimal = []struct {
	name  string
	bytes Bytes
}{
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3},
}
