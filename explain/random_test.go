package explain_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weir-metrics/weir/cluster"
	"github.com/weir-metrics/weir/metric"
	"github.com/weir-metrics/weir/test/transcript"
)

// In random clusters all answers about a pod agree, and every pod has an answer. Pods come and go,
// crash and move. Nodes fail, or report twice, late, zeros or nothing. News from the API server
// arrives late.
func TestAnswersAgreeWhateverHappens(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 4))
			w := newFixture()
			for round := range 12 {
				now := transcript.Epoch.Add(time.Duration(round) * 15 * time.Second)
				randomRound(t, chance, w, round, now)
				later := now.Add(time.Duration(chance.IntN(15)) * time.Second)
				if err := agree(w.at(later)); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				r := w.at(later).Missing()
				missing := 0
				for _, c := range r.Causes {
					missing += c.Pods
				}
				idle := 0
				for _, c := range r.Idle {
					idle += c.Pods
					if len(c.Names) == 0 || len(c.Names) > 10 || c.Message == "" || c.Reason == "PodFinished" {
						t.Fatalf("round %d: idle: got %+v, want names and words", round, c)
					}
				}
				finished := 0
				w.facts.EachPod(func(p *cluster.Pod) bool {
					if p.Phase == cluster.Succeeded || p.Phase == cluster.Failed {
						finished++
					}
					return true
				})
				if idle+finished != r.Pods.Idle {
					t.Fatalf("round %d: got %d idle pods and %d finished, the tally %+v: %+v", round, idle, finished, r.Pods, r)
				}
				if want := r.Pods.Expected - r.Pods.Served + r.Pods.Doubtful; missing != want {
					t.Fatalf("round %d: the causes count %d pods, the tally %+v", round, missing, r.Pods)
				}
			}
		})
	}
}

// randomRound makes random changes and a random read for one round.
func randomRound(t *testing.T, chance *rand.Rand, w *fixture, round int, now time.Time) {
	t.Helper()
	if chance.IntN(3) > 0 {
		if err := w.learn(randomFacts(chance, round), now, chance.IntN(5) > 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range []metric.NodeName{"n1", "n2"} {
		if chance.IntN(4) == 0 {
			continue
		}
		b := &metric.Batch{Source: "kubelet:resource", Node: node, Interval: 15 * time.Second, Resolution: time.Millisecond, Began: now, Ended: now}
		lines := randomReport(chance, round)
		if chance.IntN(4) == 0 {
			r := metric.NodeUnreachable + metric.Reason(chance.IntN(7))
			b.Err, lines = &metric.ReadError{Reason: r, Err: errors.New(address)}, nil
		}
		if err := w.observe(b, lines); err != nil {
			t.Fatal(err)
		}
	}
}

func randomFacts(chance *rand.Rand, round int) (lines []string) {
	for _, node := range []string{"node n1 cpu=4", "node n2 cpu=4 notready"} {
		if chance.IntN(8) > 0 {
			lines = append(lines, node)
		}
	}
	for pod := range 5 {
		if chance.IntN(6) == 0 {
			continue
		}
		name := fmt.Sprintf("shop/p%d", pod)
		uid, known := chance.IntN(2), 15*chance.IntN(round+1)
		node, phase := pick(chance, "n1", "n2", "n3", ""), pick(chance, "Running", "Running", "Running", "Running", "Pending", "Succeeded")
		if node == "" {
			phase = "Pending" // a pod without a node is pending
		}
		lines = append(lines, fmt.Sprintf("pod %s uid=u%d node=%s phase=%s started=%ds known=%ds%s%s", name, uid, node, phase, known, known, pick(chance, "", "", "", fmt.Sprintf(" deleted=%ds", 15*round)), pick(chance, "", "", " hostnet")))
		for _, c := range []string{"app", "log"} {
			ended := fmt.Sprintf(" ended=%ds", max(1, 15*chance.IntN(round+1)))
			lines = append(lines, fmt.Sprintf("container %s/%s id=c%d started=%ds%s%s", name, c, uid, known,
				pick(chance, "", "", "", ended, " waiting why=CrashLoopBackOff"+ended, " terminated why=Error"+ended, " unknown"), pick(chance, "", "", "", " sidecar", " ephemeral", " init")))
		}
	}
	return lines
}

func randomReport(chance *rand.Rand, round int) (lines []string) {
	if chance.IntN(6) > 0 {
		lines = append(lines, fmt.Sprintf("node cpu=%ds mem=1Gi", 100+10*round))
	}
	for pod := range 5 {
		if chance.IntN(2) == 0 {
			lines = append(lines, fmt.Sprintf("shop/p%d rx=%dKi%s", pod, chance.IntN(20)*round, pick(chance, "", " uid=u0", " uid=u1")))
		}
		for _, c := range []string{"app", "log"} {
			for range chance.IntN(3) {
				lines = append(lines, fmt.Sprintf("shop/p%d/%s cpu=%ds mem=%s%s%s%s", pod, c,
					chance.IntN(20)*round, pick(chance, "1Mi", "1Mi", "1Mi", "0"), pick(chance, "", "", fmt.Sprintf(" start=%ds", 15*chance.IntN(round+1)), " start=-1h"),
					pick(chance, "", "", " uid=u0 id=c0", " uid=u1 id=c1"), pick(chance, "", "", "", " path=/a procs=0", " path=/b procs=1")))
			}
		}
	}
	return lines
}

func pick(chance *rand.Rand, of ...string) string { return of[chance.IntN(len(of))] }
