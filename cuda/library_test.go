package cuda_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/cuda"
)

func TestWithoutALibraryTheReasonIsGiven(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "libproofrack_cuda.so"): "libproofrack_cuda.so",
		"libm.so.6": "is not proofrack's device library",
	} {
		_, err := cuda.Load(path)
		if !errors.Is(err, cuda.ErrNoDevice) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want ErrNoDevice and %q", path, err, want)
		}
	}
}

func TestStatusesAreToldApart(t *testing.T) {
	t.Parallel()
	for code, want := range map[cuda.Code]error{
		cuda.CodeNoDriver: cuda.ErrNoDevice, cuda.CodeOldDriver: cuda.ErrNoDevice, cuda.CodeNoDevice: cuda.ErrNoDevice,
		cuda.CodeMemory: cuda.ErrMemory, cuda.CodeHostMemory: cuda.ErrMemory, cuda.CodeAborted: cuda.ErrAborted,
		cuda.CodeBusy: cuda.ErrBusy,
	} {
		if err := error(&cuda.Error{Code: code}); !errors.Is(err, want) {
			t.Errorf("code %d is not %v", code, want)
		}
	}
	for _, code := range []cuda.Code{cuda.CodeArgument, cuda.CodeDevice, cuda.CodeQuotient, cuda.CodeInternal} {
		if err := errors.Unwrap(&cuda.Error{Code: code}); err != nil {
			t.Errorf("code %d is %v", code, err)
		}
	}
}

func TestVersionsSayWhatDriverTheyNeed(t *testing.T) {
	t.Parallel()
	for runtime, want := range map[int]string{13050: "580", 12040: "525", 11080: "450", 0: "no driver"} {
		if got := (cuda.Version{Runtime: runtime}).Needs(); !strings.Contains(got, want) {
			t.Errorf("runtime %s: %q, want %s", cuda.Release(runtime), got, want)
		}
	}
	if got := cuda.Release(13050); got != "13.5" {
		t.Errorf("13050 is %q", got)
	}
}
