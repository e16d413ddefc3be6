package ledgertest

import (
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/ledger"
)

// Lease is the lease of every backend under test.
const Lease = 15 * time.Second

// Start is where every backend's clock begins.
func Start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Backend is a store under test, with a clock that stands still between calls of Advance.
type Backend interface {
	// Open gives one more client.
	Open(t testing.TB) ledger.Ledger
	// Advance moves the clock, which may go back.
	Advance(t testing.TB, by time.Duration)
	// Restart begins another life of the store with the same content, Wipe with none.
	Restart(t testing.TB)
	Wipe(t testing.TB)
	// Snapshot keeps the content; what it gives goes back to that within the same life.
	Snapshot(t testing.TB) (rollBack func())
}

// Run runs the suite on backends that a function makes.
func Run(t *testing.T, backend func(testing.TB) Backend) {
	t.Helper()
	t.Run("scripts", func(t *testing.T) { runScripts(t, backend) })
	t.Run("random operations do what the machine does", func(t *testing.T) { runRandom(t, backend) })
	t.Run("B70ManyClientsReleaseEachReservationOnce", func(t *testing.T) { runClients(t, backend(t)) })
	t.Run("B69AmountsAreExactToTheByte", func(t *testing.T) { runAmounts(t, backend(t)) })
}
