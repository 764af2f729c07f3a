package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/multicloud-k8s/k8splugin/api/client"
	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/wire"
)

func instanceTree(s *session) *cobra.Command {
	return &cobra.Command{
		Use:               "tree ID|NAME",
		Short:             "Show an instance's objects and pods as a tree",
		Args:              oneName,
		ValidArgsFunction: s.ids(instances(), false),
		RunE: s.run(func(ctx context.Context, c *client, args []string) error {
			i, a, err := s.findWith(ctx, c, args[0], &api.GetVnfInstanceParams{Pods: new(true)})
			if err != nil {
				return err
			}
			return s.out.print(a, func(w io.Writer) error {
				return treeOf(i).write(w, treeStyle{unicode: s.out.outTerminal, colour: s.out.colour(s.out.outTerminal)})
			})
		}),
	}
}

// node is one line of a tree and its children.
type node struct {
	text     string
	status   nf.Status // "" if it has none
	children []node
}

// treeOf groups the objects of an instance by kind. The kinds are in the order
// of the stages.
func treeOf(i wire.Instance) node {
	root := node{text: instanceTitle(i)}
	for _, o := range i.Objects {
		at := slices.IndexFunc(root.children, func(n node) bool { return n.text == o.Kind })
		if at < 0 {
			at = len(root.children)
			root.children = append(root.children, node{text: o.Kind})
		}
		kind := &root.children[at]
		kind.children = append(kind.children, node{text: objectTitle(o), status: o.Status, children: podsOf(i, o)})
	}
	return root
}

// podsOf returns the pods of an object, with their interfaces.
func podsOf(i wire.Instance, of wire.Object) []node {
	var out []node
	for _, p := range i.Pods {
		if p.Workload != of.Ref || p.Ref == of.Ref {
			continue
		}
		n := node{text: objectTitle(wire.Object{Ref: p.Ref, Status: p.Status, Message: p.Message}), status: p.Status}
		for _, in := range p.Interfaces {
			n.children = append(n.children, node{text: strings.Join(append([]string{in.Name, in.Network}, in.IPs...), "  ")})
		}
		out = append(out, n)
	}
	return out
}

// instanceTitle returns "east (f00d) ready, revision 2 of edgex in region sandbox,
// namespace edgex-east".
func instanceTitle(i wire.Instance) string {
	name := i.ID
	if i.Name != "" {
		name = i.Name + " (" + i.ID + ")"
	}
	text := fmt.Sprintf("%s %s, revision %d of %s in region %s, namespace %s",
		name, i.State, i.Revision, i.Package, i.Region, i.Namespace)
	if i.Message != "" {
		text += ": " + i.Message
	}
	return text
}

// objectTitle returns "web", with the message if the object is not Current.
func objectTitle(o wire.Object) string {
	if o.Status == nf.Current || o.Status == "" {
		return o.Name
	}
	if o.Message == "" {
		return o.Name + "  " + string(o.Status)
	}
	return o.Name + "  " + string(o.Status) + ": " + o.Message
}

// treeStyle says how to draw a tree.
type treeStyle struct{ unicode, colour bool }

func (n node) write(w io.Writer, style treeStyle) error {
	out := bufio.NewWriter(w)
	fmt.Fprintln(out, oneLine(n.text))
	n.branches(out, style, "")
	return out.Flush()
}

func (n node) branches(w io.Writer, style treeStyle, indent string) {
	fork, last, bar := "├── ", "└── ", "│   "
	if !style.unicode {
		fork, last, bar = "|-- ", "`-- ", "|   "
	}
	for i, child := range n.children {
		branch, below := fork, bar
		if i == len(n.children)-1 {
			branch, below = last, "    "
		}
		fmt.Fprintln(w, indent+branch+style.mark(child.status)+oneLine(child.text))
		child.branches(w, style, indent+below)
	}
}

// mark returns the sign for a status, followed by a space.
func (t treeStyle) mark(status nf.Status) string {
	sign, plain, code := "", "", ""
	switch status {
	case "":
		return ""
	case nf.Current:
		sign, plain, code = markGood, "[ok] ", green
	case nf.InProgress, nf.StatusDeleting:
		sign, plain, code = markRunning, "[..] ", yellow
	case nf.StatusFailed, nf.Absent:
		sign, plain, code = markBad, "[!!] ", red
	case nf.Unknown:
		fallthrough
	default:
		sign, plain, code = "?", "[??] ", yellow
	}
	switch {
	case !t.unicode:
		return plain
	case t.colour:
		return code + sign + noColour + " "
	}
	return sign + " "
}
