package verb

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// assetsResult is what nodes hold for all of their attempts.
type assetsResult struct{ *wire.AssetsReply }

func (r *assetsResult) human(w io.Writer) {
	if len(r.Nodes) == 0 {
		fmt.Fprintln(w, "no node has joined yet")
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer table.Flush()
	for i := range r.Nodes {
		n := &r.Nodes[i]
		fmt.Fprintf(table, "node %s\n", n.Node)
		for k := range n.Assets {
			a := &n.Assets[k]
			state := "loaded"
			if !a.Present {
				state = "booked, not loaded yet"
			}
			fmt.Fprintf(table, "  %s\t%s\t%s of %s\t%d users\tused %s ago\t%s\n",
				a.Name, a.Class, a.Bytes, a.Pool, a.Users, ago(a.UsedAt), state)
		}
		for k := range n.Circuits {
			c := &n.Circuits[k]
			state := "ready"
			switch {
			case c.Loading != nil:
				state = fmt.Sprintf("%s: %s of %s", c.Loading.What, c.Loading.Done, c.Loading.Total)
			case !c.Ready:
				state = oneLine(c.Missing)
			}
			fmt.Fprintf(table, "  circuit %s\ton %s\t%s\n", c.Circuit, c.Device, state)
		}
	}
}

// assetsOrdered is an order that was sent.
type assetsOrdered struct {
	Do      string   `json:"do"`
	Node    job.Node `json:"node"`
	Circuit string   `json:"circuit"`
	From    job.Node `json:"from,omitempty"`
}

func (r *assetsOrdered) human(w io.Writer) {
	from := ""
	if r.From != "" {
		from = fmt.Sprintf(" from node %s", r.From)
	}
	row(w, "ordered", `%s of circuit %s on node %s%s; "proofrack assets list" shows how far it is`,
		r.Do, r.Circuit, r.Node, from)
}

func (a *app) assetsCommand() *cobra.Command {
	return a.group("assets", "parameters and what else the attempts of a node share",
		a.assetsListCommand(),
		a.assetsOrderCommand(wire.AssetsPreload, "book and load a circuit's assets before its first job comes"),
		a.assetsOrderCommand(wire.AssetsEvict, "give back a circuit's assets; refused while attempts use them"),
		a.assetsOrderCommand(wire.AssetsCopy, "have the node fetch a circuit's parameter file from another one"))
}

func (a *app) assetsListCommand() *cobra.Command {
	var flags rackFlags
	var q wire.AssetsRequest
	c := &cobra.Command{
		Use:   "list [NODE]",
		Short: "show what nodes hold: bytes, users, last use, and loads that go on",
		Args: func(c *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return nil
			case 1:
				node, err := job.ParseNode(args[0])
				if err != nil {
					return misuse("%w", err)
				}
				q.Node = node
				return nil
			}
			return fail(usage, helpHint(c), "unexpected argument %q", args[1])
		},
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			var reply wire.AssetsReply
			if err := r.admin(c.Context(), wire.AdminAssets, &q, &reply); err != nil {
				return err
			}
			return a.emit(&assetsResult{&reply}, false)
		}),
	}
	flags.register(c)
	return c
}

func (a *app) assetsOrderCommand(do, short string) *cobra.Command {
	var flags rackFlags
	var from string
	var q wire.AssetsRequest
	c := &cobra.Command{
		Use:   do + " NODE CIRCUIT",
		Short: short,
		PreRunE: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fail(usage, helpHint(c), "name a node and a circuit")
			}
			q = wire.AssetsRequest{Do: do, Node: job.Node(args[0]), Circuit: args[1], From: job.Node(from)}
			if err := q.Check(); err != nil {
				return misuse("%w", err)
			}
			return nil
		},
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			var reply wire.AssetsReply
			if err := r.admin(c.Context(), wire.AdminAssets, &q, &reply); err != nil {
				return err
			}
			return a.emit(&assetsOrdered{Do: do, Node: q.Node, Circuit: q.Circuit, From: reply.From}, false)
		}),
	}
	flags.register(c)
	if do == wire.AssetsCopy {
		c.Flags().StringVar(&from, "from", "", "the node that has the file; else any that gives it")
	}
	return c
}
