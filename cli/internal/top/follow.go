package top

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/wire"
)

// follower writes a line for each change.
type follower struct {
	config Config
	out    io.Writer
	said   map[string]string // by what it is about
	first  bool
	away   bool
	err    error
}

// Follow writes the rack as lines, then one for each change, until ctx ends, which is its error then.
func Follow(ctx context.Context, config Config, source Source, out io.Writer) error {
	if err := config.Validate(); err != nil {
		return err
	}
	f := &follower{config: config, out: out, said: map[string]string{}, first: true}
	ticker := time.NewTicker(config.Every)
	defer ticker.Stop()
	for {
		nodes, jobs, err := lookAt(ctx, &config, source)
		if ctx.Err() == nil {
			f.see(nodes, jobs, err)
		}
		if f.err != nil {
			return fmt.Errorf("write change: %w", f.err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

func lookAt(ctx context.Context, config *Config, source Source) (*wire.NodesReply, *wire.JobsReply, error) {
	ctx, cancel := context.WithTimeout(ctx, config.Within)
	defer cancel()
	nodes, err := source.Nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	jobs, err := source.Jobs(ctx)
	return nodes, jobs, err
}

// see writes what is not as it was said to be.
func (f *follower) see(nodes *wire.NodesReply, jobs *wire.JobsReply, err error) {
	if err != nil {
		if !f.away {
			f.write("rack does not answer: %v", err)
		}
		f.away = true
		return
	}
	if f.away {
		f.write("rack answers again")
	}
	f.away = false
	f.seeNodes(nodes)
	f.seeJobs(jobs)
	f.first = false
}

func (f *follower) seeNodes(r *wire.NodesReply) {
	state := "ready"
	if !r.Ready {
		state = "not ready: " + r.Reason
	}
	if r.Paused {
		state += ", intake paused"
	}
	f.say("rack", "%s, led by %s, term %d", state, r.Leader, r.Term)
	there := map[string]bool{}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		text := nodeState(n)
		if n.Reason != "" {
			text += ": " + n.Reason
		}
		there["node "+string(n.Node)] = true
		f.say("node "+string(n.Node), "%s, %d running", text, n.Running)
		for k := range n.Devices {
			d := &n.Devices[k]
			state := "healthy"
			switch {
			case d.Quarantined:
				state = "quarantined: " + d.Reason
			case !d.Healthy:
				state = "unhealthy: " + d.Reason
			}
			name := fmt.Sprintf("device %s/%s", n.Node, d.Device)
			there[name] = true
			f.say(name, "%s, proves %d circuits", state, len(d.Circuits))
		}
	}
	for _, what := range sortedKeys(f.said) {
		if !there[what] && (strings.HasPrefix(what, "node ") || strings.HasPrefix(what, "device ")) {
			delete(f.said, what)
			f.write("%s is gone", what)
		}
	}
}

func (f *follower) seeJobs(r *wire.JobsReply) {
	there := map[string]bool{}
	for i := range slices.Backward(r.Jobs) { // oldest first
		j := &r.Jobs[i]
		name := "job " + string(j.ID)
		there[name] = true
		text := fmt.Sprintf("%s, %d of %d verified, %d waiting", j.State, j.Verified, j.Partitions, j.Waiting)
		if j.Fault != nil {
			text += ": " + j.Fault.Message
		}
		if f.first && j.State.Ended() {
			f.said[name] = printable(text)
		}
		f.say(name, "%s", text)
	}
	for what := range f.said {
		if strings.HasPrefix(what, "job ") && !there[what] {
			delete(f.said, what)
		}
	}
}

// say writes about something, when that isn't what was said before.
func (f *follower) say(what, format string, args ...any) {
	text := printable(fmt.Sprintf(format, args...))
	if f.said[what] == text {
		return
	}
	f.said[what] = text
	f.write("%s: %s", what, text)
}

func (f *follower) write(format string, args ...any) {
	_, err := fmt.Fprintf(f.out, "%s %s\n", f.config.clock(f.config.Now()), printable(fmt.Sprintf(format, args...)))
	if f.err == nil {
		f.err = err
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
