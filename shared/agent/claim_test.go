package agent_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

const gibibyte = bytesize.GiB

// claims are those of one host of 60 GiB.
type claims struct {
	t      *testing.T
	folder string
}

func newClaims(t *testing.T) *claims { return &claims{t, filepath.Join(t.TempDir(), "claims")} }

func ram(scope string, bytes, capacity bytesize.Bytes) agent.ClaimPart {
	return agent.ClaimPart{
		Resource: "ram", Scope: scope, All: bytes == capacity, Bytes: bytes, Capacity: capacity, Host: 60 * gibibyte,
	}
}

// take claims for a node with a spill folder.
func (c *claims) take(node job.Node, spill string, parts ...agent.ClaimPart) (*agent.Claim, error) {
	c.t.Helper()
	claim, err := agent.TakeClaim(agent.ClaimConfig{
		Folder: c.folder, Spill: spill, Node: node, Group: -1, Parts: parts,
	})
	c.t.Cleanup(func() {
		if err := claim.Close(); err != nil {
			c.t.Error(err)
		}
	})
	return claim, err
}

func (c *claims) taken(node job.Node, spill string, parts ...agent.ClaimPart) *agent.Claim {
	c.t.Helper()
	claim, err := c.take(node, spill, parts...)
	if err != nil {
		c.t.Fatal(err)
	}
	return claim
}

// refused claims what is not there, and gives the refusal.
func (c *claims) refused(node job.Node, spill string, parts ...agent.ClaimPart) *agent.ClaimRefusal {
	c.t.Helper()
	_, err := c.take(node, spill, parts...)
	var refusal *agent.ClaimRefusal
	if !errors.As(err, &refusal) || fault.KindOf(err) != fault.Conflict {
		c.t.Fatalf("claimed: %v", err)
	}
	return refusal
}

// B43, invariant 1: two agents of one host with spill folders of their own do not both get its memory, and the second
// is told who has it. When the first has let go there is room.
func TestB43SecondAgentOfAHostIsRefusedAndToldOfTheFirst(t *testing.T) {
	t.Parallel()
	c := newClaims(t)
	one, two := t.TempDir(), t.TempDir()
	first := c.taken("n1", one, ram("", 60*gibibyte, 60*gibibyte))
	refusal := c.refused("n2", two, ram("", 10*gibibyte, 60*gibibyte))
	if len(refusal.Others) != 1 || refusal.Others[0].Node != "n1" || refusal.Others[0].Spill != one ||
		refusal.Others[0].PID != os.Getpid() || len(refusal.Others[0].Boot) != 36 {
		t.Errorf("%+v", refusal)
	}
	for _, part := range []string{"node n2", "10 GiB of ram", "node n1", one, fmt.Sprint(os.Getpid())} {
		if !strings.Contains(refusal.Error(), part) {
			t.Errorf("%q lacks %q", refusal.Error(), part)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second := c.taken("n2", two, ram("", 60*gibibyte, 60*gibibyte))
	if again := c.refused("n1", one, ram("", 1*gibibyte, 60*gibibyte)); again.Others[0].Agent == refusal.Others[0].Agent {
		t.Errorf("two agents have one id: %+v", again)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	c.taken("n1", one, ram("", 1*gibibyte, 60*gibibyte))
}

// The sum of all claims is bounded by what there is: of a control group for those in it, of the host for all.
func TestSumOfClaimsIsBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		claims []agent.ClaimPart
		fit    int // so many of them
	}{
		"parts of a host": {[]agent.ClaimPart{
			ram("", 30*gibibyte, 60*gibibyte), ram("", 30*gibibyte, 60*gibibyte), ram("", 1, 60*gibibyte),
		}, 2},
		"all after a part": {[]agent.ClaimPart{ram("", 1*gibibyte, 60*gibibyte), ram("", 60*gibibyte, 60*gibibyte)}, 1},
		"containers with too much together": {[]agent.ClaimPart{
			ram("1:2", 40*gibibyte, 40*gibibyte), ram("1:3", 40*gibibyte, 40*gibibyte),
		}, 1},
		"containers side by side": {[]agent.ClaimPart{
			ram("1:2", 30*gibibyte, 30*gibibyte), ram("1:3", 30*gibibyte, 30*gibibyte), ram("1:3", 1, 30*gibibyte),
		}, 2},
		"two in one container": {[]agent.ClaimPart{
			ram("1:2", 15*gibibyte, 30*gibibyte), ram("1:2", 15*gibibyte, 30*gibibyte), ram("1:2", 1, 30*gibibyte),
		}, 2},
		"other memory": {[]agent.ClaimPart{
			ram("", 60*gibibyte, 60*gibibyte),
			{Resource: "shm 1", All: true, Bytes: gibibyte, Capacity: gibibyte, Host: gibibyte},
			{Resource: "shm 2", All: true, Bytes: gibibyte, Capacity: gibibyte, Host: gibibyte},
			{Resource: "shm 2", Bytes: 1, Capacity: gibibyte, Host: gibibyte},
		}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClaims(t)
			for i, part := range test.claims {
				_, err := c.take(job.Node(fmt.Sprint("n", i)), t.TempDir(), part)
				if (err == nil) != (i < test.fit) {
					t.Errorf("claim %d: %v", i, err)
				}
			}
		})
	}
}

// All workers of a node hold one claim; a worker that calls the node otherwise is refused.
func TestWorkersOfANodeShareItsClaim(t *testing.T) {
	t.Parallel()
	c := newClaims(t)
	spill := t.TempDir()
	synth := c.taken("n1", spill, ram("", 60*gibibyte, 60*gibibyte))
	gpu := c.taken("n1", spill, ram("", 60*gibibyte, 60*gibibyte))
	if refusal := c.refused("n9", spill, ram("", 60*gibibyte, 60*gibibyte)); refusal.Others[0].Node != "n1" ||
		!strings.Contains(refusal.Error(), "node n9 cannot use spill folder "+spill) {
		t.Errorf("%v", refusal)
	}
	if err := synth.Close(); err != nil {
		t.Fatal(err)
	}
	c.refused("n2", t.TempDir(), ram("", 1*gibibyte, 60*gibibyte)) // the other worker still holds it
	if err := gpu.Close(); err != nil {
		t.Fatal(err)
	}
	c.taken("n2", t.TempDir(), ram("", 1*gibibyte, 60*gibibyte))
}

// A claim lasts as long as a process that inherited it, as an engine does, and not longer than the last that died.
func TestClaimLastsAsLongAsItsProcesses(t *testing.T) {
	t.Parallel()
	c := newClaims(t)
	claim := c.taken("n1", t.TempDir(), ram("", 60*gibibyte, 60*gibibyte))
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), envRole+"=engine", envNumber+"=0")
	child.ExtraFiles = []*os.File{claim.Evidence()}
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if err := claim.Close(); err != nil {
		t.Fatal(err)
	}
	c.refused("n2", t.TempDir(), ram("", 1*gibibyte, 60*gibibyte))
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	_ = in.Close()
	c.taken("n2", t.TempDir(), ram("", 60*gibibyte, 60*gibibyte))
}

// What nobody holds is removed, whatever is in it; what a process holds and cannot be read is an error.
func TestClaimsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	c := newClaims(t)
	if err := os.Mkdir(c.folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.folder, "other.claim")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	if _, err := c.take("n1", t.TempDir(), ram("", 1, 60*gibibyte)); fault.KindOf(err) != fault.Corrupt ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("held: %v", err)
	}
	const dead = `{"v":1,"node":"n3","agent":"other","boot":"before","parts":[{"resource":"ram","all":true,"bytes":"1B"}]}`
	if err := os.WriteFile(path, []byte(dead), 0o600); err != nil {
		t.Fatal(err)
	}
	c.taken("n1", t.TempDir(), ram("", 1, 60*gibibyte)) // it is of another boot
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	c.taken("n2", t.TempDir(), ram("", 1, 60*gibibyte))
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a claim that nobody holds is still there: %v", err)
	}
}

func TestFoldersOfClaims(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"relative", file, link, filepath.Join(folder, "absent", "claims")} {
		c := &claims{t, bad}
		if _, err := c.take("n1", t.TempDir(), ram("", 1, 2)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", bad, err)
		}
	}
	c := &claims{t, filepath.Join(folder, "claims")}
	c.taken("n1", t.TempDir(), ram("", 1, 2))
	if info, err := os.Stat(c.folder); err != nil || info.Mode() != os.ModeDir|os.ModeSticky|0o777 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// When there is less than was claimed by all, each gets its share of it; else it may have what there is.
func TestShareOfAShrunkenCapacity(t *testing.T) {
	t.Parallel()
	c := newClaims(t)
	one := c.taken("n1", t.TempDir(), ram("", 40*gibibyte, 60*gibibyte))
	share := func(capacity, want bytesize.Bytes) {
		t.Helper()
		if got, err := one.Share("ram", "", capacity); err != nil || got != want {
			t.Errorf("of %s: %s, not %s: %v", capacity, got, want, err)
		}
	}
	share(30*gibibyte, 30*gibibyte) // alone
	c.taken("n2", t.TempDir(), ram("", 20*gibibyte, 60*gibibyte))
	share(60*gibibyte, 60*gibibyte)
	share(30*gibibyte, 20*gibibyte)
	var none *agent.Claim
	if got, err := none.Share("ram", "", 5); err != nil || got != 5 || none.Evidence() != nil || none.Close() != nil {
		t.Errorf("of nothing claimed: %s, %v", got, err)
	}
}
