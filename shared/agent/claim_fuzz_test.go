package agent_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/agent"
)

// Other agents write claims: whatever is in them, reading and comparing them gives an answer.
func FuzzClaim(f *testing.F) {
	for _, text := range []string{
		`{"v":1,"node":"n3","agent":"a","boot":"b","pid":1,"parts":[{"resource":"ram","all":true,"bytes":"1GiB"}]}`,
		`{"v":1,"agent":"a","parts":[{"resource":"shm 0:27","scope":"1:2","bytes":"8191PiB"}]}`, `{"v":2}`, `{`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(_ *testing.T, text []byte) { agent.ReadableClaim(text) })
}
