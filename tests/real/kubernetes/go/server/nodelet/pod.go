package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod is one pod of this Node from its first sight to its deletion. Its lock guards everything below it, also what its
// containers know.
type pod struct {
	dir   string
	start metav1.Time

	sync.Mutex
	object     *corev1.Pod
	containers map[string]*container // those that were started
	reason     string                // DeadlineExceeded, where that ended it
	isDeleted  bool                  // it is being ended
	ready      metav1.Condition      // the readiness last reported, and since when
}

// sync is called with every version of a pod.
func (n *nodelet) sync(object *corev1.Pod) {
	n.mu.Lock()
	p := n.pods[object.UID]
	if p == nil {
		if hasEnded(object) { // before this process began
			n.mu.Unlock()
			if object.DeletionTimestamp != nil {
				go n.remove(object)
			}
			return
		}
		p = &pod{
			dir:        filepath.Join(n.dir, string(object.UID)),
			start:      metav1.Now(),
			object:     object,
			containers: map[string]*container{},
		}
		n.pods[object.UID] = p
		n.mu.Unlock()
		go n.run(p)
		return
	}
	n.mu.Unlock()

	p.Lock()
	defer p.Unlock()
	p.object = object
	for _, each := range object.Spec.EphemeralContainers {
		if p.containers[each.Name] == nil && p.isRunning() {
			c := p.add(each.Name)
			if target := p.containers[each.TargetContainerName]; target != nil {
				c.target = target
			}
			go n.loop(p, c, corev1.Container(each.EphemeralContainerCommon), corev1.RestartPolicyNever)
		}
	}
	if object.DeletionTimestamp != nil && !p.isDeleted {
		p.isDeleted = true
		go n.terminate(p)
	}
}

// run starts the containers: those for the preparation one after the other, then all others.
func (n *nodelet) run(p *pod) {
	check(os.MkdirAll(p.dir, 0o755))
	spec := p.object.Spec
	preparing := spec.RestartPolicy
	if preparing == corev1.RestartPolicyAlways { // of containers that are to end
		preparing = corev1.RestartPolicyOnFailure
	}
	for _, each := range spec.InitContainers {
		if n.loop(p, p.lockAndAdd(each.Name), each, preparing) != 0 {
			return
		}
	}
	if limit := spec.ActiveDeadlineSeconds; limit != nil {
		time.AfterFunc(time.Duration(*limit)*time.Second, func() { n.end(p, "DeadlineExceeded") })
	}
	for _, each := range spec.Containers {
		go n.loop(p, p.lockAndAdd(each.Name), each, spec.RestartPolicy)
	}
}

func (p *pod) add(name string) *container {
	c := &container{name: name}
	p.containers[name] = c
	return c
}

func (p *pod) lockAndAdd(name string) *container {
	p.Lock()
	defer p.Unlock()
	return p.add(name)
}

func (p *pod) isRunning() bool {
	for _, c := range p.containers {
		if c.isRunning {
			return true
		}
	}
	return false
}

// end kills what runs, for a reason that the pod's status shows.
func (n *nodelet) end(p *pod, reason string) {
	p.Lock()
	defer p.Unlock()
	if p.isRunning() {
		p.reason = reason
		n.signalAll(p, syscall.SIGKILL)
	}
}

func (n *nodelet) signalAll(p *pod, number syscall.Signal) {
	for _, c := range p.containers {
		if c.isRunning {
			n.signal(c, number)
		}
	}
}

// terminate ends a pod that was deleted: it has its grace period to end by itself.
func (n *nodelet) terminate(p *pod) {
	p.Lock()
	grace := int64(30)
	if asked := p.object.DeletionGracePeriodSeconds; asked != nil {
		grace = *asked
	}
	n.signalAll(p, syscall.SIGTERM)
	var ends []chan struct{}
	for _, c := range p.containers {
		if c.isRunning {
			ends = append(ends, c.ended)
		}
	}
	p.Unlock()
	over := time.After(time.Duration(grace) * time.Second)
	for _, ended := range ends {
		select {
		case <-ended:
		case <-over:
			p.Lock()
			n.signalAll(p, syscall.SIGKILL)
			p.Unlock()
			<-ended
		}
	}
	n.report(p)
	p.Lock()
	object := p.object
	p.Unlock()
	n.remove(object)
}

// remove takes the object away: a pod's deletion waits for its Node.
func (n *nodelet) remove(object *corev1.Pod) {
	zero, uid := int64(0), object.UID
	now := metav1.DeleteOptions{GracePeriodSeconds: &zero, Preconditions: &metav1.Preconditions{UID: &uid}}
	_ = n.client.CoreV1().Pods(object.Namespace).Delete(context.Background(), object.Name, now) // it may be gone already
}

// forget ends what is left of a pod whose object is gone.
func (n *nodelet) forget(uid types.UID) {
	n.mu.Lock()
	p := n.pods[uid]
	delete(n.pods, uid)
	n.mu.Unlock()
	if p == nil {
		return
	}
	p.Lock()
	p.isDeleted = true
	n.signalAll(p, syscall.SIGKILL)
	p.Unlock()
	os.RemoveAll(p.dir)
}

func hasEnded(object *corev1.Pod) bool {
	return object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed
}
