package verb

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// A leak of each class is named, with process, owner and size, and --check fails for it.
func TestFlightNamesALeakOfEachClass(t *testing.T) {
	t.Parallel()
	for _, class := range ledger.Classes() {
		piece := flight.Piece{
			Label: "whose\nit is", Stage: flight.Released, Bytes: 3 << 20, AgeMS: 65_000, ReleasedMS: 60_000,
		}
		reply := &wire.FlightReply{Nodes: []wire.FlightNode{{Node: "n1", Reports: []flight.Report{{
			Process: "gpu", RSSBytes: 9 << 20, BeyondBytes: 5 << 20, Pending: 1, Classes: []flight.ClassReport{{
				Class: class, Live: []flight.StageCount{{Stage: flight.Released, Pieces: 1, Bytes: 3 << 20}}, Pieces: 1,
				HighPieces: 4, HighBytes: 12 << 20, GonePieces: 200, Lag: []uint64{0, 100, 99, 1, 0, 0, 0},
				Oldest: []flight.Piece{piece},
			}},
		}}}}}
		n := &reply.Nodes[0]
		var text strings.Builder
		(&flightResult{reply}).human(&text)
		if strings.Contains(text.String(), "LEAK") || checkFlight(reply) != nil {
			t.Errorf("%s: a leak that is none: %s", class, &text)
		}
		n.Leaks = flight.Leaks(n.Reports, func(string) bool { return true }, time.Second)
		text.Reset()
		(&flightResult{reply}).human(&text)
		for _, want := range []string{
			"node n1: at work", string(class), "1 released 3 MiB", "4 x 12 MiB", "200", "100ms",
			"LEAK of 3 MiB: whose it is, released, 1m5s old", "5 MiB of 9 MiB resident", "1 pending",
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s: no %q in\n%s", class, want, &text)
			}
		}
		err := checkFlight(reply)
		if f := (*failure)(nil); !errors.As(err, &f) || f.kind != notReady || !strings.Contains(err.Error(), string(class)) {
			t.Errorf("%s: check says %v", class, err)
		}
	}
	defect := &wire.FlightReply{Nodes: []wire.FlightNode{{Node: "n1", Reports: []flight.Report{{
		Process: "synth", Defects: 2, Defect: "srs twice",
	}}}}}
	if err := checkFlight(defect); err == nil || !strings.Contains(err.Error(), "srs twice") {
		t.Errorf("check of a defect says %v", err)
	}
}

// Processes of all nodes are told apart, and one that is not there any more has nothing.
func TestFlightRecordsEveryProcess(t *testing.T) {
	t.Parallel()
	report := func(process string) flight.Report {
		return flight.Report{Process: process, Classes: []flight.ClassReport{{
			Class: ledger.ClassInput, Live: []flight.StageCount{{Stage: flight.Sealed, Pieces: 1, Bytes: 7}},
		}}}
	}
	l := newLines()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l.follow(at, &wire.FlightReply{Nodes: []wire.FlightNode{
		{Node: "n1", Reports: []flight.Report{report("synth"), report("synth"), {}}},
		{Node: "n2", Reports: []flight.Report{report("synth")}},
	}})
	l.follow(at.Add(time.Second), &wire.FlightReply{Nodes: []wire.FlightNode{
		{Node: "n1", Reports: []flight.Report{report("synth")}}, {Node: "n2", Reports: []flight.Report{report("synth")}},
	}})
	var got []string
	for _, p := range l.points() {
		got = append(got, p.At.Format("05 ")+p.Process+" "+p.Bytes.String())
	}
	want := []string{"05 n1 synth 7 B", "05 n1 synth 2 7 B", "05 n2 synth 7 B", "06 n1 synth 2 0 B"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFlightDrawsARecordedTimeline(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	line, picture := filepath.Join(folder, "line.jsonl"), filepath.Join(folder, "line.svg")
	text := `{"at":"2026-01-02T03:04:05Z","process":"n1 gpu","class":"srs","stage":"mapped","pieces":1,"bytes":"1MiB"}`
	if err := os.WriteFile(line, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &app{}
	if err := a.drawFlight(&flightFlags{from: line, picture: picture}); err != nil {
		t.Fatal(err)
	}
	drawn, err := os.ReadFile(picture)
	if err != nil || !strings.Contains(string(drawn), "n1 gpu") || !strings.Contains(string(drawn), "srs") {
		t.Errorf("%v: %s", err, drawn)
	}
	if err := os.WriteFile(line, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := (*failure)(nil)
	if err := a.drawFlight(&flightFlags{from: line, picture: picture}); !errors.As(err, &f) || f.kind != badInput {
		t.Errorf("a line without a process: %v", err)
	}
}

func TestFlightRefusesFlagsThatDoNotGoTogether(t *testing.T) {
	t.Parallel()
	a := &app{}
	for _, args := range [][]string{
		{"n1", "n2"}, {"--from", "x"}, {"--from", "x", "--svg", "y", "--check"}, {"--from", "x", "--svg", "y", "n1"},
		{"--every", "1ms"}, {"--for", "-1s"}, {"--for", "1000h"},
	} {
		c := a.flightCommand()
		c.SetArgs(args)
		c.SilenceErrors, c.SilenceUsage = true, true
		err := c.Execute()
		if f := (*failure)(nil); !errors.As(err, &f) || f.kind != usage {
			t.Errorf("%q: %v", args, err)
		}
	}
}
