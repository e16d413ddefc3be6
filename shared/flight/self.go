package flight

import (
	"os"

	"github.com/proofrack/proofrack/shared/inventory"
)

// Self is what this process has in memory, for Config.Resident.
func Self() (Resident, error) {
	r, err := inventory.NewHost().Resident(os.Getpid())
	return Resident{Anonymous: r.Anonymous, File: r.Files, Shared: r.Shared}, err
}
