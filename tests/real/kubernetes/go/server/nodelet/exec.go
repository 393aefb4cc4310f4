package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/creack/pty"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	idleLimit     = 4 * time.Hour // after which a kubelet ends a stream
	createLimit   = 30 * time.Second
	lastOutputFor = time.Second // how long a terminal's last words are waited for: a child may hold it open
)

func (n *nodelet) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{ns}/{pod}/{container}", n.serveExec)
	mux.HandleFunc("/exec/{ns}/{pod}/{uid}/{container}", n.serveExec)
	mux.HandleFunc("/containerLogs/{ns}/{pod}/{container}", n.serveLogs)
	return mux
}

func (n *nodelet) serveExec(w http.ResponseWriter, r *http.Request) {
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	inside := &execution{n: n}
	if inside.p, inside.spec = n.find(r); inside.p != nil {
		inside.c, inside.ended = inside.p.running(inside.spec.Name)
	}
	name := r.PathValue("container")
	if inside.c == nil {
		http.Error(w, fmt.Sprintf("container not found (%q)", name), http.StatusInternalServerError)
		return
	}
	command := r.URL.Query()["command"]
	remotecommand.ServeExec(
		w, r, inside, r.PathValue("pod"), "", name, command, options, idleLimit, createLimit,
		remotecommand.SupportedStreamingProtocols)
}

// find looks up the pod and the container that a request's path names. No pod, or a container without a name: none such.
func (n *nodelet) find(r *http.Request) (*pod, corev1.Container) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		p.Lock()
		object := p.object
		p.Unlock()
		if object.Namespace == r.PathValue("ns") && object.Name == r.PathValue("pod") {
			return p, specOf(object, r.PathValue("container"))
		}
	}
	return nil, corev1.Container{}
}

func specOf(object *corev1.Pod, name string) corev1.Container {
	specs := append(append([]corev1.Container{}, object.Spec.Containers...), object.Spec.InitContainers...)
	for _, each := range object.Spec.EphemeralContainers {
		specs = append(specs, corev1.Container(each.EphemeralContainerCommon))
	}
	for _, each := range specs {
		if each.Name == name {
			return each
		}
	}
	return corev1.Container{}
}

// running is the container of that name, if it runs now, and what is closed when it ends.
func (p *pod) running(name string) (*container, <-chan struct{}) {
	p.Lock()
	defer p.Unlock()
	if c := p.containers[name]; c != nil && c.isRunning {
		return c, c.ended
	}
	return nil, nil
}

// execution is one command beside a container's process: same folder, environment and namespaces.
type execution struct {
	n     *nodelet
	p     *pod
	c     *container
	ended <-chan struct{}
	spec  corev1.Container
}

// ExecInContainer is what the kubelet's streaming code calls when the streams are open.
func (e *execution) ExecInContainer(
	ctx context.Context, _, _, _ string, words []string, in io.Reader, out, errOut io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.ended: // the container ended, and so do its commands
			cancel()
		case <-ctx.Done():
		}
	}()
	if tty && e.n.jail != nil { // a shell wants a session of its own PID namespace
		words = append([]string{"setsid", "--ctty"}, words...)
	}
	words = e.n.inside(e.c, words)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir, cmd.Env = e.p.dir, e.p.environment(e.spec)
	var err error
	if tty {
		session := &syscall.SysProcAttr{Setsid: e.n.jail == nil, Setctty: e.n.jail == nil}
		err = runInTerminal(cmd, session, in, out, resize)
	} else {
		err = runWithPipes(cmd, in, out, errOut)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code, _ := exitOf(err)
		return utilexec.CodeExitError{Err: err, Code: code}
	}
	return err
}

func runInTerminal(
	cmd *exec.Cmd, session *syscall.SysProcAttr, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize,
) error {
	terminal, err := pty.StartWithAttrs(cmd, nil, session)
	if err != nil {
		return err
	}
	defer terminal.Close()
	go func() {
		for size := range resize {
			pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width})
		}
	}()
	if in != nil {
		go io.Copy(terminal, in)
	}
	copied := make(chan struct{})
	go func() {
		io.Copy(out, terminal)
		close(copied)
	}()
	err = cmd.Wait()
	select {
	case <-copied:
	case <-time.After(lastOutputFor):
	}
	return err
}

// runWithPipes gives the command a pipe of its own as input: else the command's end would wait for the client's.
func runWithPipes(cmd *exec.Cmd, in io.Reader, out, errOut io.Writer) error {
	cmd.Stdout, cmd.Stderr = out, errOut
	if in != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		defer r.Close()
		cmd.Stdin = r
		go func() {
			io.Copy(w, in)
			w.Close()
		}()
	}
	return cmd.Run()
}
