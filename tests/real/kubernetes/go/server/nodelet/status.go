package main

import (
	"context"
	"encoding/json"
	"log"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// report writes the pod's status. The lock is held meanwhile, so that an older status never replaces a newer one.
func (n *nodelet) report(p *pod) {
	p.Lock()
	defer p.Unlock()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.object.UID}, "status": p.status()})
	check(err)
	pods := n.client.CoreV1().Pods(p.object.Namespace)
	kind := types.StrategicMergePatchType // keeps the conditions of others
	_, err = pods.Patch(context.Background(), p.object.Name, kind, patch, metav1.PatchOptions{}, "status")
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // its object may be gone, or a new one there
		log.Printf("%s/%s: %v", p.object.Namespace, p.object.Name, err)
	}
}

func (p *pod) status() corev1.PodStatus {
	status := corev1.PodStatus{
		StartTime: &p.start,
		HostIP:    "127.0.0.1",
		PodIP:     "127.0.0.1",
		Reason:    p.reason,
		QOSClass:  p.object.Status.QOSClass,
	}
	for _, spec := range p.object.Spec.InitContainers {
		status.InitContainerStatuses = append(status.InitContainerStatuses, p.statusOf(spec, "PodInitializing"))
	}
	for _, spec := range p.object.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, p.statusOf(spec, "ContainerCreating"))
	}
	for _, each := range p.object.Spec.EphemeralContainers {
		if p.containers[each.Name] != nil {
			one := p.statusOf(corev1.Container(each.EphemeralContainerCommon), "")
			status.EphemeralContainerStatuses = append(status.EphemeralContainerStatuses, one)
		}
	}
	status.Phase = p.phase(status)
	p.setReady(status.Phase == corev1.PodRunning)
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionStatus(p.ready.Status), LastTransitionTime: p.ready.LastTransitionTime,
		})
	}
	return status
}

func (p *pod) statusOf(spec corev1.Container, before string) corev1.ContainerStatus {
	status := corev1.ContainerStatus{Name: spec.Name, Image: spec.Image, ImageID: "none", State: waiting(before, "")}
	if c := p.containers[spec.Name]; c != nil {
		isRunning := c.isRunning
		status.State, status.LastTerminationState, status.RestartCount = c.state, c.last, c.restarts
		status.Ready, status.Started = isRunning, &isRunning
	}
	return status
}

// phase follows the containers: one that is to be started again counts as running.
func (p *pod) phase(status corev1.PodStatus) corev1.PodPhase {
	running, failed, ended := 0, 0, 0
	for _, each := range status.InitContainerStatuses {
		if end := each.State.Terminated; end != nil && end.ExitCode != 0 {
			failed++
		}
	}
	for _, each := range status.ContainerStatuses {
		switch {
		case each.State.Terminated != nil:
			ended++
			if each.State.Terminated.ExitCode != 0 {
				failed++
			}
		case each.State.Running != nil, each.RestartCount > 0:
			running++
		}
	}
	switch {
	case running > 0:
		return corev1.PodRunning
	case failed > 0 || p.reason != "":
		return corev1.PodFailed
	case ended == len(status.ContainerStatuses):
		return corev1.PodSucceeded
	default:
		return corev1.PodPending
	}
}

func (p *pod) setReady(isReady bool) {
	value := metav1.ConditionFalse
	if isReady {
		value = metav1.ConditionTrue
	}
	if p.ready.Status != value {
		p.ready = metav1.Condition{Status: value, LastTransitionTime: metav1.Now()}
	}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}
