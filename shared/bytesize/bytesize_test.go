package bytesize_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/bytesize"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bytesize.Bytes{
		"0": 0, "17": 17, "17B": 17, "64GiB": 64 << 30, "1.5 MiB": 3 << 19, " 4 KiB ": 4096, "2TiB": 2 << 40, "2GB": 2e9,
		"9007199254740991": bytesize.Max, "8191.5GiB": 16383 << 29,
	} {
		got, err := bytesize.Parse(text)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "GiB", "-1", "-1GiB", "1e3", "0x10", "1.3B", "9007199254740992", "9000000TiB", "12 parsec", "NaN", "Inf", "1_000",
	} {
		if got, err := bytesize.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", text, got)
		}
	}
}

func TestStringIsForPeople(t *testing.T) {
	t.Parallel()
	for amount, want := range map[bytesize.Bytes]string{
		0: "0 B", 1000: "1000 B", 1024: "1 KiB", 3 << 29: "1.5 GiB", 265842688: "253.53 MiB", -2048: "-2 KiB",
		100 << 30: "100 GiB",
	} {
		if got := amount.String(); got != want {
			t.Errorf("%d = %q, want %q", amount, got, want)
		}
	}
}

func TestTextIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := bytesize.Bytes(rapid.Int64Range(0, int64(bytesize.Max)).Draw(t, "amount"))
		text, _ := want.MarshalText()
		var got bytesize.Bytes
		if err := got.UnmarshalText(text); err != nil || got != want {
			t.Fatalf("%d -> %q -> %d, %v", want, text, got, err)
		}
	})
}

func TestSumsDoNotWrap(t *testing.T) {
	t.Parallel()
	if _, err := bytesize.Max.Add(1); !errors.Is(err, bytesize.ErrRange) {
		t.Errorf("Max + 1: %v", err)
	}
	if _, err := bytesize.Bytes(3).Sub(4); !errors.Is(err, bytesize.ErrRange) {
		t.Errorf("3 - 4: %v", err)
	}
	if _, err := bytesize.Of(-1); !errors.Is(err, bytesize.ErrRange) {
		t.Errorf("Of(-1): %v", err)
	}
	if sum, err := bytesize.Bytes(3).Add(4); sum != 7 || err != nil {
		t.Errorf("3 + 4 = %d, %v", sum, err)
	}
}
