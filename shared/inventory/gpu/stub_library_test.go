//go:build cgo

package gpu_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/inventory/gpu"
)

// play opens a library as a program does and prints what it gives.
func play(path string) {
	l := gpu.NVML(path, inventory.NewHost())
	driver, err := l.Open()
	if err != nil {
		fmt.Println("open:", err)
		return
	}
	fmt.Println("driver", driver)
	readings, err := l.Read()
	if err != nil {
		fmt.Println("read:", err)
	}
	for _, r := range readings {
		text, _ := json.Marshal(r.Device)
		fmt.Printf("%s err=%v\n", text, r.Err)
	}
	l.Close()
	fmt.Println("end")
}

// The functions a driver's library has, in a few lines of C. Each test takes those it wants.
const (
	stubInit = "int nvmlInit_v2(void) { return 0; }\nint nvmlShutdown(void) { return 0; }\n"
	stubList = `int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(long)(i + 1); return 0; }
int nvmlDeviceGetUUID(void *d, char *s, unsigned n) { strncpy(s, "GPU-stub", n); return 0; }
`
	stubName    = "int nvmlDeviceGetName(void *d, char *s, unsigned n) { strncpy(s, \"Stub\", n); return 0; }\n"
	stubRefuses = `int nvmlDeviceGetMemoryInfo(void *d, void *m) { return 4; }
int nvmlDeviceGetUtilizationRates(void *d, void *u) { return 3; }
`
	stubBroken = "int nvmlDeviceGetMemoryInfo(void *d, void *m) { return 999; }\n"
)

// The binding ends the process when it calls what is not there, so each library is tried in a process of its own.
func TestRealLibrariesInAProcessOfTheirOwn(t *testing.T) {
	t.Parallel()
	unknown := `{"Index":0,"UUID":"GPU-stub","Name":"%s","PCI":"","NUMANode":-1,"MIG":false,` +
		`"Memory":{"Known":false,"Total":"0B","Free":"0B"},"Utilization":-1,` +
		`"PowerMW":-1,"EnergyMJ":-1,"Healthy":false,"Reason":""} err=%s`
	for name, c := range map[string]struct {
		source string // "" for no library at all
		want   []string
	}{
		"B99 no library": {"", []string{"open: NVML library not found"}},
		"B99 no driver": {"int nvmlInit_v2(void) { return 9; }\n" + stubList,
			[]string{"open: NVML does not start: driver not loaded (NVML 9)"}},
		"B99 some other library": {"int hello(void) { return 0; }\n", []string{"open: NVML library has no nvmlInit"}},
		"old library without most": {stubInit + stubList,
			[]string{"driver unknown", fmt.Sprintf(unknown, "", "<nil>"), "end"}},
		"first versions only": {
			strings.ReplaceAll(stubInit+stubList, "_v2", "") + stubName,
			[]string{"driver unknown", fmt.Sprintf(unknown, "Stub", "<nil>"), "end"}},
		"B101 memory withheld": {stubInit + stubList + stubName + stubRefuses,
			[]string{"driver unknown", fmt.Sprintf(unknown, "Stub", "<nil>"), "end"}},
		"B102 unknown error": {stubInit + stubList + stubName + stubBroken,
			[]string{"driver unknown", fmt.Sprintf(unknown, "Stub", "ask for its memory: unknown error (NVML 999)"), "end"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
			if c.source != "" {
				source := path + ".c"
				text := "#include <string.h>\n" + c.source
				if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", path, source).CombinedOutput(); err != nil {
					t.Fatalf("build the stub: %v: %s", err, out)
				}
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), playVariable+"="+path)
			out, err := cmd.CombinedOutput()
			if want := strings.Join(c.want, "\n") + "\n"; err != nil || string(out) != want {
				t.Errorf("%v\n%s, want\n%s", err, out, want)
			}
		})
	}
}
