package plan

import (
	"embed"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Profile is how long stages take and how much memory they hold, per circuit. It knows no rack.
type Profile struct {
	// Name is for reports. About says where the numbers come from; a figure without a source is none.
	Name  string `toml:"name" json:"name"`
	About string `toml:"about" json:"about"`
	// Circuits, each named once.
	Circuits []Circuit `toml:"circuits" json:"circuits"`
}

// Circuit is one circuit of a profile.
type Circuit struct {
	// Name as jobs give it, such as porep-32GiB.
	Name string `toml:"name" json:"name"`
	// Partitions of a job.
	Partitions int `toml:"partitions" json:"partitions"`
	// Synthesis of one partition.
	Synthesis Synthesis `toml:"synthesis" json:"synthesis"`
	// Devices that can prove it, by kind.
	Devices []DeviceTimes `toml:"devices" json:"devices"`
	// Sizes are what one partition holds, stage by stage.
	Sizes Sizes `toml:"sizes" json:"sizes"`
	// Assets are what all partitions share on a node or a device.
	Assets []Asset `toml:"assets" json:"assets"`
}

// Synthesis is how long a synthesis takes when AtOnce[i] of them run on one node: Seconds[i]. Between two points it is
// linear, beyond the last it goes on with the last slope (one point is a constant).
type Synthesis struct {
	AtOnce  []int     `toml:"at_once" json:"at_once"`
	Seconds []float64 `toml:"seconds" json:"seconds"`
	// Cores that one keeps busy; where a node has fewer than all of them want, all slow down alike.
	Cores float64 `toml:"cores" json:"cores"`
}

// DeviceTimes is a partition on a kind of device.
type DeviceTimes struct {
	Kind string `toml:"kind" json:"kind"`
	// Seconds the device is taken, FinishSeconds the CPU works after that, GoneSeconds until the freed bytes are gone.
	Seconds       float64 `toml:"seconds" json:"seconds"`
	FinishSeconds float64 `toml:"finish_seconds" json:"finish_seconds"`
	GoneSeconds   float64 `toml:"gone_seconds" json:"gone_seconds"`
}

// Sizes are the bytes of a partition by stage. A byte of shm or pinned is also one of ram: give both.
type Sizes struct {
	Synthesizing ledger.Amounts `toml:"synthesizing" json:"synthesizing"`
	Sealed       ledger.Amounts `toml:"sealed" json:"sealed"`
	Proving      ledger.Amounts `toml:"proving" json:"proving"`
	Finishing    ledger.Amounts `toml:"finishing" json:"finishing"`
}

// Asset is shared memory of a circuit.
type Asset struct {
	Name string `toml:"name" json:"name"`
	// Pool is ram, pinned, shm, disk, or vram: that of each device.
	Pool  string         `toml:"pool" json:"pool"`
	Bytes bytesize.Bytes `toml:"bytes" json:"bytes"`
	// PerDevice counts it once per device instead of once per node; always so for vram.
	PerDevice bool `toml:"per_device" json:"per_device,omitempty"`
}

// vram in an asset's Pool is the memory of the device that is meant.
const vram = "vram"

//go:embed profiles/*.toml
var shipped embed.FS

// Shipped are the names of the profiles that come with the program, sorted.
func Shipped() []string {
	entries, err := shipped.ReadDir("profiles")
	if err != nil {
		panic("plan: the embedded profiles can't be listed: " + err.Error())
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// ShippedText is the file of a shipped profile; another name is fault.NotFound.
func ShippedText(name string) ([]byte, error) {
	if !slices.Contains(Shipped(), name) {
		return nil, fault.WithHint(fault.New(fault.NotFound, "there is no profile %q", clip(name)),
			"shipped are "+strings.Join(Shipped(), ", ")+"; another one is given as a file")
	}
	return shipped.ReadFile(path.Join("profiles", name+".toml"))
}

// OpenShipped reads a shipped profile.
func OpenShipped(name string) (*Profile, error) {
	text, err := ShippedText(name)
	if err != nil {
		return nil, err
	}
	return ReadProfile(strings.NewReader(string(text)), name)
}

// ReadProfile reads and checks a profile. Errors are fault.Invalid, with the file's name.
func ReadProfile(r io.Reader, name string) (*Profile, error) {
	var p Profile
	if err := decode(r, "profile "+name, &p); err != nil {
		return nil, err
	}
	return &p, p.Validate()
}

// Validate tells all that is wrong with a profile.
func (p *Profile) Validate() error {
	c := &checker{what: "profile " + clip(p.Name)}
	if p.Name == "" || len(p.Name) > 64 {
		c.addf("name must have 1 to 64 characters")
	}
	c.count("number of circuits", len(p.Circuits), 1, CircuitsMax)
	seen := map[string]bool{}
	for i := range min(len(p.Circuits), CircuitsMax) {
		circuit := &p.Circuits[i]
		if circuit.Name == "" || len(circuit.Name) > 64 {
			c.addf("circuits[%d].name must have 1 to 64 characters", i)
		}
		if seen[circuit.Name] {
			c.addf("circuit %q is there twice", clip(circuit.Name))
		}
		seen[circuit.Name] = true
		circuit.check(c)
	}
	return c.err("docs/plan.md describes the format; \"proofrack plan profile show\" prints a shipped one")
}

func (circuit *Circuit) check(c *checker) {
	at := clip(circuit.Name)
	c.count(at+": partitions", circuit.Partitions, 1, 1024)
	s := &circuit.Synthesis
	if len(s.AtOnce) == 0 || len(s.AtOnce) != len(s.Seconds) || len(s.AtOnce) > CurveMax {
		c.addf("%s: synthesis needs 1 to %d points, as many at_once as seconds", at, CurveMax)
	} else {
		for i, n := range s.AtOnce {
			c.count(at+": synthesis.at_once", n, 1, SlotsMax)
			c.number(at+": synthesis.seconds", s.Seconds[i], 0, SecondsMax, true)
			if i > 0 && (n <= s.AtOnce[i-1] || s.Seconds[i] < s.Seconds[i-1]) {
				c.addf("%s: synthesis: at_once must rise and seconds must not fall", at)
			}
		}
	}
	c.number(at+": synthesis.cores", s.Cores, 0, CoresMax, true)
	c.count(at+": number of devices", len(circuit.Devices), 1, 64)
	kinds := map[string]bool{}
	for i := range circuit.Devices {
		d := &circuit.Devices[i]
		if d.Kind == "" || len(d.Kind) > 64 || kinds[d.Kind] {
			c.addf("%s: device kind %q is empty, too long or there twice", at, clip(d.Kind))
		}
		kinds[d.Kind] = true
		c.number(at+": devices.seconds", d.Seconds, 0, SecondsMax, true)
		c.number(at+": devices.finish_seconds", d.FinishSeconds, 0, SecondsMax, false)
		c.number(at+": devices.gone_seconds", d.GoneSeconds, 0, SecondsMax, false)
	}
	for name, amounts := range circuit.Sizes.stages() {
		if err := amounts.Check(); err != nil {
			c.addf("%s: sizes.%s: %v", at, name, err)
		}
		for pool := range amounts {
			if strings.HasPrefix(string(pool), vram) {
				c.addf("%s: sizes.%s: memory of a device is an asset, not a size", at, name)
			}
		}
		for _, part := range []ledger.Pool{ledger.PoolSHM, ledger.PoolPinned} {
			if amounts[part] > amounts[ledger.PoolRAM] {
				c.addf("%s: sizes.%s: %s is more than ram, of which it is a part", at, name, part)
			}
		}
	}
	if len(circuit.Assets) > 16 {
		c.addf("%s: more than 16 assets", at)
	}
	for _, a := range circuit.Assets {
		pool := ledger.Pool(a.Pool)
		if a.Pool != vram && (pool.Check() != nil || strings.HasPrefix(a.Pool, vram)) {
			c.addf("%s: asset %q: pool %q is none of ram, pinned, shm, disk, vram", at, clip(a.Name), clip(a.Pool))
		}
		if _, err := bytesize.Of(int64(a.Bytes)); err != nil || a.Name == "" || len(a.Name) > 64 {
			c.addf("%s: asset %q needs a name of 1 to 64 characters and bytes", at, clip(a.Name))
		}
	}
}

// stages are the sizes by their names.
func (s *Sizes) stages() map[string]ledger.Amounts {
	return map[string]ledger.Amounts{
		"synthesizing": s.Synthesizing, "sealed": s.Sealed, "proving": s.Proving, "finishing": s.Finishing,
	}
}

// booked is what the whole path needs at most, pool by pool.
func (s *Sizes) booked() ledger.Amounts {
	most := ledger.Amounts{}
	for _, amounts := range s.stages() {
		for pool, bytes := range amounts {
			if bytes > 0 {
				most[pool] = max(most[pool], bytes)
			}
		}
	}
	return most
}

// seconds is how long one of so many syntheses takes on a node of so many cores.
func (s *Synthesis) seconds(atOnce, cores int) float64 {
	crowd := max(1, float64(atOnce)*s.Cores/float64(cores))
	last := len(s.AtOnce) - 1
	if last == 0 || atOnce <= s.AtOnce[0] {
		return s.Seconds[0] * crowd
	}
	i, _ := slices.BinarySearch(s.AtOnce, atOnce)
	i = min(max(i, 1), last)
	slope := (s.Seconds[i] - s.Seconds[i-1]) / float64(s.AtOnce[i]-s.AtOnce[i-1])
	return (s.Seconds[i-1] + slope*float64(atOnce-s.AtOnce[i-1])) * crowd
}

// device gives the times on a kind of device, nil where it can't be proved.
func (circuit *Circuit) device(kind string) *DeviceTimes {
	for i := range circuit.Devices {
		if circuit.Devices[i].Kind == kind {
			return &circuit.Devices[i]
		}
	}
	return nil
}

// circuit finds a circuit by name.
func (p *Profile) circuit(name string) (*Circuit, error) {
	var names []string
	for i := range p.Circuits {
		if p.Circuits[i].Name == name {
			return &p.Circuits[i], nil
		}
		names = append(names, p.Circuits[i].Name)
	}
	return nil, fault.WithHint(fault.New(fault.Invalid, "profile %s knows no circuit %q", clip(p.Name), clip(name)),
		fmt.Sprintf("it knows %s", strings.Join(names, ", ")))
}

// clip makes a text from outside fit for a message.
func clip(text string) string {
	if len(text) > 64 {
		text = text[:64] + "…"
	}
	return strings.ToValidUTF8(text, "?")
}
