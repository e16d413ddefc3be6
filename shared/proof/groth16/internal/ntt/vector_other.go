//go:build !amd64

package ntt

// vectorSupported is false: there is a vector kernel for amd64 only.
func vectorSupported() bool { return false }

func newVectorKernel(*Domain) kernel { panic("ntt: no vector kernel for this architecture") }
