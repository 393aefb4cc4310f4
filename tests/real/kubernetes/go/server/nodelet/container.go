package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container is one that was started at least once; its pod's lock guards it.
type container struct {
	name      string
	target    *container // whose processes an ephemeral container sees
	cmd       *exec.Cmd  // of the latest start
	isRunning bool
	ended     chan struct{} // closed when the latest start has ended
	state     corev1.ContainerState
	last      corev1.ContainerState
	restarts  int32
}

// loop runs a container until it need not run again, and returns its exit code.
func (n *nodelet) loop(p *pod, c *container, spec corev1.Container, policy corev1.RestartPolicy) int {
	for {
		code := n.once(p, c, spec)
		p.Lock()
		again := policy == corev1.RestartPolicyAlways || policy == corev1.RestartPolicyOnFailure && code != 0
		again = again && !p.isDeleted && p.reason == ""
		if again {
			c.restarts++
			c.last = c.state
			c.state = waiting("CrashLoopBackOff", "back-off restarting failed container "+c.name)
			os.Rename(p.logFile(c.name), p.logFile(c.name)+".previous")
		}
		wait := time.Second << min(c.restarts, 6)
		p.Unlock()
		n.report(p)
		if !again {
			return code
		}
		time.Sleep(wait)
	}
}

// once runs a container until it ends, and returns its exit code.
func (n *nodelet) once(p *pod, c *container, spec corev1.Container) int {
	printed, err := os.Create(p.logFile(c.name))
	if err != nil { // the pod is gone already
		return 128
	}
	defer printed.Close()
	cmd := n.command(p, c, spec)
	output := newLog(printed)
	cmd.Stdout, cmd.Stderr = output.stream("stdout"), output.stream("stderr")
	began := metav1.Now()

	p.Lock()
	if p.isDeleted {
		p.Unlock()
		return 128
	}
	c.cmd, c.ended = cmd, make(chan struct{})
	id := fmt.Sprintf("nodelet://%s-%s-%d", p.object.UID, c.name, c.restarts)
	err = cmd.Start()
	if err == nil {
		c.isRunning = true
		c.state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
	}
	p.Unlock()

	if err == nil {
		n.report(p)
		err = cmd.Wait()
	}
	output.close()
	code, reason := exitOf(err)
	p.Lock()
	c.isRunning = false
	c.state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: int32(code), Reason: reason, StartedAt: began, FinishedAt: metav1.Now(), ContainerID: id,
	}}
	close(c.ended)
	p.Unlock()
	return code
}

// command is the container's process. An ephemeral container joins its target's namespaces.
func (n *nodelet) command(p *pod, c *container, spec corev1.Container) *exec.Cmd {
	words := slices.Concat(spec.Command, spec.Args)
	if len(words) == 0 { // the image's own command is not known
		words = []string{"sleep", "infinity"}
	}
	if c.target != nil {
		words = n.inside(c.target, words)
	} else if n.jail != nil {
		hosts := []string{n.names.hostsFile(p.object.Namespace)}
		words = slices.Concat(n.jail.start, underHosts, hosts, words)
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = p.dir, p.environment(spec)
	if spec.WorkingDir != "" {
		cmd.Dir = spec.WorkingDir
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// inside has a command run in the namespaces of a container.
func (n *nodelet) inside(c *container, words []string) []string {
	if n.jail == nil {
		return words
	}
	return slices.Concat(n.jail.enter, []string{"-t", strconv.Itoa(n.firstProcess(c)), "--"}, words)
}

// firstProcess is what is PID 1 in the container, as this machine numbers it. Right after its start the jail's own.
func (n *nodelet) firstProcess(c *container) int {
	pid := c.cmd.Process.Pid
	if n.jail == nil {
		return pid
	}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if first, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		return first
	}
	return pid
}

// signal reaches the container's first process, as a container runtime's does; SIGKILL reaches all of them.
func (n *nodelet) signal(c *container, number syscall.Signal) {
	if number == syscall.SIGKILL {
		syscall.Kill(-c.cmd.Process.Pid, number)
	} else {
		syscall.Kill(n.firstProcess(c), number)
	}
}

func (p *pod) environment(spec corev1.Container) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "HOSTNAME=" + p.object.Name, "TERM=xterm"}
	for _, each := range spec.Env {
		env = append(env, each.Name+"="+each.Value)
	}
	return env
}

func (p *pod) logFile(container string) string { return filepath.Join(p.dir, container+".log") }

// exitOf says how a process ended: its exit code, and the reason that Kubernetes gives.
func exitOf(err error) (int, string) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, "Completed"
	case !errors.As(err, &exit):
		return 127, "StartError"
	case exit.Sys().(syscall.WaitStatus).Signaled():
		return 128 + int(exit.Sys().(syscall.WaitStatus).Signal()), "Error"
	default:
		return exit.ExitCode(), "Error"
	}
}

// output writes what a container prints as a container runtime does: time, stream, whether the line is whole, text.
type output struct {
	file    io.Writer
	mu      sync.Mutex
	writers []*io.PipeWriter
	readers sync.WaitGroup
}

func newLog(file io.Writer) *output { return &output{file: file} }

func (o *output) stream(name string) io.Writer {
	r, w := io.Pipe()
	o.writers = append(o.writers, w)
	o.readers.Go(func() {
		lines := bufio.NewReader(r)
		for {
			line, err := lines.ReadString('\n')
			if line != "" {
				o.write(name, line)
			}
			if err != nil {
				return
			}
		}
	})
	return w
}

func (o *output) write(stream, line string) {
	tag := "F"
	if !strings.HasSuffix(line, "\n") {
		tag, line = "P", line+"\n"
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	fmt.Fprintf(o.file, "%s %s %s %s", time.Now().UTC().Format(time.RFC3339Nano), stream, tag, line)
}

// close waits until everything is written.
func (o *output) close() {
	for _, w := range o.writers {
		w.Close()
	}
	o.readers.Wait()
}
