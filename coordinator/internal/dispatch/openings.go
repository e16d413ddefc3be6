package dispatch

import (
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// openings are how often declarations opened the nodes' books in this reign. They may be read from any goroutine.
type openings struct {
	mu    sync.Mutex
	nodes map[job.Node]opening
}

// opening is the last one of a node, and how many there were.
type opening struct {
	count uint64
	why   string
	at    time.Time
}

func (o *openings) note(node job.Node, why string, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.nodes == nil {
		o.nodes = map[job.Node]opening{}
	}
	o.nodes[node] = opening{o.nodes[node].count + 1, why, at}
}

func (o *openings) of(node job.Node) opening {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.nodes[node]
}
