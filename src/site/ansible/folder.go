package ansible

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/multicloud-k8s/k8splugin/src/nf"
	"github.com/multicloud-k8s/k8splugin/src/site"
)

//go:embed files/k8splugin.py files/forget.yml
var files embed.FS

// folder holds the files of one run. Only this user can read it.
type folder struct {
	dir  string
	kud  string
	mark *os.File // held while the folder is in use
}

func newFolder(cfg Config) (*folder, error) {
	dir, mark, err := makeFolder(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("cannot create a folder for the run: %w", err)
	}
	return &folder{dir: dir, kud: cfg.Kud, mark: mark}, nil
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

func (f *folder) remove() error {
	defer func() { _ = f.mark.Close() }() // nothing was written
	if err := os.RemoveAll(f.dir); err != nil {
		return fmt.Errorf("cannot remove the folder of the run: %w", err)
	}
	return nil
}

func (f *folder) write(name string, content []byte) error {
	path := f.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("cannot prepare the run: %w", err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return fmt.Errorf("cannot prepare the run: %w", err)
	}
	return nil
}

// fill writes the files that Ansible reads.
func (f *folder) fill(job site.Job) error {
	inventory, err := inventoryOf(job)
	if err != nil {
		return err
	}
	plugin, err := files.ReadFile("files/k8splugin.py")
	if err != nil {
		return fmt.Errorf("cannot read the callback plugin: %w", err)
	}
	forget, err := files.ReadFile("files/forget.yml")
	if err != nil {
		return fmt.Errorf("cannot read the playbook for removed hosts: %w", err)
	}
	for name, content := range map[string][]byte{
		"inventory.json": inventory, "known_hosts": knownHosts(job.Site.Hosts), "plugins/k8splugin.py": plugin, "forget.yml": forget,
	} {
		if err := f.write(name, content); err != nil {
			return err
		}
	}
	for _, name := range []string{"home", "cp"} {
		if err := os.Mkdir(f.path(name), 0o700); err != nil {
			return fmt.Errorf("cannot prepare the run: %w", err)
		}
	}
	return f.link()
}

// pipe creates the pipe for the variables of one playbook.
func (f *folder) pipe(number int) (string, error) {
	path := f.path("vars" + strconv.Itoa(number))
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return "", fmt.Errorf("cannot create the pipe for the variables: %w", err)
	}
	return path, nil
}

// link links the collection where Ansible looks for its roles.
func (f *folder) link() error {
	text, err := os.ReadFile(filepath.Join(f.kud, "galaxy.yml"))
	namespace, name := field(text, "namespace"), field(text, "name")
	if err == nil && (!plain(namespace) || !plain(name)) {
		err = errors.New("galaxy.yml lacks the namespace or the name")
	}
	if err != nil {
		return &nf.Error{Kind: nf.Unsupported, Op: "use", Subject: "the collection", Reason: nf.ReasonKud, Err: err}
	}
	parent := f.path(filepath.Join("collections", "ansible_collections", namespace))
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return fmt.Errorf("cannot prepare the run: %w", err)
	}
	if err := os.Symlink(f.kud, filepath.Join(parent, name)); err != nil {
		return fmt.Errorf("cannot prepare the run: %w", err)
	}
	return nil
}

// field returns a top-level field of galaxy.yml; its values are single words.
func field(text []byte, name string) string {
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

func plain(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// inventoryOf returns the inventory: the hosts in their groups. Its values were
// validated when the site was requested, so none can be a template.
func inventoryOf(job site.Job) ([]byte, error) {
	type m = map[string]any
	planes, nodes := m{}, m{}
	hosts := m{}
	leaves := func(h nf.SiteHost) bool { return h.State == nf.HostLeaving && job.Action == site.Build }
	for _, h := range job.Site.Hosts {
		if leaves(h) {
			continue
		}
		hosts[h.Name] = m{"ansible_host": h.Address, "ansible_port": h.Port, "ansible_user": h.User}
		if h.Role == nf.ControlPlane {
			planes[h.Name] = m{}
		} else {
			nodes[h.Name] = m{}
		}
	}
	if len(nodes) == 0 { // some hosts must run the pods
		nodes = planes
	}
	// Ansible reads a .json file as YAML, of which JSON is a subset.
	text, err := json.MarshalIndent(m{"all": m{"hosts": hosts, "children": m{
		"kube_control_plane": m{"hosts": planes}, "kube_node": m{"hosts": nodes},
	}}}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("cannot write the inventory: %w", err)
	}
	return text, nil
}

// knownHosts returns a known_hosts file with the hosts' keys.
func knownHosts(hosts []nf.SiteHost) []byte {
	var b strings.Builder
	for _, h := range hosts {
		place := h.Address
		if h.Port != 22 {
			place = "[" + h.Address + "]:" + strconv.Itoa(h.Port)
		}
		fmt.Fprintf(&b, "%s %s\n", place, h.Key)
	}
	return []byte(b.String())
}

const hangUpTime = 5 * time.Second

// hangUp closes the connections that ssh keeps open for the next task. They are
// outside the run's process group.
func (f *folder) hangUp(ctx context.Context, path string) {
	sockets, _ := filepath.Glob(f.path("cp/*")) // the pattern is valid
	for _, socket := range sockets {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hangUpTime)
		cmd := exec.CommandContext(ctx, "ssh", "-F", "none", "-o", "ControlPath="+socket, "-O", "exit", "host")
		cmd.Env = []string{"PATH=" + path}
		_ = cmd.Run() // it may have ended by itself
		cancel()
	}
}
