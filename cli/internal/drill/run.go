package drill

import (
	"context"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// Config says how a drill works.
type Config struct {
	// Connect connects to the rack; it is called again after every silence. Required.
	Connect func(ctx context.Context) (Rack, error)
	// Verify checks a job's proof, beside what the rack says of it; nil takes the rack's word.
	Verify func(proof []byte) error
	// Jobs is how many are submitted for each fault. Default 2, 1 … 100.
	Jobs int
	// Within bounds what one fault takes, to the last look. Default 30 min.
	Within time.Duration
	// Quiet is how long the rack may take after the last job until nothing of it is booked. Default 90 s.
	Quiet time.Duration
	// Every is the time between two looks, Answer how long one may take. Defaults 200 ms and 5 s.
	Every, Answer time.Duration
	// Say is told what happens; nil for nobody.
	Say func(text string)
}

// Validate sets defaults and reports what is wrong.
func (c *Config) Validate() error {
	for value, or := range map[*time.Duration]time.Duration{
		&c.Within: 30 * time.Minute, &c.Quiet: 90 * time.Second, &c.Every: 200 * time.Millisecond,
		&c.Answer: 5 * time.Second,
	} {
		if *value == 0 {
			*value = or
		}
		if *value < 0 {
			return fault.New(fault.Invalid, "drill: time of %s", *value)
		}
	}
	if c.Jobs == 0 {
		c.Jobs = 2
	}
	if c.Jobs < 1 || c.Jobs > 100 {
		return fault.New(fault.Invalid, "drill: %d jobs are not 1 to 100", c.Jobs)
	}
	if c.Connect == nil {
		return fault.New(fault.Invalid, "drill: no rack")
	}
	if c.Say == nil {
		c.Say = func(string) {}
	}
	return nil
}

// Verdict is how a rack took one fault.
type Verdict struct {
	Fault
	// Tried is false when there were no means, or the rack was not fit for it; Reason says which.
	Tried  bool   `json:"tried"`
	Reason string `json:"reason,omitempty"`
	// Wrong is what did not hold; a fault that was tried passed when it is empty.
	Wrong []string `json:"wrong,omitempty"`
	// Evidence is what was done and seen.
	Evidence []string  `json:"evidence,omitempty"`
	BeganAt  time.Time `json:"began_at"`
	Seconds  float64   `json:"seconds"`
}

// Passed tells whether it was tried and all held.
func (v *Verdict) Passed() bool { return v.Tried && len(v.Wrong) == 0 }

func (v *Verdict) say(format string, args ...any) {
	v.Evidence = append(v.Evidence, fmt.Sprintf(format, args...))
}

func (v *Verdict) blame(format string, args ...any) {
	v.Wrong = append(v.Wrong, fmt.Sprintf(format, args...))
}

// Run tries one fault after another. After one that the rack did not stand the others are not tried.
func Run(ctx context.Context, config Config, steps []Step) ([]Verdict, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	var verdicts []Verdict
	failed := ""
	for _, s := range steps {
		v := Verdict{Fault: s.Fault, BeganAt: time.Now().UTC()}
		switch {
		case s.Means.Lacking != "":
			v.Reason = s.Means.Lacking
		case failed != "":
			v.Reason = "the rack did not stand " + failed
		default:
			(&trial{config: &config, step: s, verdict: &v}).run(ctx)
			if ctx.Err() != nil {
				return append(verdicts, v), ctx.Err()
			}
			if v.Tried && len(v.Wrong) > 0 {
				failed = s.Name
			}
		}
		v.Seconds = time.Since(v.BeganAt).Seconds()
		verdicts = append(verdicts, v)
	}
	return verdicts, nil
}
