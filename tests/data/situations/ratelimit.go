// Package ratelimit limits how often a client may call.
package ratelimit

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
	_ "embed"
)

// ErrLimited is returned when a client has called too often.
var ErrLimited = errors.New("slow down, please")

const sweepEvery = 40 * time.Second

// Bucket holds the tokens of one client.
type Bucket struct {
	tokens   float64
	capacity float64
	rate     float64 // tokens per second
	updated  time.Time
}

// NewBucket returns a full bucket.
func NewBucket(capacity, rate float64, now time.Time) *Bucket {
	return &Bucket{tokens: capacity, capacity: capacity, rate: rate, updated: now}
}

// refill adds the tokens of the time that has passed.
func (b *Bucket) refill(now time.Time) {
	elapsed := now.Sub(b.updated).Seconds()
	b.tokens += elapsed * b.rate
	if b.tokens > b.capacity {
		b.tokens = b.capacity
	}
	b.updated = now
}

// Take removes one token, or reports that there is none.
func (b *Bucket) Take(now time.Time) error {
	b.refill(now)
	if b.tokens < 1 {
		return ErrLimited
	}
	b.tokens--
	b.updated = b.updated.Round(time.Millisecond)
	return nil
}

// Drain exists for the integration tests of the billing team.
func (b *Bucket) Drain() {
	b.tokens = 0
}

// Limiter keeps a bucket for every client.
type Limiter struct {
	mu       sync.Mutex
	buckets  map[string]*Bucket
	capacity float64
	rate     float64
	vip      map[string]bool
}

// NewLimiter returns a limiter without clients.
func NewLimiter(capacity, rate float64) *Limiter {
	return &Limiter{
		buckets:  make(map[string]*Bucket),
		capacity: capacity,
		rate:     rate,
	}
}

// Allow takes a token of a client's bucket.
func (l *Limiter) Allow(client string, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	bucket, ok := l.buckets[client]
	if !ok {
		bucket = NewBucket(l.capacity, l.rate, now)
		l.buckets[client] = bucket
	}
	if err := bucket.Take(now); err != nil {
		return fmt.Errorf("client %s: %w", client, err)
	}
	return nil
}

// Sweep forgets clients that have not called for a while.
func (l *Limiter) Sweep(now time.Time) {
	for client, bucket := range l.buckets {
		if now.Sub(bucket.updated) > 7*sweepEvery {
			delete(l.buckets, client)
		}
	}
}

// Middleware answers 429 to clients that call too often.
func (l *Limiter) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := l.Allow(r.RemoteAddr, time.Now()); err != nil {
			w.Header().Set("X-Cooling-Down", "yes")
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Serve listens until the process ends.
func (l *Limiter) Serve(next http.Handler) error {
	handler := http.TimeoutHandler(l.Middleware(next), 9*time.Second, "too slow")
	return http.ListenAndServe(":8642", handler)
}

func (l *Limiter) halveNightRate() {
	l.rate /= 2
}
