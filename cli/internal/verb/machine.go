package verb

import (
	"github.com/klauspost/cpuid/v2"

	"github.com/proofrack/proofrack/shared/proof/msm"
)

// processorName is what the processor calls itself, and whether it has the vector instructions that sums use.
func processorName() string {
	name := cpuid.CPU.BrandName
	if name == "" {
		name = "unnamed processor"
	}
	if msm.Vectorised() {
		name += " with AVX-512 IFMA"
	}
	return name
}
