package simdevice

import (
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// Config says what is simulated. The zero value changes nothing.
type Config struct {
	// MemoryBytes is the device's memory, 0 for no limit (H1). JobBytes is what each job takes of it from Start to the
	// end of Finish; 0 takes what the inner device's profile says.
	MemoryBytes bytesize.Bytes `json:"memory_bytes,omitempty"`
	JobBytes    bytesize.Bytes `json:"job_bytes,omitempty"`
	// LeakPercent is the share of JobBytes that is not given back, 0 to 100 (H2).
	LeakPercent int `json:"leak_percent,omitempty"`
	// Failures are of the form how@stage#n, see the package (H3).
	Failures []string `json:"failures,omitempty"`
	// LostAt is when the device is lost for ever; never when nil (H4).
	LostAt *time.Time `json:"lost_at,omitempty"`
	// FlipEvery flips one bit in every n-th finished proof, 0 in none (H6).
	FlipEvery int `json:"flip_every,omitempty"`
	// StartTime and FinishTime are the least that each call takes, as on a device that leaves the processor alone.
	StartTime  time.Duration `json:"start_time_ns,omitempty"`
	FinishTime time.Duration `json:"finish_time_ns,omitempty"`
	// JobsBefore is how many jobs this device has started in earlier engine processes.
	JobsBefore int `json:"jobs_before,omitempty"`
}

// Stages of a job.
const (
	stageStart  = "start"
	stageFinish = "finish"
)

// failure is one ordered fault.
type failure struct {
	how, stage string
	nth        int
	onwards    bool
}

func (f failure) due(stage string, job int) bool {
	return f.stage == stage && (job == f.nth || f.onwards && job > f.nth)
}

var failureForm = regexp.MustCompile(
	`^(oom|error|panic|loop|freeze|kill|abort|segv|bus)@(start|finish)#([1-9][0-9]{0,5})(\+?)$`)

func parseFailure(text string) (failure, error) {
	parts := failureForm.FindStringSubmatch(text)
	if parts == nil {
		return failure{}, fault.New(fault.Invalid, "simulated failure %q is not how@stage#n", text)
	}
	nth, err := strconv.Atoi(parts[3])
	if err != nil {
		return failure{}, fault.As(fault.Invalid, fmt.Errorf("simulated failure %q: %w", text, err))
	}
	return failure{how: parts[1], stage: parts[2], nth: nth, onwards: parts[4] != ""}, nil
}

const failuresMax = 64

// Validate checks ranges and forms.
func (c *Config) Validate() error {
	switch {
	case c.MemoryBytes < 0 || c.JobBytes < 0 || c.StartTime < 0 || c.FinishTime < 0 || c.FlipEvery < 0 || c.JobsBefore < 0:
		return fault.New(fault.Invalid, "simulated device: an amount is negative")
	case c.LeakPercent < 0 || c.LeakPercent > 100:
		return fault.New(fault.Invalid, "simulated device: leak of %d percent is outside 0 to 100", c.LeakPercent)
	case len(c.Failures) > failuresMax:
		return fault.New(fault.Invalid, "simulated device: %d failures, at most %d", len(c.Failures), failuresMax)
	}
	for _, text := range c.Failures {
		if _, err := parseFailure(text); err != nil {
			return err
		}
	}
	return nil
}

// Lasting is the configuration without what is ordered for single jobs: what a known-answer test of the device meets.
func (c Config) Lasting() Config {
	var lasting []string
	for _, text := range c.Failures {
		if f, err := parseFailure(text); err == nil && f.onwards && c.JobsBefore+1 >= f.nth {
			lasting = append(lasting, text)
		}
	}
	c.Failures, c.StartTime, c.FinishTime = lasting, 0, 0
	if c.FlipEvery > 1 {
		c.FlipEvery = 0
	}
	return c
}
