package filter

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestMagnitudePercentile(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	kinds := map[string]func() float32{
		"exponential":    func() float32 { return float32(rng.ExpFloat64() * 100) },
		"integers":       func() float32 { return float32(rng.IntN(256)) },
		"many scales":    func() float32 { return float32(math.Exp(rng.NormFloat64() * 20)) },
		"constant":       func() float32 { return 7 },
		"zeros":          func() float32 { return 0 },
		"mostly zeros":   func() float32 { return float32(max(0, rng.IntN(1000)-990)) * 1e9 },
		"two far values": func() float32 { return []float32{1e-30, 1e30}[rng.IntN(2)] },
	}
	for name, value := range kinds {
		for _, percent := range []float64{0, 1, 50, 99.9, 100} {
			v := make([]float32, 1501)
			for i := range v {
				v[i] = value()
			}
			sorted := slices.Sorted(slices.Values(v))
			pos := percent / 100 * float64(len(v)-1)
			k := int(pos)
			a := float64(sorted[k])
			want := float32(a + (float64(sorted[min(k+1, len(v)-1)])-a)*(pos-float64(k)))
			for i := range v { // magnitudes count, and numbers
				if i%3 == 0 {
					v[i] = -v[i]
				}
				if i%100 == 0 {
					v = append(v, []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}[i/100%3])
				}
			}
			for look := range 4 { // at all, at nothing, at what misleads upwards and downwards
				p := NewMagnitudePercentile(percent, []int64{32 << 20, 1 << 20, 1 << 20, 2 << 20}[look])
				switch look {
				case 0:
					p.Look(v)
				case 2:
					p.Look([]float32{3e38})
				case 3:
					p.Look([]float32{1e-38, float32(math.NaN())})
				}
				for p.Begin() {
					var wg sync.WaitGroup
					var bad atomic.Int64
					for part := range slices.Chunk(v, 400) {
						wg.Go(func() { bad.Add(p.Add(part)) })
					}
					wg.Wait()
					if bad.Load() != 16 {
						t.Errorf("%s: %d values are no numbers, want 16", name, bad.Load())
					}
				}
				if got := p.Value(); math.Abs(float64(got-want)) > 1e-6*float64(want) {
					t.Errorf("%s, percentile %v, look %d: %v, want %v", name, percent, look, got, want)
				}
				if p.Passes() > 3 || look == 0 && name == "exponential" && percent >= 50 && p.Passes() != 1 {
					t.Errorf("%s, percentile %v, look %d: %d passes", name, percent, look, p.Passes())
				}
			}
		}
	}
	// exactly, the last bit, whatever is skipped
	near := make([]float32, 4099)
	for i := range near {
		near[i] = math.Float32frombits(0x42c80000 + uint32(i*2531%4099))
	}
	for k, percent := range []float64{0, 25, 50, 100} {
		p := NewMagnitudePercentile(percent, 4<<20)
		p.Look(near[:7])
		for p.Begin() {
			p.Add(near[:2000])
			p.Add(near[2000:])
		}
		at := []float64{0, 1024.5, 2049, 4098}[k]
		low := float64(math.Float32frombits(0x42c80000 + uint32(at)))
		want := float32(low + (float64(math.Float32frombits(0x42c80000+uint32(math.Ceil(at))))-low)*(at-math.Floor(at)))
		if got := p.Value(); got != want || p.Passes() != 1 {
			t.Errorf("percentile %v of neighbours: %v after %d passes, want %v", percent, got, p.Passes(), want)
		}
	}
	p := NewMagnitudePercentile(50, 0)
	for p.Begin() {
	}
	if p.Value() != 0 {
		t.Errorf("of nothing: %v", p.Value())
	}
}

func TestGradients(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 4))
	const n = 5000
	depth, gradient := make([]int32, n), make([]float32, n)
	for i := range depth { // background at any depth, tissue at 20 ± 3
		depth[i], gradient[i] = int32(rng.IntN(60)), float32(rng.ExpFloat64())
		if i%3 == 0 {
			depth[i], gradient[i] = int32(17+rng.IntN(7)), float32(100+10*rng.NormFloat64())
		}
		if i%10 == 1 {
			gradient[i] = []float32{0, -1, float32(math.NaN()), float32(math.Inf(1))}[i/10%4]
		}
	}
	g := NewGradients(60)
	g.Add(depth, gradient)
	got, ok := g.Find()
	if !ok || got.Depth < 19 || got.Depth > 21 || got.Lines != n || got.Threshold < 5 || got.Threshold > 90 || math.Abs(float64(got.Used)-n/3*0.9) > 200 {
		t.Errorf("found %+v, %v", got, ok)
	}
	// by definition, with the threshold found
	var used []int32
	for i, v := range gradient {
		if float64(v) >= got.Threshold && !math.IsInf(float64(v), 0) {
			used = append(used, depth[i])
		}
	}
	slices.Sort(used)
	if want := float64(used[(len(used)-1)/2]+used[len(used)/2]) / 2; int64(len(used)) != got.Used || got.Depth != want {
		t.Errorf("found %+v, want the median %v of %d", got, want, len(used))
	}
	// in another order, so that the range grows otherwise
	order := rng.Perm(n)
	slices.SortFunc(order, func(a, b int) int { return int(gradient[a]) - int(gradient[b]) })
	other := NewGradients(60)
	for _, i := range order {
		other.Add(depth[i:i+1], gradient[i:i+1])
	}
	if again, _ := other.Find(); again != got {
		t.Errorf("in another order %+v, before %+v", again, got)
	}
	if _, ok := NewGradients(3).Find(); ok {
		t.Error("found something in nothing")
	}
	one := NewGradients(3)
	one.Add([]int32{2, 1}, []float32{5, 5})
	if got, ok := one.Find(); !ok || got.Used != 2 || got.Depth != 1.5 || got.Threshold != 0 {
		t.Errorf("equal gradients: %+v, %v", got, ok)
	}
}
