package web

import (
	"context"
	"encoding/json"
	"time"

	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// askPause is between tries to reach a rack that doesn't answer, askWithin how long a viewer waits for it.
const (
	askPause  = 250 * time.Millisecond
	askWithin = 4 * time.Second
)

// ask makes one operator's request.
func (s *Server) ask(ctx context.Context, verb string, body wire.Body, answer reply) error {
	b, err := s.bus()
	if err != nil {
		return err
	}
	return client.Ask(ctx, b, wire.AdminSubject(verb), body, answer, askPause)
}

type reply interface {
	wire.Body
	Err() error
}

// rackDocument is the overview.
type rackDocument struct {
	// Away is why the leader doesn't answer; what follows it is then missing.
	Away    *fault.Report     `json:"away,omitempty"`
	Rack    *wire.NodesReply  `json:"rack,omitempty"`
	Flight  []wire.FlightNode `json:"flight,omitempty"`
	Letters int               `json:"letters"`
	Jobs    []wire.JobSummary `json:"jobs"`
	More    bool              `json:"more,omitempty"`
	Counts  map[job.State]int `json:"counts"`
}

// jobsShown bounds the overview.
const jobsShown = 200

// overview asks for that.
func (s *Server) overview(ctx context.Context) ([]byte, error) {
	b, err := s.bus()
	if err != nil {
		return nil, err
	}
	d := rackDocument{Jobs: []wire.JobSummary{}, Counts: map[job.State]int{}}
	var jobs wire.JobsReply
	if err := s.ask(ctx, wire.AdminJobs, &wire.JobsRequest{Limit: jobsShown}, &jobs); err != nil {
		return nil, err
	}
	d.Jobs, d.More = append(d.Jobs, jobs.Jobs...), jobs.More
	for i := range d.Jobs {
		d.Counts[d.Jobs[i].State]++
	}
	d.Letters = d.Counts[job.Failed]
	within, cancel := context.WithTimeout(ctx, askWithin/2)
	defer cancel()
	rack, err := client.Nodes(within, b, askPause)
	if err != nil {
		d.Away = fault.ReportOf("ask the leader", err)
		return json.Marshal(d)
	}
	d.Rack = rack
	var flight wire.FlightReply
	if err := s.ask(within, wire.AdminFlight, &wire.FlightRequest{}, &flight); err == nil {
		d.Flight = flight.Nodes
	}
	return json.Marshal(d)
}

// jobDocument is a job's page.
type jobDocument struct {
	Record *job.Record `json:"record"`
	Live   []wire.Live `json:"live,omitempty"`
	// Held is what its attempts have booked now, by attempt.
	Held map[string]ledger.Amounts `json:"held,omitempty"`
	Why  []wire.Reason             `json:"why,omitempty"`
	// Away is why Held and Why are missing.
	Away *fault.Report `json:"away,omitempty"`
	// TraceURL is the link to its trace.
	TraceURL string `json:"trace_url,omitempty"`
}

// job asks for a job's page.
func (s *Server) job(ctx context.Context, tenant job.Tenant, id job.ID) ([]byte, error) {
	b, err := s.bus()
	if err != nil {
		return nil, err
	}
	c := client.New(b, tenant)
	status, err := c.Status(ctx, id)
	if err != nil {
		return nil, err
	}
	r := status.Record
	for i := range r.Partitions {
		r.Partitions[i].Proof = nil // the whole proof is to be had by itself
	}
	d := jobDocument{Record: r, Live: status.Live, Held: map[string]ledger.Amounts{}, TraceURL: s.traceURL(r)}
	if r.State.Ended() {
		return json.Marshal(d)
	}
	within, cancel := context.WithTimeout(ctx, askWithin/2)
	defer cancel()
	why, err := c.Why(within, id)
	if err != nil {
		d.Away = fault.ReportOf("ask the leader", err)
		return json.Marshal(d)
	}
	d.Why = why.Reasons
	books, err := client.Ledger(within, b, askPause)
	if err != nil {
		d.Away = fault.ReportOf("ask the leader", err)
		return json.Marshal(d)
	}
	for _, node := range books.Nodes {
		for i := range node.Entries {
			if a, err := job.ParseAttempt(node.Entries[i].Name); err == nil && a.Job == id {
				d.Held[node.Entries[i].Name] = node.Entries[i].Amounts
			}
		}
	}
	return json.Marshal(d)
}

// list asks for something and gives the answer as it is.
func (s *Server) list(ctx context.Context, verb string, body wire.Body, answer reply) ([]byte, error) {
	if err := s.ask(ctx, verb, body, answer); err != nil {
		return nil, err
	}
	return json.Marshal(answer)
}
