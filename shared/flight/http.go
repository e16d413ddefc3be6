package flight

import (
	"encoding/json"
	"net/http"
)

// Status is what a process says of its buffers: its own report, then those of processes below it.
type Status struct {
	Reports []Report `json:"flight"`
}

// Mount adds GET /status, the reports as JSON, and GET /flight/timeline, the points as JSON lines.
func Mount(mux *http.ServeMux, status func() Status, points func() []Point) {
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(status()) // the client is gone
	})
	mux.HandleFunc("GET /flight/timeline", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/jsonl")
		w.Header().Set("Cache-Control", "no-store")
		_ = WritePoints(w, points()) // the client is gone
	})
}
