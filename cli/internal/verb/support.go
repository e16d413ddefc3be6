package verb

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/support"
	"github.com/proofrack/proofrack/shared/wire"
)

// supportResult is what is in a bundle; it is in it, too, as bundle.json.
type supportResult struct {
	Bundle string    `json:"bundle"`
	Build  string    `json:"build"`
	At     time.Time `json:"at"`
	// Told are the programs that told about themselves, Silent those that were asked and did not in time.
	Told   []wire.Program `json:"told"`
	Silent []wire.Program `json:"silent"`
	// Missing are parts that could not be had, and why.
	Missing map[string]string `json:"missing"`
	Files   []string          `json:"files"`
}

func (r *supportResult) human(w io.Writer) {
	row(w, "bundle", "%s, %d files", r.Bundle, len(r.Files))
	for _, p := range r.Told {
		row(w, "has", "%s", programName(&p))
	}
	for _, p := range r.Silent {
		row(w, "silent", "%s did not answer", programName(&p))
	}
	for _, part := range sortedKeys(r.Missing) {
		row(w, "missing", "%s: %s", part, r.Missing[part])
	}
}

// programName names a program, as a folder too.
func programName(p *wire.Program) string {
	name := p.Role + "-" + p.Instance[:min(len(p.Instance), 8)]
	if p.Node != "" && p.Node != wire.NodeCoordinators {
		name = string(p.Node) + "-" + name
	}
	return strings.Map(func(c rune) rune { // the names came over the network
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' {
			return c
		}
		return '_'
	}, name)
}

// supportCommand makes an archive for somebody who helps.
func (a *app) supportCommand() *cobra.Command {
	var flags rackFlags
	var out string
	c := &cobra.Command{
		Use:   "support-bundle [--out FILE]",
		Short: "put what somebody who helps wants to see into one archive",
		Long: "support-bundle asks the rack and all its programs, and looks at this host. The archive has versions,\n" +
			"settings, metrics and the last lines of the logs of every worker and coordinator, what nodes,\n" +
			"ledger, flight, memory, assets, jobs and dlq print, the latest events, and what doctor finds here. What looks\n" +
			"like a secret is taken out; look through it before you pass it on: job ids, miners and host names are in it.",
		Args: noArgs,
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			return a.bundle(c.Context(), &flags, r, out)
		}),
	}
	flags.register(c)
	c.Flags().StringVar(&out, "out", "", "the archive (proofrack-support-TIME.tar.gz in this folder)")
	return c
}

// bundle collects and writes.
func (a *app) bundle(ctx context.Context, flags *rackFlags, r *rack, out string) error {
	now := time.Now().UTC()
	b := &bundle{result: supportResult{
		Bundle: cmp.Or(out, "proofrack-support-"+now.Format("20060102-150405")+".tar.gz"), Build: buildOf(), At: now,
		Told: []wire.Program{}, Silent: []wire.Program{}, Missing: map[string]string{},
	}}
	if err := b.programs(ctx, r); err != nil {
		return err // nobody leads
	}
	b.rack(ctx, r)
	b.host(ctx, a, flags)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := b.write(); err != nil {
		return err
	}
	return a.emit(&b.result, false)
}

// bundle is an archive that is being made.
type bundle struct {
	result supportResult
	texts  []string
}

// add puts a text into the archive, without what looks like a secret.
func (b *bundle) add(name, text string) {
	if text == "" {
		return
	}
	b.result.Files = append(b.result.Files, name)
	b.texts = append(b.texts, support.Scrub(text))
}

// addJSON puts a value into the archive, or notes why there is none.
func (b *bundle) addJSON(name string, value any, err error) {
	var text []byte
	if err == nil {
		text, err = json.MarshalIndent(value, "", "  ")
	}
	if err != nil {
		b.result.Missing[name] = oneLine(err.Error())
		return
	}
	b.add(name, string(text)+"\n")
}

// programs has the rack's programs tell about themselves.
func (b *bundle) programs(ctx context.Context, r *rack) error {
	id := uuid.NewString()
	var mu sync.Mutex
	heard := map[wire.Program]*wire.Diagnosis{}
	more := make(chan struct{}, 1)
	stop, err := r.bus.Subscribe(wire.AllReports, func(m bus.Message) {
		var d wire.Diagnosis
		if m.Header[wire.HeaderDiagnosis] != id || wire.Decode(m.Data, &d) != nil || d.ID != id ||
			wire.Token(m.Subject, 2) != string(d.Node) {
			return
		}
		mu.Lock()
		heard[d.Program] = &d
		mu.Unlock()
		select {
		case more <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return fmt.Errorf("listen to nodes: %w", err)
	}
	defer stop()
	if err := askCoordinators(ctx, r, id); err != nil {
		b.result.Missing["coordinators that do not lead"] = oneLine(err.Error())
	}
	asked := time.Now()
	var reply wire.DiagnoseReply
	if err := r.admin(ctx, wire.AdminDiagnose, &wire.DiagnoseRequest{ID: id}, &reply); err != nil {
		return err
	}
	limit, cancel := r.within(ctx)
	defer cancel()
	missing := func() (silent []wire.Program) {
		mu.Lock()
		defer mu.Unlock()
		return slices.DeleteFunc(slices.Clone(reply.Programs), func(p wire.Program) bool { return heard[p] != nil })
	}
	for len(missing()) > 0 && limit.Err() == nil {
		select {
		case <-more:
		case <-limit.Done():
		}
	}
	b.result.Silent = append(b.result.Silent, missing()...)
	if reply.Leader != nil {
		b.told(reply.Leader)
	}
	select { // how many coordinators there are nobody knows
	case <-time.After(time.Until(asked.Add(coordinatorsWait))):
	case <-limit.Done():
	}
	mu.Lock()
	b.followers(heard, reply.Leader)
	mu.Unlock()
	for _, p := range reply.Programs {
		mu.Lock()
		d := heard[p]
		mu.Unlock()
		if d != nil {
			b.told(d)
		}
	}
	if len(reply.Events) > 0 {
		b.addJSON("rack/events.json", reply.Events, nil)
	}
	return nil
}

// coordinatorsWait is how long coordinators may take to tell about themselves.
const coordinatorsWait = time.Second

// followersMax bounds coordinators in a bundle.
const followersMax = 16

// askCoordinators has all coordinators tell about themselves.
func askCoordinators(ctx context.Context, r *rack, id string) error {
	question, err := wire.Encode(&wire.DiagnoseRequest{ID: id})
	if err != nil {
		return err
	}
	return r.bus.Send(ctx, bus.Message{Subject: wire.AdminSubject(wire.AdminTell), Data: question})
}

// followers adds what coordinators told that do not lead.
func (b *bundle) followers(heard map[wire.Program]*wire.Diagnosis, leader *wire.Diagnosis) {
	var all []*wire.Diagnosis
	for p, d := range heard {
		if p.Node == wire.NodeCoordinators && (leader == nil || p.Instance != leader.Instance) {
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b *wire.Diagnosis) int { return strings.Compare(a.Instance, b.Instance) })
	for _, d := range all[:min(len(all), followersMax)] {
		b.told(d)
	}
}

// told adds what a program tells.
func (b *bundle) told(d *wire.Diagnosis) {
	name := programName(&d.Program)
	p, err := support.Unpack(d.Packed)
	if err != nil {
		b.result.Missing[name] = oneLine(err.Error())
		return
	}
	b.result.Told = append(b.result.Told, d.Program)
	b.add(path.Join("programs", name, "settings.txt"), p.Settings)
	b.add(path.Join("programs", name, "metrics.txt"), p.Metrics)
	b.add(path.Join("programs", name, "log.txt"), p.Log)
	p.Settings, p.Metrics, p.Log = "", "", ""
	b.addJSON(path.Join("programs", name, "about.json"), p, nil)
}

// rack adds what the leader answers.
func (b *bundle) rack(ctx context.Context, r *rack) {
	nodes, err := paged(ctx, r, client.Nodes)
	b.addJSON("rack/nodes.json", nodes, err)
	ledger, err := paged(ctx, r, client.Ledger)
	b.addJSON("rack/ledger.json", ledger, err)
	letters, err := paged(ctx, r, client.Letters)
	b.addJSON("rack/dlq.json", letters, err)
	var flight wire.FlightReply
	b.addJSON("rack/flight.json", &flight, r.admin(ctx, wire.AdminFlight, &wire.FlightRequest{}, &flight))
	var memory wire.MemoryReply
	b.addJSON("rack/memory.json", &memory, r.admin(ctx, wire.AdminMemory, &wire.MemoryRequest{}, &memory))
	var assets wire.AssetsReply
	b.addJSON("rack/assets.json", &assets, r.admin(ctx, wire.AdminAssets, &wire.AssetsRequest{}, &assets))
	var jobs wire.JobsReply
	b.addJSON("rack/jobs.json", &jobs, r.admin(ctx, wire.AdminJobs, &wire.JobsRequest{}, &jobs))
}

// host adds what doctor finds on this host.
func (b *bundle) host(ctx context.Context, a *app, flags *rackFlags) {
	checks := &doctorResult{}
	host := inventory.NewHost()
	checks.memory(host, checks.segment(nil))
	checks.locked()
	checks.driver(host)
	checks.nats(ctx, a, &doctorFlags{rack: *flags, clockMax: time.Second})
	b.addJSON("host/doctor.json", checks, nil)
}

// write writes the archive; one that is there is not overwritten.
func (b *bundle) write() (err error) {
	f, err := os.OpenFile(b.result.Bundle, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fail(usage, "name another file with --out", "write bundle: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(b.result.Bundle))
		}
	}()
	b.addJSON("bundle.json", &b.result, nil)
	z := gzip.NewWriter(f)
	t := tar.NewWriter(z)
	for i, name := range b.result.Files {
		header := &tar.Header{
			Name: path.Join("proofrack-support", name), Mode: 0o600, Size: int64(len(b.texts[i])), ModTime: b.result.At,
		}
		if err := t.WriteHeader(header); err != nil {
			return fault.As(fault.Internal, fmt.Errorf("write bundle: %w", err))
		}
		if _, err := io.WriteString(t, b.texts[i]); err != nil {
			return fmt.Errorf("write bundle: %w", err)
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}
