package verb

import (
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/wire"
)

// meter makes a registry for each role. They share a page; what is the process's own is shown by the GPU worker, who
// knows the engines.
func (p *oneProcess) meter() {
	p.meters = map[string]*metrics.Registry{}
	for _, role := range []struct{ name, label, node string }{
		{"coordinator", "coordinator", ""}, {"worker-synth", wire.RoleSynth, p.flags.node},
		{"worker-gpu", wire.RoleGPU, p.flags.node},
	} {
		p.meters[role.name] = metrics.New(metrics.DefaultConfig(), metrics.Options{
			Role: role.label, Node: role.node, Build: p.build, Shared: role.label != wire.RoleGPU, Log: p.log,
		})
	}
}

// serveMetrics shows all roles' metrics on one address, if there is to be one.
func (p *oneProcess) serveMetrics() service.Service {
	return metrics.Serve(p.flags.metrics, p.log, p.meters["coordinator"], p.meters["worker-synth"], p.meters["worker-gpu"])
}
