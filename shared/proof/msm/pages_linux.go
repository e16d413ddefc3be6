package msm

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size and alignment of a transparent huge page; that of other sizes only makes the advice useless.
const hugePage = 2 << 20

// adviseHuge asks for huge pages under b, which is read and written all over: with small ones most accesses miss the
// TLB. It is advice only, so what the kernel answers does not matter.
func adviseHuge(b []uint64) {
	if len(b)*8 < 2*hugePage {
		return
	}
	skip := (hugePage - int(uintptr(unsafe.Pointer(&b[0]))%hugePage)) % hugePage / 8
	words := (len(b) - skip) &^ (hugePage/8 - 1)
	_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(&b[skip])), words*8), unix.MADV_HUGEPAGE)
}
