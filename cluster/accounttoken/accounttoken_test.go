package accounttoken_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	authentication "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/weir-metrics/weir/cluster/accounttoken"
	"github.com/weir-metrics/weir/test/background"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// accounts is the part of an API server that creates tokens: token-1, token-2 and so on.
type accounts struct {
	corev1.ServiceAccountInterface // no other method is called

	mu      sync.Mutex // for the fields below
	created []time.Time
	asked   []string // namespace/name and the audiences
	space   string
	life    int64 // seconds
	away    error
}

func (a *accounts) ServiceAccounts(namespace string) corev1.ServiceAccountInterface {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.space = namespace
	return a
}

// setAway sets the error of later requests. Nil: they succeed.
func (a *accounts) setAway(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.away = err
}

// counts returns how many tokens were requested, and how many were created.
func (a *accounts) counts() (asked, created int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked), len(a.created)
}

func (a *accounts) CreateToken(_ context.Context, name string, r *authentication.TokenRequest, _ metav1.CreateOptions) (*authentication.TokenRequest, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, fmt.Sprint(a.space, "/", name, r.Spec.Audiences))
	if a.away != nil {
		return nil, a.away
	}
	a.created = append(a.created, time.Now())
	r.Spec.ExpirationSeconds = &a.life
	r.Status.Token = fmt.Sprint("token-", len(a.created))
	return r, nil
}

// run runs a Source of account weir-system/nodes for the time of f.
func run(t *testing.T, a *accounts, log *zap.Logger, f func(t *testing.T, s *accounttoken.Source)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, err := accounttoken.New(accounttoken.Options{Client: a, Namespace: "weir-system", Name: "nodes", Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		background.Run(t, s.Run)
		f(t, s)
	})
}

// A token is replaced before it ends, and not at the same moment of each life.
func TestTokenIsReplacedInTime(t *testing.T) {
	a := &accounts{life: 1000}
	run(t, a, nil, func(t *testing.T, s *accounttoken.Source) {
		for range 20 {
			synctest.Wait()
			got, err := s.Token(t.Context())
			_, created := a.counts()
			if want := fmt.Sprint("token-", created); got != want || err != nil {
				t.Fatalf("got %q, %v; want %s", got, err, want)
			}
			time.Sleep(800*time.Second + time.Millisecond)
		}
	})
	pauses := map[time.Duration]bool{}
	for i := 1; i < len(a.created); i++ {
		p := a.created[i].Sub(a.created[i-1])
		pauses[p] = true
		if p < 700*time.Second || p > 800*time.Second {
			t.Errorf("token %d was replaced after %v of 1000s, want 700s to 800s", i, p)
		}
	}
	if len(a.created) < 20 || len(pauses) < 10 {
		t.Errorf("%d tokens, %d different pauses; want 20 or more, and pauses that differ", len(a.created), len(pauses))
	}
	if a.asked[0] != "weir-system/nodes[]" {
		t.Errorf("asked for %s, want a token of weir-system/nodes for the API server's audiences", a.asked[0])
	}
}

// Without a token there is an error that says why. An old token stays in use while the API server
// is away. Each error is logged once.
func TestTokenCannotBeCreated(t *testing.T) {
	core, lines := observer.New(zap.InfoLevel)
	forbidden := errors.New("serviceaccounts/token is forbidden")
	a := &accounts{life: 1000, away: forbidden}
	run(t, a, zap.New(core), func(t *testing.T, s *accounttoken.Source) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		synctest.Wait()
		if _, err := s.Token(ctx); err == nil || !strings.Contains(err.Error(), "weir-system/nodes") {
			t.Errorf("got %v, want an error that names the account", err)
		}
		if _, err := s.Token(t.Context()); !errors.Is(err, forbidden) {
			t.Errorf("got %v, want the API server's error", err)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n, _ := a.counts(); n < 10 || n > 20 {
			t.Errorf("asked %d times in ten minutes, want about once a minute", n)
		}
		a.setAway(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		a.setAway(errors.New("connection refused"))
		time.Sleep(3 * time.Hour)
		if got, err := s.Token(t.Context()); got != "token-1" || err != nil {
			t.Errorf("got %q, %v; want the old token", got, err)
		}
	})
	if n := lines.Len(); n != 2 {
		t.Errorf("%d lines in the log, want one for each error: %v", n, lines.All())
	}
}

// Readers of the first moment wait for the first token.
func TestFirstTokenIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := accounttoken.New(accounttoken.Options{Client: &accounts{life: 1000}, Namespace: "n", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Token(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("before Run: %v, want that the deadline has passed", err)
		}
		running, end := context.WithCancel(t.Context())
		go s.Run(running)
		if got, err := s.Token(t.Context()); got != "token-1" || err != nil {
			t.Errorf("got %q, %v; want token-1", got, err)
		}
		end()
	})
}

// A token that two kubelets refuse is replaced, at most every 30 s; less often while they refuse each
// new one too. A refusal of an older token changes nothing.
func TestRefusedTokenIsReplaced(t *testing.T) {
	core, lines := observer.New(zap.WarnLevel)
	a := &accounts{life: 3600}
	run(t, a, zap.New(core), func(t *testing.T, s *accounttoken.Source) {
		created := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if _, got := a.counts(); got != want {
				t.Fatalf("%s: %d tokens were created, want %d", when, got, want)
			}
		}
		created(1, "at first")
		time.Sleep(5 * time.Minute)
		s.Refuse("n1", "token-1")
		created(1, "after one refusal")
		s.Refuse("n2", "token-1")
		s.Refuse("n3", "token-1")
		created(2, "after several")
		if got, err := s.Token(t.Context()); got != "token-2" || err != nil {
			t.Errorf("got %q, %v; want token-2", got, err)
		}
		s.Refuse("n1", "token-1")
		s.Refuse("n2", "token-1")
		time.Sleep(time.Minute)
		created(2, "after refusals of the older token")
		s.Refuse("n1", "token-2")
		s.Refuse("n2", "token-2")
		created(3, "a minute later")
		s.Refuse("n1", "token-3")
		s.Refuse("n2", "token-3")
		time.Sleep(119 * time.Second)
		created(3, "before two minutes")
		time.Sleep(2 * time.Second)
		created(4, "after two minutes")
	})
	if n := lines.Len(); n != 3 {
		t.Errorf("the log has %d lines, want one for each refused token: %v", n, lines.All())
	}
}

// A node that refuses every token changes nothing for the others: the account that is made again is
// noticed at once. The refusals of the only node count.
func TestOneNodeRefusesEveryToken(t *testing.T) {
	core, lines := observer.New(zap.WarnLevel)
	a := &accounts{life: 3600}
	run(t, a, zap.New(core), func(t *testing.T, s *accounttoken.Source) {
		for range 100 {
			time.Sleep(15 * time.Second)
			s.Refuse("bad", "token-1")
		}
		synctest.Wait()
		if _, got := a.counts(); got != 1 || lines.Len() > 0 {
			t.Fatalf("one node refused a token 100 times: %d tokens were created and the log is %v, want one token and no line", got, lines.All())
		}
		s.Refuse("n1", "token-1")
		synctest.Wait()
		if _, got := a.counts(); got != 2 {
			t.Errorf("another node refuses it, too: %d tokens were created, want 2", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		a := &accounts{life: 3600}
		s, err := accounttoken.New(accounttoken.Options{Client: a, Namespace: "weir-system", Name: "nodes", Nodes: func() int { return 1 }})
		if err != nil {
			t.Fatal(err)
		}
		background.Run(t, s.Run)
		time.Sleep(time.Minute)
		s.Refuse("n1", "token-1")
		synctest.Wait()
		if _, got := a.counts(); got != 2 {
			t.Errorf("the only node refuses the token: %d tokens were created, want 2", got)
		}
	})
}
