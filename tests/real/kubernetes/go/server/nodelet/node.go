package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// register makes the Node where it is missing, and says that it is ready. Its taint keeps away pods that are not meant
// to run as processes.
func (n *nodelet) register(ctx context.Context, port int32, gpus string) error {
	nodes := n.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, n.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node, err = nodes.Create(ctx, n.node(), metav1.CreateOptions{})
	}
	if err != nil {
		return err
	}
	all := corev1.ResourceList{
		"cpu":               resource.MustParse("16"),
		"memory":            resource.MustParse("64Gi"),
		"pods":              resource.MustParse("110"),
		"ephemeral-storage": resource.MustParse("100Gi"),
		"nvidia.com/gpu":    resource.MustParse(gpus),
	}
	now := metav1.Now()
	node.Status.Capacity, node.Status.Allocatable = all, all
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
		{Type: corev1.NodeHostName, Address: "localhost"},
	}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	node.Status.NodeInfo.KubeletVersion = "nodelet"
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}}
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) { // a controller was quicker; the next heartbeat sees its change
		return nil
	}
	return err
}

func (n *nodelet) node() *corev1.Node {
	labels := map[string]string{
		"kubernetes.io/hostname": n.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "type": "nodelet",
	}
	taint := corev1.Taint{Key: "test.cockpit/real", Effect: corev1.TaintEffectNoSchedule}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{taint}},
	}
}
