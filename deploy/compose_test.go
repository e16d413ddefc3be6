package deploy_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/deploy/internal/keyring"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/config"
	"github.com/proofrack/proofrack/shared/service"
	workergpu "github.com/proofrack/proofrack/worker-gpu"
	workersynth "github.com/proofrack/proofrack/worker-synth"
)

// composed is the compose file as compose itself reads it, with the services of some profiles.
func composed(t *testing.T, profiles ...string) *types.Project {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{"../docker-compose.yml"}, cli.WithResolvedPaths(true),
		cli.WithProfiles(profiles))
	check(t, err)
	project, err := options.LoadProject(t.Context())
	check(t, err)
	return project
}

// ours are the services that run our programs.
func ours() []string { return []string{"coordinator1", "coordinator2", "gateway", "gpu", "synth"} }

func environ(s types.ServiceConfig) []string {
	var all []string
	for key, value := range s.Environment {
		if value != nil {
			all = append(all, key+"="+*value)
		}
	}
	return all
}

// workers loads the settings of both workers from their environment in the compose file.
func workers(t *testing.T, p *types.Project) (workersynth.Config, workergpu.Config) {
	t.Helper()
	synth, gpu := workersynth.DefaultConfig(), workergpu.DefaultConfig()
	_, err := config.Load(&synth,
		config.Sources{File: "examples/worker-synth.toml", Environ: environ(p.Services["synth"])})
	check(t, err)
	_, err = config.Load(&gpu, config.Sources{File: "examples/worker-gpu.toml", Environ: environ(p.Services["gpu"])})
	check(t, err)
	return synth, gpu
}

// TestB89WorkersShareARoomySpill: one mount for both, of at least the size that the ledger books in it.
func TestB89WorkersShareARoomySpill(t *testing.T) {
	t.Parallel()
	p := composed(t)
	synth, gpu := workers(t, p)
	if synth.Spill != gpu.Spill || synth.Memory != gpu.Memory || synth.Node != gpu.Node {
		t.Errorf("the workers of a host differ: %+v %+v", synth.Config, gpu.Config)
	}
	sources := map[string]bool{}
	for _, name := range []string{"synth", "gpu"} {
		for _, v := range p.Services[name].Volumes {
			if strings.HasPrefix(synth.Spill.Path+"/", v.Target+"/") {
				sources[v.Type+" "+v.Source] = true
			}
		}
	}
	if len(sources) != 1 || !sources["volume spill"] {
		t.Fatalf("mounts under %s: %v", synth.Spill.Path, sources)
	}
	options := p.Volumes["spill"].DriverOpts
	size := regexp.MustCompile(`size=(\d+)g`).FindStringSubmatch(options["o"])
	if options["type"] != "tmpfs" || size == nil {
		t.Fatalf("the spill's volume: %v", options)
	}
	there, err := bytesize.Parse(size[1] + "GiB")
	check(t, err)
	if booked := synth.Memory.SHMMax; booked <= 0 || there < booked {
		t.Errorf("the mount has %s, the ledger may book %s", there, booked)
	}
	if p.Services["synth"].Pid != "service:gpu" {
		t.Error("the workers don't see each other's processes")
	}
	if synth, gpu := p.Services["synth"].OomScoreAdj, p.Services["gpu"].OomScoreAdj; synth <= gpu {
		t.Errorf("synthesis does not die first: %d, %d", synth, gpu)
	}
}

// TestB97JaegerIsBounded: in traces and in memory.
func TestB97JaegerIsBounded(t *testing.T) {
	t.Parallel()
	jaeger := composed(t).Services["jaeger"]
	if !slices.ContainsFunc(jaeger.Command, regexp.MustCompile(`^--memory\.max-traces=[1-9]\d{0,5}$`).MatchString) {
		t.Errorf("no bound of traces: %v", jaeger.Command)
	}
	if jaeger.MemLimit <= 0 || int64(jaeger.MemLimit) > 4<<30 {
		t.Errorf("memory limit is %d", jaeger.MemLimit)
	}
}

// TestB95JaegerListensWhereSpansAreSent: on all addresses of its container, and every program of ours sends there.
func TestB95JaegerListensWhereSpansAreSent(t *testing.T) {
	t.Parallel()
	p := composed(t)
	jaeger := p.Services["jaeger"]
	if !slices.Contains(jaeger.Command, "--collector.otlp.grpc.host-port=0.0.0.0:4317") ||
		!slices.Contains(jaeger.Expose, "4317") {
		t.Errorf("jaeger listens where its image says: %v, shows %v", jaeger.Command, jaeger.Expose)
	}
	for _, name := range ours() {
		all := environ(p.Services[name])
		for _, want := range []string{
			"OTEL_EXPORTER_OTLP_ENDPOINT=http://jaeger:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		} {
			if !slices.Contains(all, want) {
				t.Errorf("%s is not told %s", name, want)
			}
		}
	}
}

// TestB106EverythingWaitsForHealth: never for a mere start.
func TestB106EverythingWaitsForHealth(t *testing.T) {
	t.Parallel()
	p := composed(t, watching)
	for name, s := range p.Services {
		for on, d := range s.DependsOn {
			if d.Condition != types.ServiceConditionHealthy {
				t.Errorf("%s waits for %s of %s", name, d.Condition, on)
			}
		}
	}
	for _, name := range ours() {
		if _, ok := p.Services[name].DependsOn["nats"]; !ok {
			t.Errorf("%s does not wait for NATS", name)
		}
	}
}

// TestB107HealthChecksAskTheRightPort: the port is the one that the service's own settings name; dependencies exist,
// all images are pinned.
func TestB107HealthChecksAskTheRightPort(t *testing.T) {
	t.Parallel()
	p := composed(t, watching)
	read := func(file string) string {
		text, err := os.ReadFile(file)
		check(t, err)
		return string(text)
	}
	ports := map[string]string{
		"nats":   regexp.MustCompile(`(?m)^http: .*:(\d+)`).FindStringSubmatch(read("nats/server.conf"))[1],
		"redis":  regexp.MustCompile(`(?m)^tls-port (\d+)`).FindStringSubmatch(read("redis/redis.conf"))[1],
		"jaeger": "14269", // its admin port
		// As their images have it, and as others of the profile are told.
		"prometheus": "9090", "grafana": "3000",
	}
	for _, name := range ours() {
		listen := p.Services[name].Environment["PROOFRACK_HTTP_LISTEN"]
		ports[name] = (*listen)[strings.LastIndex(*listen, ":")+1:]
	}
	pinned := regexp.MustCompile(`^(docker\.io/.+:v?\d+\.\d+\.\d+[a-z0-9.-]*|proofrack/[a-z-]+:dev)$`)
	for name, s := range p.Services {
		if s.HealthCheck == nil || s.HealthCheck.Disable {
			t.Errorf("%s has no health check", name)
			continue
		}
		test := strings.Join(s.HealthCheck.Test, " ")
		port := ports[name]
		if port == "" || !regexp.MustCompile(`(:|-p )`+port+`\b`).MatchString(test) {
			t.Errorf("%s is on port %q, its check: %s", name, port, test)
		}
		if slices.Contains(ours(), name) && !strings.HasSuffix(test, "/readyz") {
			t.Errorf("%s: %s", name, test)
		}
		if !pinned.MatchString(s.Image) {
			t.Errorf("image %s is not pinned", s.Image)
		}
		for on := range s.DependsOn {
			if _, ok := p.Services[on]; !ok {
				t.Errorf("%s depends on %s, which is not there", name, on)
			}
		}
		if s.MemLimit <= 0 {
			t.Errorf("%s has no memory limit", name)
		}
		if watch := name == "prometheus" || name == "grafana"; watch != (len(s.Profiles) > 0) {
			t.Errorf("%s is of profiles %v", name, s.Profiles)
		}
	}
	// Without the profile nothing lacks what it depends on.
	p = composed(t)
	if len(p.Services) != len(ours())+3 {
		t.Errorf("%d services without profiles", len(p.Services))
	}
	for name, s := range p.Services {
		for on := range s.DependsOn {
			if _, ok := p.Services[on]; !ok {
				t.Errorf("%s depends on %s, which is of a profile", name, on)
			}
		}
	}
}

// TestB109ServicesAreStoppedGracefully: the signal reaches the program, and it has the time that its settings say.
func TestB109ServicesAreStoppedGracefully(t *testing.T) {
	t.Parallel()
	p := composed(t)
	for _, name := range ours() {
		s := p.Services[name]
		c := service.DefaultConfig()
		drain, err := time.ParseDuration(*s.Environment["PROOFRACK_SERVICE_DRAIN_WITHIN"])
		check(t, err)
		longest := drain + c.HandBackWithin + c.KillWithin
		if s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) <= longest {
			t.Errorf("%s may take %s to stop, grace is %v", name, longest, s.StopGracePeriod)
		}
		if s.StopSignal != "SIGTERM" || len(s.Entrypoint) > 0 {
			t.Errorf("%s: signal %s, entry point %v", name, s.StopSignal, s.Entrypoint)
		}
		text, err := os.ReadFile("../" + s.Build.Dockerfile)
		check(t, err)
		if !regexp.MustCompile(`(?m)^ENTRYPOINT \["/`).Match(text) || !regexp.MustCompile(`(?m)^CMD \["`).Match(text) {
			t.Errorf("%s does not start in exec form", s.Build.Dockerfile)
		}
	}
}

// TestComposeSettingsAreTheProgramsOwn loads each service's environment into its program's settings: an unknown or
// misspelt variable is refused. Each has its own credential.
func TestComposeSettingsAreTheProgramsOwn(t *testing.T) {
	t.Parallel()
	p := composed(t)
	synth, gpu := workers(t, p)
	for name, got := range map[string]string{"synth": synth.NATS.CredsFile, "gpu": gpu.NATS.CredsFile} {
		if !strings.HasSuffix(got, keyring.CredsFile(keyring.KindNode, synth.Node)) {
			t.Errorf("%s: %v", name, got)
		}
	}
	for i, name := range []string{"coordinator1", "coordinator2"} {
		c := coordinator.DefaultConfig()
		_, err := config.Load(&c, config.Sources{File: "examples/coordinator.toml", Environ: environ(p.Services[name])})
		check(t, err)
		user := fmt.Sprintf("c%d", i+1)
		file := "/etc/proofrack/" + keyring.CredsFile(keyring.KindCoordinator, user)
		if c.NATS.CredsFile != file {
			t.Errorf("%s: %s", name, c.NATS.CredsFile)
		}
		mounted := func(v types.ServiceVolumeConfig) bool { return v.Target == file }
		if !slices.ContainsFunc(p.Services[name].Volumes, mounted) {
			t.Errorf("%s: %s is not mounted", name, file)
		}
	}
}
