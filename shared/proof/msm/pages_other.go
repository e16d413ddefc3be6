//go:build !linux

package msm

// adviseHuge does nothing: there is no such advice here.
func adviseHuge([]uint64) {}
