package workergpu

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/inventory/gpu"
	"github.com/proofrack/proofrack/shared/metrics"
)

// What the driver does not tell is not there: never 0, and never endless (B99, B101). A GPU that fails its polls shows
// as such under its device's name (B102).
func TestB99B101B102GPUsInMetrics(t *testing.T) {
	t.Parallel()
	r := metrics.New(metrics.DefaultConfig(), metrics.Options{Role: "gpu", Node: "n", Shared: true, Log: zerolog.Nop()})
	r.Add("gpus", func(_ context.Context, e *metrics.Emitter) error {
		showGPU(e, "full", &gpu.Device{
			Healthy: true, Memory: gpu.Memory{Known: true, Total: 80 * bytesize.GiB, Free: 60 * bytesize.GiB}, Utilization: 50,
			PowerMW: 350_500, EnergyMJ: 7_200_000,
		})
		showGPU(e, "slice", &gpu.Device{
			Healthy: false, Utilization: gpu.Unknown, PowerMW: gpu.Unknown, EnergyMJ: gpu.Unknown,
		})
		return nil
	})
	answer := httptest.NewRecorder()
	metrics.Handler(r).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	text := answer.Body.String()
	for _, line := range []string{
		`c2_gpu_healthy{device="full",node="n",role="gpu"} 1`, `c2_gpu_healthy{device="slice",node="n",role="gpu"} 0`,
		`c2_gpu_memory_bytes{device="full",node="n",role="gpu",state="total"} 8.589934592e+10`,
		`c2_gpu_memory_bytes{device="full",node="n",role="gpu",state="used"} 2.147483648e+10`,
		`c2_gpu_busy_ratio{device="full",node="n",role="gpu"} 0.5`,
		`c2_gpu_power_watts{device="full",node="n",role="gpu"} 350.5`,
		`c2_gpu_energy_watt_hours_total{device="full",node="n",role="gpu"} 2`,
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("page lacks %s", line)
		}
	}
	if got := strings.Count(text, `device="slice"`); got != 1 {
		t.Errorf("%d facts of a device that tells none", got)
	}
}
