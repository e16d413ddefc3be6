package redisledger_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
)

// What the store holds is read without a panic whatever it is, and what can be read is written back alike.
func FuzzBookDecode(f *testing.F) {
	const partition = "01890a5d-ac96-774b-bcce-000000000001.0."
	f.Add("1|e1|r1", "7|1767323045000|1|1|0", "9", "ram=5,shm=6", partition,
		"1|L|1767323045000|1767323060000|ram=5|srs:x@ram", "srs:x@ram", "srs|6|1|1767323045000")
	f.Add("1|e1|r1", "7|1767323045000|2|0|1767323070000", "9", "ram=10", partition,
		"1|X|1767323045000|1767323060000|ram=5|;2|L|1767323045000|1767323060000|ram=5|", "", "")
	f.Add("1|e1|r1", "7|1767326645000|1|1|0|3595000", "9", "ram=5,shm=6", partition,
		"1|L|1767323045000|1767326660000|ram=5|srs:x@ram", "srs:x@ram", "srs|6|1|1767323045000")
	f.Add("1|e1|r1", "7|1767323045000|0|0|0|9007199254740991", "9", "", "", "", "", "")
	f.Add("||", "0|0|0|0|0", "", "", "", "", "", "")
	f.Add("1|e|r", "1|1|1|0|0", "9007199254740992", "ram=9007199254740991", partition, "1|X|1|2||;", "@", "|||")
	f.Fuzz(func(t *testing.T, gate, count, capacity, amounts, partition, entries, key, asset string) {
		book := []any{
			"gate", gate, "count", count, "boot", "b1", "instance", "i1", "seq", "4", "cap:ram", capacity,
			"e:" + partition, entries, "a:" + key, asset,
		}
		for part := range strings.SplitSeq(amounts, ",") {
			pool, amount, _ := strings.Cut(part, "=")
			book = append(book, "used:"+pool, amount)
		}
		dump := []any{"1767323050000", book}
		b, err := redisledger.DecodeBook("n1", "r1", dump)
		if err != nil {
			if fault.KindOf(err) != fault.Corrupt {
				t.Errorf("%v is %s", err, fault.KindOf(err))
			}
			return
		}
		if b == nil || b.Closed != "" {
			return
		}
		again, err := redisledger.DecodeBook("n1", "r1", redisledger.Redump(b))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(b, again, cmpopts.IgnoreFields(ledger.NodeBook{}, "Now"), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}
