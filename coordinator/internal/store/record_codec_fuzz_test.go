package store

import (
	"encoding/json"
	"testing"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Whatever lies in the bucket: it is refused as corrupt, or it is a record that can be written again.
func FuzzDecodeRecord(f *testing.F) {
	const id = job.ID("01890a5d-ac96-774b-bcce-b302099a8057")
	good, err := json.Marshal(&job.Record{
		Version: 1, ID: id, Tenant: "main", State: job.Active,
		Partitions: []job.Partition{{Stage: job.Reserved, Fence: 1, Node: "n1", Device: "cpu"}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"v":9}`))
	f.Add([]byte(`{"v":1,"id":"01890a5d-ac96-774b-bcce-b302099a8057","tenant":"main","state":"odd","partitions":[{}]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decode(id, data)
		if err != nil {
			if fault.KindOf(err) != fault.Corrupt {
				t.Fatalf("kind %s: %v", fault.KindOf(err), err)
			}
			return
		}
		again, err := encode(clone(r))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(id, again); err != nil {
			t.Fatalf("what was written is refused: %v", err)
		}
	})
}
