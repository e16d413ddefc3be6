package verb

import (
	"cmp"
	"io"

	"github.com/spf13/cobra"

	workergpu "github.com/proofrack/proofrack/worker-gpu"
)

// devicesResult is what this machine has to prove on.
type devicesResult struct{ *workergpu.DeviceReport }

func (r devicesResult) human(w io.Writer) {
	row(w, "driver", "%s", cmp.Or(r.Driver, "none"))
	if r.DriverRuntime != "" {
		row(w, "", "serves CUDA %s", r.DriverRuntime)
	}
	if r.Library {
		row(w, "library", "CUDA %s, needs %s", r.Runtime, r.Needs)
		if r.Architectures != "" {
			row(w, "", "has code for %s", r.Architectures)
		}
	} else {
		row(w, "library", "none")
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		row(w, "device", "%s, %s, %s", d.UUID, d.Name, d.Memory)
		if d.Capability != "" {
			row(w, "", "compute capability %s, at %s", d.Capability, cmp.Or(d.PCI, "an unknown place"))
		}
	}
	if r.Missing != "" {
		row(w, "no GPU", "%s", oneLine(r.Missing))
		row(w, "", "%s", r.Hint)
	}
}

// devicesCommand lists the GPUs of this machine, or says why there are none.
func (a *app) devicesCommand() *cobra.Command {
	var library string
	c := &cobra.Command{
		Use:   "devices",
		Short: "list this machine's GPUs, or say what is lacking to prove on one",
		Long: "Looks for the device library and asks it for GPUs. Without one it says why, and what would help. Proofs on\n" +
			"the processor need none of it.",
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.emit(devicesResult{workergpu.Devices(library)}, false)
		},
	}
	c.Flags().StringVar(&library, "library", "", "device library; else one beside the program, or what the loader finds")
	return c
}
