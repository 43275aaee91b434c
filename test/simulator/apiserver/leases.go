package apiserver

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// leases are the Leases of the cluster, in memory. They can be created,
// updated, got, listed and deleted, but not watched or patched. An update with
// an old resource version is a conflict.
type leases struct {
	mu      sync.Mutex
	version int64
	all     map[types.NamespacedName]*coordinationv1.Lease
}

func newLeases() *leases { return &leases{all: map[types.NamespacedName]*coordinationv1.Lease{}} }

// serve answers requests for namespaces/NAMESPACE/leases[/NAME].
func (l *leases) serve(w http.ResponseWriter, r *http.Request, path []string) {
	var at types.NamespacedName
	if len(path) > 2 && path[0] == "namespaces" {
		at.Namespace, path = path[1], path[2:]
	}
	if len(path) > 1 {
		at.Name = path[1]
	}
	if path[0] != "leases" || len(path) > 2 || r.URL.Query().Has("watch") {
		refuse(w, r, http.StatusNotFound, "NotFound", "of coordination.k8s.io the simulated API server has Leases, and no watch of them")
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch r.Method {
	case http.MethodGet:
		l.read(w, r, at)
	case http.MethodPost, http.MethodPut:
		l.write(w, r, at)
	case http.MethodDelete:
		if l.all[at] == nil {
			l.absent(w, r, at)
			return
		}
		delete(l.all, at)
		respond(w, r, http.StatusOK, &metav1.Status{Status: metav1.StatusSuccess})
	default:
		refuse(w, r, http.StatusMethodNotAllowed, "MethodNotAllowed", "Leases can be created, updated, got, listed and deleted")
	}
}

func (l *leases) read(w http.ResponseWriter, r *http.Request, at types.NamespacedName) {
	if at.Name != "" {
		if lease := l.all[at]; lease != nil {
			respond(w, r, http.StatusOK, lease)
		} else {
			l.absent(w, r, at)
		}
		return
	}
	chosen, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		refuse(w, r, http.StatusBadRequest, "BadRequest", "read labelSelector: "+err.Error())
		return
	}
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatInt(l.version, 10)}}
	for name, lease := range l.all {
		if (at.Namespace == "" || at.Namespace == name.Namespace) && chosen.Matches(labels.Set(lease.Labels)) {
			list.Items = append(list.Items, *lease)
		}
	}
	slices.SortFunc(list.Items, func(a, b coordinationv1.Lease) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	respond(w, r, http.StatusOK, list)
}

func (l *leases) write(w http.ResponseWriter, r *http.Request, at types.NamespacedName) {
	lease := new(coordinationv1.Lease)
	if err := decode(r, lease); err != nil {
		refuse(w, r, http.StatusBadRequest, "BadRequest", err.Error())
		return
	}
	create := r.Method == http.MethodPost
	if create {
		at.Name = lease.Name
	}
	lease.Namespace, lease.Name = at.Namespace, at.Name
	old := l.all[at]
	code := http.StatusOK
	switch {
	case create && old != nil:
		refuse(w, r, http.StatusConflict, "AlreadyExists", "leases.coordination.k8s.io "+strconv.Quote(at.Name)+" already exists")
		return
	case create:
		code = http.StatusCreated
		lease.UID = types.UID(at.Namespace + "/" + at.Name + "/" + strconv.FormatInt(l.version+1, 10))
	case old == nil:
		l.absent(w, r, at)
		return
	case lease.ResourceVersion != "" && lease.ResourceVersion != old.ResourceVersion:
		refuse(w, r, http.StatusConflict, "Conflict", "leases.coordination.k8s.io "+strconv.Quote(at.Name)+": the object has been modified; get it again and try once more")
		return
	default:
		lease.UID, lease.CreationTimestamp = old.UID, old.CreationTimestamp
	}
	l.version++
	lease.ResourceVersion = strconv.FormatInt(l.version, 10)
	l.all[at] = lease
	respond(w, r, code, lease)
}

func (l *leases) absent(w http.ResponseWriter, r *http.Request, at types.NamespacedName) {
	refuse(w, r, http.StatusNotFound, "NotFound", "leases.coordination.k8s.io "+strconv.Quote(at.Name)+" not found")
}
