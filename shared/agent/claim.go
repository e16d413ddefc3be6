package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
)

// ClaimPart is one kind of memory that an agent claims for its node.
type ClaimPart struct {
	// Resource names it: "ram", or a file system in memory.
	Resource string `json:"resource"`
	// Scope names the control group that bounds it, "" for the whole host.
	Scope string `json:"scope,omitempty"`
	// All tells that everything is claimed that there is; Bytes is then what that was.
	All   bool           `json:"all,omitempty"`
	Bytes bytesize.Bytes `json:"bytes"`
	// Capacity is what there is in the scope, Host what there is on the whole host. They are no part of the file.
	Capacity bytesize.Bytes `json:"-"`
	Host     bytesize.Bytes `json:"-"`
}

// ClaimConfig says who claims what.
type ClaimConfig struct {
	// Folder is where all agents of the host keep their claims, absolute.
	Folder string
	// Spill is the node's spill folder, Node its name.
	Spill string
	Node  job.Node
	// Group is the number of the group that shares the spill folder, −1 for none.
	Group int
	Parts []ClaimPart
}

// Claimant is an agent that has claimed something, as others tell of it.
type Claimant struct {
	Node  job.Node `json:"node"`
	Agent string   `json:"agent"` // lasts as long as its spill folder
	Boot  string   `json:"boot"`
	PID   int      `json:"pid"` // of the worker that claimed first
	Spill string   `json:"spill"`
}

// claimFile is what a file has.
type claimFile struct {
	Version int `json:"v"`
	Claimant
	Parts []ClaimPart `json:"parts"`
}

// ClaimRefusal says that memory of the host is claimed by other agents already. Its kind is Conflict.
type ClaimRefusal struct {
	Node     job.Node
	Resource string
	All      bool
	Want     bytesize.Bytes
	Capacity bytesize.Bytes
	// Others have claimed Claimed of it.
	Others  []Claimant
	Claimed bytesize.Bytes
}

// Error names who has it.
func (r *ClaimRefusal) Error() string {
	want := r.Want.String()
	if r.All {
		want = "all"
	}
	var others []string
	for _, o := range r.Others {
		others = append(others,
			fmt.Sprintf("node %s (agent %s, process %d, spill folder %s)", o.Node, o.Agent, o.PID, o.Spill))
	}
	if r.Capacity == 0 {
		return fmt.Sprintf("node %s cannot use %s: it is that of %s", r.Node, r.Resource, strings.Join(others, " and "))
	}
	return fmt.Sprintf("node %s cannot claim %s of %s: there are %s, of which %s are claimed by %s", r.Node, want,
		r.Resource, r.Capacity, r.Claimed, strings.Join(others, " and "))
}

// FaultKind implements fault.Classified.
func (*ClaimRefusal) FaultKind() fault.Kind { return fault.Conflict }

// Claim is a worker's hold on its node's claim. All workers of a node hold the same one; it lasts as long as one of
// them, or a process that inherited it, lives.
type Claim struct {
	folder, path string
	file         *os.File
}

const (
	claimVersion  = 1
	claimLockName = "lock"
	claimSuffix   = ".claim"
	claimBytesMax = 64 << 10
	claimsMax     = 1024
	agentName     = "agent.id"
	claimPartsMax = 64
	// claimWait is how long another agent may take to claim.
	claimWait = 10 * time.Second
)

// TakeClaim claims memory of the host for a node, for the first of its workers that does, or joins the others. Errors:
// a *ClaimRefusal when other agents that live have claimed so much that it does not fit, or when a live worker has the
// spill folder under another name of the node; kind Invalid when the folder cannot be used.
func TakeClaim(config ClaimConfig) (_ *Claim, err error) {
	id, err := agentID(config.Spill, config.Group)
	if err != nil {
		return nil, fmt.Errorf("claim memory: %w", err)
	}
	process, err := handoff.Self()
	if err != nil {
		return nil, fmt.Errorf("claim memory: %w", err)
	}
	mine := &claimFile{
		Version:  claimVersion,
		Claimant: Claimant{Node: config.Node, Agent: id, Boot: process.Boot, PID: os.Getpid(), Spill: config.Spill},
		Parts:    config.Parts,
	}
	lock, err := lockClaims(config.Folder, unix.LOCK_EX)
	if err != nil {
		return nil, fault.WithHint(fault.As(fault.Invalid, fmt.Errorf("claim memory: %w", err)),
			"name a folder that all agents of this host may write to as memory.claims; empty claims nothing")
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	c := &Claim{folder: config.Folder, path: filepath.Join(config.Folder, id+claimSuffix)}
	others, err := c.others(mine.Boot)
	if err != nil {
		return nil, fmt.Errorf("claim memory: %w", err)
	}
	if refusal := judgeClaim(mine, others); refusal != nil {
		return nil, refusal
	}
	if err := c.join(mine, config.Group); err != nil {
		return nil, fmt.Errorf("claim memory: %w", err)
	}
	return c, nil
}

// judgeClaim tells what of a claim does not fit beside those of others; nil when all does.
func judgeClaim(mine *claimFile, others []claimFile) error {
	for _, p := range mine.Parts {
		host := ClaimRefusal{Node: mine.Node, Resource: p.Resource, All: p.All, Want: p.Bytes, Capacity: p.Host}
		scope := host
		scope.Capacity = p.Capacity
		all := p.All
		for _, o := range others {
			for _, q := range o.Parts {
				if q.Resource != p.Resource {
					continue
				}
				host.Others, host.Claimed = append(host.Others, o.Claimant), host.Claimed+q.Bytes
				if q.Scope == p.Scope {
					scope.Others, scope.Claimed = append(scope.Others, o.Claimant), scope.Claimed+q.Bytes
					all = all || q.All
				}
			}
		}
		switch {
		case len(scope.Others) > 0 && (all || scope.Claimed+p.Bytes > p.Capacity):
			return &scope
		case len(host.Others) > 0 && host.Claimed+p.Bytes > p.Host:
			return &host
		}
	}
	return nil
}

// agentID names the agent of a spill folder, made with the first claim.
func agentID(spill string, group int) (string, error) {
	path := filepath.Join(spill, agentName)
	file, err := openShared(path, group)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // what was written was synced
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", path, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, 128))
	if err != nil {
		return "", fmt.Errorf("read agent's id: %w", err)
	}
	if id := strings.TrimSpace(string(text)); instanceForm.MatchString(id) {
		return id, nil
	}
	id := uuid.NewString()
	if err := errors.Join(file.Truncate(0), writeAt(file, id+"\n")); err != nil {
		return "", fmt.Errorf("write agent's id: %w", err)
	}
	return id, nil
}

func writeAt(f *os.File, text string) error {
	_, err := f.WriteAt([]byte(text), 0)
	return err
}

// lockClaims locks the folder of claims, and makes it when it is not there: everybody may add a claim, nobody may
// remove those of others.
func lockClaims(folder string, how int) (*os.File, error) {
	if !filepath.IsAbs(folder) {
		return nil, fmt.Errorf("folder %q is not absolute", folder)
	}
	if err := os.Mkdir(folder, 0o700); err == nil {
		if err := os.Chmod(folder, 0o777|fs.ModeSticky); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder", folder)
	}
	file, err := openMine(filepath.Join(folder, claimLockName), 0o666)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(claimWait); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return file, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
		case time.Now().After(deadline):
			return nil, errors.Join(fmt.Errorf("%s is locked for %s by another agent", file.Name(), claimWait), file.Close())
		}
	}
}

// openMine opens a file, or makes it. A file of another user in a sticky folder can only be opened without creating.
func openMine(path string, mode fs.FileMode) (*os.File, error) {
	for range 2 {
		file, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if !errors.Is(err, fs.ErrNotExist) {
			return file, err
		}
		file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
		if err == nil {
			return file, file.Chmod(mode)
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("open %s: it comes and goes", path)
}

// others reads the claims of agents that live, and removes those of the dead. The folder is locked.
func (c *Claim) others(boot string) ([]claimFile, error) {
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return nil, err
	}
	if len(entries) > claimsMax {
		return nil, fault.New(fault.Exhausted, "folder %s has %d entries, over the limit of %d", c.folder, len(entries),
			claimsMax)
	}
	var all []claimFile
	for _, e := range entries {
		path := filepath.Join(c.folder, e.Name())
		if !strings.HasSuffix(e.Name(), claimSuffix) || path == c.path || !e.Type().IsRegular() {
			continue
		}
		claim, live, err := readClaim(path, boot)
		if err != nil {
			return nil, err
		}
		if live {
			all = append(all, *claim)
		} else {
			_ = os.Remove(path) // that of another user stays, and counts for nothing
		}
	}
	return all, nil
}

// readClaim reads a claim of an agent that lives: a process holds it. One that cannot be read is an error, for what it
// claims is not known.
func readClaim(path, boot string) (claim *claimFile, live bool, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read claim: %w", err)
	}
	defer file.Close() //nolint:errcheck // it was only read
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return nil, false, nil // nobody holds it
	}
	if claim, err = decodeClaim(file); err != nil {
		return nil, true, fault.As(fault.Corrupt, fmt.Errorf("read claim %s, which a process holds: %w", path, err))
	}
	return claim, claim.Boot == boot, nil
}

func decodeClaim(r io.Reader) (*claimFile, error) {
	text, err := io.ReadAll(io.LimitReader(r, claimBytesMax+1))
	if err != nil {
		return nil, err
	}
	claim := &claimFile{}
	if len(text) > claimBytesMax {
		return nil, fmt.Errorf("it has more than %d bytes", claimBytesMax)
	}
	if err := json.Unmarshal(text, claim); err != nil {
		return nil, err
	}
	if claim.Version != claimVersion || len(claim.Parts) > claimPartsMax || !instanceForm.MatchString(claim.Agent) {
		return nil, fmt.Errorf("version %d, %d parts, agent %.80q", claim.Version, len(claim.Parts), claim.Agent)
	}
	if slices.ContainsFunc(claim.Parts, func(p ClaimPart) bool { return p.Bytes < 0 || p.Bytes > bytesize.Max }) {
		return nil, errors.New("an amount is over a bound")
	}
	return claim, nil
}

// join holds the agent's own file, and writes the claim into it unless workers that live have. The folder is locked.
func (c *Claim) join(mine *claimFile, group int) error {
	mode := fs.FileMode(0o644)
	if group >= 0 {
		mode = 0o664
	}
	file, err := openMine(c.path, mode)
	if err != nil {
		return err
	}
	if group >= 0 {
		_ = file.Chown(-1, group) // another member may have made it
	}
	if err := c.joinFile(file, mine); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_SH); err != nil {
		return errors.Join(fmt.Errorf("hold claim: %w", err), file.Close())
	}
	c.file = file
	return nil
}

func (c *Claim) joinFile(file *os.File, mine *claimFile) error {
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		before, err := decodeClaim(file)
		if err != nil {
			return fault.As(fault.Corrupt, fmt.Errorf("read claim %s: %w", c.path, err))
		}
		if before.Node != mine.Node {
			return &ClaimRefusal{
				Node: mine.Node, Resource: "spill folder " + mine.Spill, All: true, Others: []Claimant{before.Claimant},
			}
		}
		mine.Claimant, mine.Parts = before.Claimant, largerParts(before.Parts, mine.Parts)
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return fmt.Errorf("encode claim: %w", err)
	}
	if err := errors.Join(file.Truncate(0), writeAt(file, string(text))); err != nil {
		return fmt.Errorf("write claim: %w", err)
	}
	return nil
}

// largerParts is what workers of one node claim together.
func largerParts(a, b []ClaimPart) []ClaimPart {
	out := slices.Clone(a)
	for _, p := range b {
		i := slices.IndexFunc(out, func(q ClaimPart) bool { return q.Resource == p.Resource && q.Scope == p.Scope })
		if i < 0 {
			out = append(out, p)
			continue
		}
		out[i].Bytes, out[i].All = max(out[i].Bytes, p.Bytes), out[i].All || p.All
	}
	return out
}

// Share is what of a capacity is the node's: its part when there is by now less than all agents have claimed.
func (c *Claim) Share(resource, scope string, capacity bytesize.Bytes) (bytesize.Bytes, error) {
	if c == nil {
		return capacity, nil
	}
	lock, err := lockClaims(c.folder, unix.LOCK_SH)
	if err != nil {
		return 0, fmt.Errorf("read claims: %w", err)
	}
	defer lock.Close() //nolint:errcheck // it was only a lock
	own, err := os.ReadFile(c.path)
	if err != nil {
		return 0, fmt.Errorf("read claims: %w", err)
	}
	mine, err := decodeClaim(strings.NewReader(string(own)))
	if err != nil {
		return 0, fmt.Errorf("read claims: %w", err)
	}
	others, err := c.others(mine.Boot)
	if err != nil {
		return 0, fmt.Errorf("read claims: %w", err)
	}
	of := func(f *claimFile) (sum bytesize.Bytes) {
		for _, p := range f.Parts {
			if p.Resource == resource && p.Scope == scope {
				sum += p.Bytes
			}
		}
		return sum
	}
	ours, all := of(mine), of(mine)
	for i := range others {
		all += of(&others[i])
	}
	if all == ours || all <= capacity {
		return capacity, nil
	}
	return bytesize.Bytes(float64(capacity) * float64(ours) / float64(all)), nil
}

// Evidence is the open file that holds the claim, for child processes that hold memory on the worker's behalf; nil when
// nothing is claimed.
func (c *Claim) Evidence() *os.File {
	if c == nil {
		return nil
	}
	return c.file
}

// Close lets go. When no other process holds the claim, it is void.
func (c *Claim) Close() error {
	if c == nil || c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	return err
}
