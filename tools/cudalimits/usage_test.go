package main

import (
	"slices"
	"strings"
	"testing"
)

const log = `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5entryI3AddEvT_' for 'sm_90'
ptxas info    : Function properties for _Z5entryI3AddEvT_
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 16 bytes stack, 4096 bytes smem
ptxas info    : Compile time = 2.449 ms
ptxas info    : Compiling entry function '_Z5entryI3AddEvT_' for 'sm_75'
ptxas info    : Function properties for _Z6helperv
    64 bytes stack frame, 0 bytes spill stores, 32 bytes spill loads
ptxas info    : Function properties for _Z5entryI3AddEvT_
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers, 360 bytes cmem[0]
`

func TestLogsAreReadKernelByKernel(t *testing.T) {
	t.Parallel()
	got, err := parseLog(log)
	want := []usage{
		{"_Z5entryI3AddEvT_", "sm_90", 12, 16, 8, 4096},
		{"_Z5entryI3AddEvT_", "sm_75", 8, 0, 32, 0},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if err := nameAll(got); err != nil || got[0].kernel != "Add" {
		t.Errorf("named %q, %v", got[0].kernel, err)
	}
	most := worst(got)
	if want := []usage{{"Add", "sm_90", 12, 16, 32, 4096}}; !slices.Equal(most, want) {
		t.Errorf("worst %+v, want %+v", most, want)
	}
	if _, err := parseLog(strings.ReplaceAll(log, "Used 8", "Took 8")); err == nil {
		t.Error("a kernel without registers was taken")
	}
}

func TestFunctorsAreNamed(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"void proofrack::entry<proofrack::msm::Sum<proofrack::Fp> >(proofrack::msm::Sum<proofrack::Fp>)": "msm::Sum<Fp>",
		"void entry<Add, 3>(Add)": "Add",
		"plain(int*)":             "plain",
	} {
		if got := functor(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestKernelsOverALimitAreNamed(t *testing.T) {
	t.Parallel()
	l, err := parseLimits("# kernel\n* 128 0 0\nmsm::* 255 512 64\n")
	if err != nil {
		t.Fatal(err)
	}
	got := l.exceeded([]usage{
		{kernel: "ntt::Pass", arch: "sm_90", registers: 128},
		{kernel: "ntt::Wide", arch: "sm_90", registers: 129, spilled: 4},
		{kernel: "msm::Sum", arch: "sm_80", registers: 255, stack: 512, spilled: 64},
		{kernel: "msm::Deep", arch: "sm_80", stack: 513},
	})
	want := []string{
		"kernel ntt::Wide takes 129 registers on sm_90, the limit is 128",
		"kernel ntt::Wide takes 4 bytes of spills on sm_90, the limit is 0",
		"kernel msm::Deep takes 513 bytes of stack on sm_80, the limit is 512",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (limits{}).exceeded([]usage{{kernel: "x"}}); len(got) != 1 {
		t.Errorf("a kernel without a limit: %q", got)
	}
	for _, bad := range []string{"* 1 2", "* 1 2 x", "[ 1 2 3", "* 1 2 -3"} {
		if _, err := parseLimits(bad); err == nil {
			t.Errorf("limits %q were taken", bad)
		}
	}
}
