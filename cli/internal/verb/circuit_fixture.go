package verb

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/testsystem"
)

// digestFixture hashes one of the specification's test systems.
func (a *app) digestFixture(c *cobra.Command, name string) error {
	system, err := testsystem.Find(name)
	if errors.Is(err, testsystem.ErrUnknown) {
		return misuse("%w", err)
	}
	if err != nil {
		return err
	}
	if known := system.Circuit(); known != nil {
		return a.digestCircuit(c, known)
	}
	start := time.Now()
	totals := system.Totals()
	digest := r1cs.NewDigest(totals)
	system.Describe(digest)
	return a.emit(digestOf(fmt.Sprintf("fixture %s", name), totals, digest, start), false)
}
