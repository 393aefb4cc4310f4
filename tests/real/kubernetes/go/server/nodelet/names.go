package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"
)

// underHosts has a command see a file as /etc/hosts: the file's name and the command follow.
var underHosts = []string{"sh", "-c", `mount --bind "$1" /etc/hosts || exit 125; shift; exec "$@"`, "sh"}

// names stands in for a cluster's name service: in the hosts file of each namespace, the name of every service is this
// machine, on which all pods are.
type names struct {
	dir string

	mu       sync.Mutex
	services map[string]map[string]bool // names by namespace
}

func (n *nodelet) watchServices(ctx context.Context) {
	source := cache.NewListWatchFromClient(n.client.CoreV1().RESTClient(), "services", "", fields.Everything())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: source,
		ObjectType:    &corev1.Service{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { n.names.change(o.(*corev1.Service), true) },
			DeleteFunc: func(o any) {
				if missed, ok := o.(cache.DeletedFinalStateUnknown); ok {
					o = missed.Obj
				}
				n.names.change(o.(*corev1.Service), false)
			},
		},
	})
	informer.Run(ctx.Done())
}

func (s *names) change(service *corev1.Service, isThere bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	present := s.services[service.Namespace]
	if present == nil {
		present = map[string]bool{}
		s.services[service.Namespace] = present
	}
	if isThere {
		present[service.Name] = true
	} else {
		delete(present, service.Name)
	}
	s.write(service.Namespace)
}

// hostsFile is that of a namespace. Containers keep seeing it as it changes.
func (s *names) hostsFile(namespace string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.write(namespace)
}

// write never makes the file shorter before it is complete, as containers read it meanwhile.
func (s *names) write(namespace string) string {
	var text strings.Builder
	text.WriteString("127.0.0.1 localhost\n")
	for _, name := range slices.Sorted(maps.Keys(s.services[namespace])) {
		fmt.Fprintf(&text, "127.0.0.1 %s %[1]s.%s %[1]s.%[2]s.svc\n", name, namespace)
	}
	check(os.MkdirAll(s.dir, 0o755))
	path := filepath.Join(s.dir, namespace)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
	check(err)
	defer file.Close()
	size, err := file.WriteString(text.String())
	check(err)
	check(file.Truncate(int64(size)))
	return path
}
