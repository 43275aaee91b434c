package eventlog

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/weir-metrics/weir/test/cmptest"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// onPod returns an Event on the pod shop/web.
func onPod(uid, reason string, count int32, last time.Duration) *v1.Event {
	return &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: uid, UID: types.UID(uid), ResourceVersion: "7"},
		InvolvedObject: v1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "web", UID: "p1", FieldPath: "spec.containers{app}"},
		Type:           "Warning", Reason: reason, Message: reason + " happened\n", Source: v1.EventSource{Component: "kubelet"},
		FirstTimestamp: ago(30 * time.Minute), LastTimestamp: ago(last), Count: count,
	}
}

var web = Object{Kind: "Pod", Namespace: "shop", Name: "web"}

func TestConvert(t *testing.T) {
	f := func(what string, e *v1.Event, want Event) {
		t.Helper()
		cmptest.Equal(t, what, want, *convert(e), cmpopts.IgnoreFields(Event{}, "UID"))
	}
	f("with counts", onPod("e1", "BackOff", 4, time.Minute), Event{
		Object: web, ObjectUID: "p1", Part: "app", Type: "Warning", Reason: "BackOff", Message: "BackOff happened", Source: "kubelet",
		Count: 4, First: noon.Add(-30 * time.Minute), Last: noon.Add(-time.Minute),
	})
	f("with a series", &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default"},
		InvolvedObject: v1.ObjectReference{Kind: "Node", Name: "n1"}, Type: "Normal", Reason: "NodeReady", ReportingController: "node-controller",
		EventTime: metav1.NewMicroTime(noon.Add(-time.Hour)), Series: &v1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(noon)},
	}, Event{Object: Object{Kind: "Node", Namespace: "default", Name: "n1"}, Type: "Normal", Reason: "NodeReady", Source: "node-controller", Count: 3, First: noon.Add(-time.Hour), Last: noon})
}

// Whoever may create Events writes any text into them, of any length.
func TestTextsAreBounded(t *testing.T) {
	long := strings.Repeat("é", maxMessage)
	e := onPod("e1", long, 1, 0)
	e.Type, e.Message, e.Source.Component = long, long, long
	e.InvolvedObject = v1.ObjectReference{Kind: long, Namespace: "shop", Name: long, UID: types.UID(long), FieldPath: "spec.containers{" + long + "}"}
	want := long[:maxName-1] // an é has two bytes
	got := convert(e)
	if diff := cmp.Diff(Event{
		Object: Object{Kind: want, Namespace: "shop", Name: want}, ObjectUID: want, Part: want, Type: want, Reason: want, Message: long[:maxMessage], Source: want,
		Count: 1, First: got.First, Last: got.Last, UID: "e1",
	}, *got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	e = onPod("e1", "\xff", 1, 0)
	e.Type = "Nor\xffmal"
	if got := convert(e); got.Type != "Normal" || got.Message != " happened" || got.Reason != "" {
		t.Errorf("texts that are not UTF-8 become %q", []string{got.Type, got.Message, got.Reason})
	}
}

// An Event of which little is kept takes little memory, however long its texts are.
func TestMemoryOfLongEvents(t *testing.T) {
	const events, most = 100, 1 << 20
	long := strings.Repeat(" ", 1_400_000)
	for name, change := range map[string]func(*v1.Event){
		"blanks before the message": func(e *v1.Event) { e.Message = long + "x" },
		"blanks after the message":  func(e *v1.Event) { e.Message = "x" + long },
		"a long message":            func(e *v1.Event) { e.Message = "x" + strings.Repeat("y", len(long)) },
		"a long field path":         func(e *v1.Event) { e.InvolvedObject.FieldPath = "spec." + long + "{a}" },
		"a long name":               func(e *v1.Event) { e.InvolvedObject.Name = long + "x" },
	} {
		l := NewLog(events, time.Hour)
		before := liveBytes()
		for i := range events {
			e := onPod(fmt.Sprint("e", i), "BackOff", 1, 0)
			change(e)
			l.add(convert(e), noon)
		}
		if got := liveBytes() - before; got > most {
			t.Errorf("%s: %d Events of 1.4 MB take %d bytes, want at most %d", name, events, got, most)
		}
		if kept, _ := l.Size(); kept != events {
			t.Errorf("%s: %d of %d Events are kept", name, kept, events)
		}
	}
}

// liveBytes returns the size of what the heap has that is still in use.
func liveBytes() int {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// The right to read an Event is one in the Event's own namespace, whatever object it names.
func TestNamespaceIsThatOfTheEvent(t *testing.T) {
	e := onPod("e1", "BackOff", 1, 0)
	e.Namespace = "bank"
	if got := convert(e).Namespace; got != "bank" {
		t.Errorf("the Event is kept in %q", got)
	}
}

func shown(events []Event) (all []string) {
	for _, e := range events {
		all = append(all, fmt.Sprintf("%s ×%d %v", e.Reason, e.Count, noon.Sub(e.Last)))
	}
	return all
}

// An Event that is counted up replaces itself; equal Events with other UIDs are one; an old one is not
// shown.
func TestEqualEventsAreOne(t *testing.T) {
	l := NewLog(10, time.Hour)
	for _, e := range []*v1.Event{
		onPod("e1", "BackOff", 1, 20*time.Minute), onPod("e1", "BackOff", 4, time.Minute), onPod("e1", "BackOff", 3, 2*time.Minute),
		onPod("e2", "BackOff", 2, 5*time.Minute), onPod("e3", "Pulled", 1, 3*time.Minute), onPod("e4", "Scheduled", 1, 2*time.Hour),
	} {
		l.add(convert(e), noon)
	}
	if diff := cmp.Diff([]string{"BackOff ×6 1m0s", "Pulled ×1 3m0s"}, shown(l.Of(web, noon))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"BackOff ×4 1m0s"}, shown(l.Of(web, noon.Add(58*time.Minute)))); diff != "" {
		t.Errorf("an hour later (-want +got):\n%s", diff)
	}
	if got := shown(l.In("", noon)); len(got) != 2 {
		t.Errorf("all namespaces have %v", got)
	}
	if got := l.In("bank", noon); got != nil {
		t.Errorf("another namespace has %v", got)
	}
}

// The times at which an Event was seen are kept: the last ones, also of Events that are one.
func TestTimesThatWereSeen(t *testing.T) {
	l := NewLog(10, time.Hour)
	for i := range 30 {
		at := noon.Add(time.Duration(i) * time.Minute)
		e := onPod("e1", "BackOff", int32(i+5), 0)
		e.LastTimestamp = metav1.NewTime(at)
		l.add(convert(e), at)
		l.add(convert(e), at) // it is read again
	}
	l.add(convert(onPod("e2", "BackOff", 1, -25*time.Minute-time.Second)), noon.Add(time.Hour))
	got := l.Of(web, noon.Add(time.Hour))[0].Seen
	if len(got) != maxSeen+1 || !got[0].Equal(noon.Add(14*time.Minute)) || !got[12].Equal(noon.Add(25*time.Minute+time.Second)) || !got[maxSeen].Equal(noon.Add(29*time.Minute)) {
		t.Errorf("seen %v", got)
	}
}

// The memory is bounded: the oldest Events go first, and nothing of them stays.
func TestOldestAreDropped(t *testing.T) {
	l := NewLog(100, time.Hour)
	for i := range 1000 {
		e := onPod(fmt.Sprint("e", i), fmt.Sprint("R", i), 1, time.Duration(1000-i)*time.Second)
		e.InvolvedObject.Name = fmt.Sprint("web-", i)
		l.add(convert(e), noon)
	}
	kept, dropped := l.Size()
	if all := l.In("shop", noon); kept > 100 || kept < 90 || dropped != 1000-kept || len(all) != kept || len(l.byObject) != kept || all[0].Reason != "R999" {
		t.Errorf("%d are kept, %d were dropped, %d are shown of %d objects", kept, dropped, len(all), len(l.byObject))
	}
}

// A namespace that is flooded loses its own Events, and not those of others.
func TestFloodStaysInItsNamespace(t *testing.T) {
	l := NewLog(100, time.Hour)
	for i := range 30 {
		e := onPod(fmt.Sprint("shop", i), fmt.Sprint("R", i), 1, 30*time.Minute)
		l.add(convert(e), noon)
	}
	for i := range 1000 {
		e := onPod(fmt.Sprint("flood", i), fmt.Sprint("F", i), 1, 0)
		e.Namespace = "attacker"
		l.add(convert(e), noon)
	}
	if shop, attacker := len(l.In("shop", noon)), len(l.In("attacker", noon)); shop != 30 || attacker < 50 || attacker > 70 {
		t.Errorf("after a flood, %d of 30 Events of the quiet namespace are kept, and %d of the flooded; want all, and 50 to 70", shop, attacker)
	}
	if got := l.Since("shop", noon); !got.Equal(noon.Add(-time.Hour)) {
		t.Errorf("all Events of the quiet namespace are known since %v, want an hour", got)
	}
	if got := l.Since("attacker", noon.Add(time.Minute)); !got.Equal(noon) {
		t.Errorf("all Events of the flooded namespace are known since %v, want since the last one that was dropped", got)
	}
	if got := l.Since("attacker", noon.Add(2*time.Hour)); !got.Equal(noon.Add(time.Hour)) {
		t.Errorf("two hours later, all Events of the flooded namespace are known since %v, want an hour", got)
	}
}

// Events have any time that their author writes. It becomes one that JSON can have, and ages.
func TestImpossibleTimes(t *testing.T) {
	year10000 := metav1.NewTime(time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC))
	yearMinus1 := metav1.NewTime(time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, e := range map[string]*v1.Event{
		"a last time of the year 10000":  {LastTimestamp: year10000},
		"all times of the year 10000":    {FirstTimestamp: year10000, LastTimestamp: year10000, EventTime: metav1.MicroTime(year10000)},
		"a series of the year 10000":     {Series: &v1.EventSeries{LastObservedTime: metav1.MicroTime(year10000)}, FirstTimestamp: ago(time.Hour)},
		"a first time before the year 1": {FirstTimestamp: yearMinus1, LastTimestamp: ago(time.Minute)},
		"a last time in a minute":        {LastTimestamp: ago(-time.Minute)},
	} {
		l := NewLog(10, time.Hour)
		e.Namespace, e.UID = "shop", "e1"
		if !l.add(convert(e), noon) {
			t.Errorf("%s: the Event is not kept", name)
		}
		if l.add(convert(e), noon.Add(time.Second)) {
			t.Errorf("%s: read again, the Event counts as newer", name)
		}
		kept := l.In("shop", noon)
		if _, err := json.Marshal(kept); err != nil || len(kept) != 1 || kept[0].Last.After(noon) || kept[0].First.After(kept[0].Last) {
			t.Errorf("%s: kept %+v, as JSON: %v", name, kept, err)
		}
		if later := l.In("shop", noon.Add(time.Hour+time.Minute)); len(later) != 0 {
			t.Errorf("%s: an hour later %+v is shown", name, later)
		}
	}
}

// A page of long Events is read in smaller pages, so that it does not take weir's memory.
func TestLongEventsAreReadInSmallPages(t *testing.T) {
	const events = 40
	var mu sync.Mutex
	accepted := map[int]int{} // the bytes of the last page that began with an Event
	var items []string
	for i := range events {
		e := onPod(fmt.Sprint("e", i), fmt.Sprint("R", i), 1, 0)
		e.LastTimestamp, e.Message = metav1.Now(), strings.Repeat("m", 1<<20)
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, string(text))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if query.Get("watch") != "" {
			<-r.Context().Done()
			return
		}
		first, _ := strconv.Atoi(query.Get("continue"))
		limit, _ := strconv.Atoi(query.Get("limit"))
		more := ""
		if first+limit < events {
			more = strconv.Itoa(first + limit)
		}
		w.Header().Set("Content-Type", "application/json")
		body := fmt.Appendf(nil, `{"kind": "EventList", "apiVersion": "v1", "metadata": {"resourceVersion": "100", "continue": %q}, "items": [%s]}`,
			more, strings.Join(items[first:min(first+limit, events)], ","))
		mu.Lock()
		accepted[first] = len(body) // a page that is too long is asked for again, with fewer Events
		mu.Unlock()
		_, _ = w.Write(body)
	}))
	defer server.Close()
	client, err := NewClient(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	all := make(chan struct{})
	w := NewWatcher(Options{Client: client})
	n := 0
	w.HandleEvents(func(*Event) {
		if n++; n == events {
			close(all)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	select {
	case <-all:
	case <-time.After(time.Minute):
		t.Error("after a minute, not all Events are read")
	}
	cancel()
	running.Wait()
	mu.Lock()
	defer mu.Unlock()
	for first, bytes := range accepted {
		if bytes > maxPage {
			t.Errorf("the page from Event %d has %d bytes and was read, want at most %d", first, bytes, maxPage)
		}
	}
}

// The Watcher reads pages, then a watch. It lists again when a version is too old, and says once that it
// cannot.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		noon := time.Now()
		at := func(e *v1.Event) *v1.Event {
			e.LastTimestamp = metav1.NewTime(noon)
			return e
		}
		client := fake.NewClientset()
		var mu sync.Mutex
		lists, watches := 0, []*watch.FakeWatcher{}
		client.PrependReactor("list", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			lists++
			o := a.(clienttesting.ListActionImpl).ListOptions
			switch {
			case lists <= 2:
				return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", nil)
			case o.Limit != pageSize:
				t.Errorf("a LIST has the limit %d", o.Limit)
			case o.Continue == "":
				return true, &v1.EventList{ListMeta: metav1.ListMeta{Continue: "more"}, Items: []v1.Event{*at(onPod("e1", "A", 1, 0))}}, nil
			}
			return true, &v1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []v1.Event{*at(onPod("e2", "B", 1, 0))}}, nil
		})
		client.PrependWatchReactor("events", func(clienttesting.Action) (bool, watch.Interface, error) {
			mu.Lock()
			defer mu.Unlock()
			w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 10})
			watches = append(watches, w)
			return true, w, nil
		})
		core, lines := observer.New(zap.InfoLevel)
		var handled []string
		w := NewWatcher(Options{Client: client, Logger: zap.New(core)})
		if got := w.Unread(); got == "" {
			t.Error("before the first answer, all Events are known")
		}
		w.HandleEvents(func(e *Event) { handled = append(handled, e.Reason) })
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = w.Run(ctx) })
		synctest.Wait()
		if got := w.Unread(); !strings.Contains(got, "it needs the rights list and watch") {
			t.Errorf("without the right, Unread says %q", got)
		}
		time.Sleep(time.Minute) // of the bubble's clock
		synctest.Wait()
		if got := w.Unread(); got != "" {
			t.Errorf("with the right, Unread says %q", got)
		}
		watches[0].Add(at(onPod("e3", "C", 1, 0)))
		watches[0].Add(at(onPod("e3", "C", 1, 0))) // said again
		watches[0].Delete(at(onPod("e3", "C", 1, 0)))
		synctest.Wait()
		watches[0].Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old resource version"})
		time.Sleep(time.Minute)
		synctest.Wait()
		watches[len(watches)-1].Add(at(onPod("e4", "D", 1, 0)))
		synctest.Wait()
		cancel()
		watches[len(watches)-1].Stop()
		running.Wait()
		cmptest.Equal(t, "handled", []string{"A", "B", "C", "D"}, handled)
		if got := len(w.Of(web, noon)); got != 4 || lists != 6 || len(watches) != 2 {
			t.Errorf("%d Events are kept after %d LISTs and %d watches; want 4, 6 and 2", got, lists, len(watches))
		}
		var said []string
		for _, l := range lines.All() {
			said = append(said, l.Message)
		}
		if want := []string{
			"the cluster's Events cannot be read; weir shows those it has", "the cluster's Events can be read again",
		}; !cmp.Equal(want, said) {
			t.Errorf("the log says %q", said)
		}
	})
}

// After a watch that broke, all Events are listed again. Those that the full Log has dropped are not
// handled a second time.
func TestListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		var mu sync.Mutex
		lists := 0
		client.PrependReactor("list", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
			mu.Lock()
			defer mu.Unlock()
			lists++
			all := &v1.EventList{ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(100 + lists)}}
			for i := range 30 + lists {
				e := onPod(fmt.Sprint("e", i), fmt.Sprint("R", i), 1, 0)
				e.LastTimestamp, e.ResourceVersion = metav1.NewTime(time.Now()), fmt.Sprint(71+i)
				all.Items = append(all.Items, *e)
			}
			return true, all, nil
		})
		client.PrependWatchReactor("events", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, nil, apierrors.NewInternalError(fmt.Errorf("the connection is lost"))
		})
		handled := map[string]int{}
		w := NewWatcher(Options{Client: client, MaxEvents: 10})
		w.HandleEvents(func(e *Event) { handled[e.Reason]++ })
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = w.Run(ctx) })
		time.Sleep(10 * time.Second) // of the bubble's clock
		cancel()
		running.Wait()
		if lists < 2 || len(handled) != 30+lists {
			t.Errorf("%d LISTs had %d Events", lists, len(handled))
		}
		for reason, n := range handled {
			if n != 1 {
				t.Errorf("%s was handled %d times", reason, n)
			}
		}
	})
}
