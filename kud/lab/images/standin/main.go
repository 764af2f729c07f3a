// Command standin replaces the programs of the EdgeX sample and of the tests in the lab, where no registry is
// reachable. On the ports of all of them it answers every HTTP request with 200 and its addresses, and it prints PONG
// if it is run as sh or redis-cli. It shows that pods run, are probed and reach each other, but tests nothing of EdgeX.
//
// With the arguments `get URL`, `addresses`, `read FILE` or `write FILE TEXT` it does only that.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// ports returns the ports of the programs that it replaces.
func ports() []string {
	return []string{
		"80", "8080", // the tests
		"4000", "6379", "8500", // ui, redis, consul
		"59701", "59860", "59861", "59880", "59881", "59882", "59900", // the services of EdgeX
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM) //nolint:forbidigo // main has no caller
	err := run(ctx, filepath.Base(os.Args[0]), os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "standin:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name string, args []string, w io.Writer) error {
	switch {
	case name == "sh" || name == "redis-cli":
		_, err := fmt.Fprintln(w, "PONG")
		return err
	case len(args) == 2 && args[0] == "get":
		return get(ctx, args[1], w)
	case len(args) == 1 && args[0] == "addresses":
		return addresses(w)
	case len(args) == 2 && args[0] == "read":
		return read(args[1], w)
	case len(args) == 3 && args[0] == "write":
		return write(args[1], args[2])
	default:
		return serve(ctx, w)
	}
}

// serve answers until the context ends. Listening on a port below 1024 may fail without root; one port is enough.
func serve(ctx context.Context, w io.Writer) error {
	server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: 5 * time.Second}
	var (
		waiting sync.WaitGroup
		open    int
		config  net.ListenConfig
	)
	for _, port := range ports() {
		listener, err := config.Listen(ctx, "tcp", ":"+port)
		if err != nil {
			fmt.Fprintln(w, err)
			continue
		}
		open++
		waiting.Go(func() { _ = server.Serve(listener) }) // returns ErrServerClosed
	}
	if open == 0 {
		return fmt.Errorf("cannot listen on any of %v", ports())
	}
	<-ctx.Done()
	err := server.Close()
	waiting.Wait()
	return err
}

func answer(w http.ResponseWriter, r *http.Request) {
	host, _ := os.Hostname()
	fmt.Fprintf(w, "%s asked from %s\n", host, r.RemoteAddr)
	_ = addresses(w)
}

func get(ctx context.Context, url string, w io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("cannot create the request: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("cannot get %s: %w", url, err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(w, response.Body); err != nil {
		return fmt.Errorf("cannot read the answer of %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

func write(path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("cannot write the file: %w", err)
	}
	return nil
}

func read(path string, w io.Writer) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("cannot read the file: %w", err)
	}
	_, err = w.Write(content)
	return err
}

// addresses prints every interface with its addresses.
func addresses(w io.Writer) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("cannot list the interfaces: %w", err)
	}
	for _, i := range interfaces {
		found, err := i.Addrs()
		if err != nil {
			return fmt.Errorf("cannot list the addresses of %s: %w", i.Name, err)
		}
		fmt.Fprintln(w, i.Name, i.HardwareAddr, found)
	}
	return nil
}
