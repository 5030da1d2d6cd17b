package ratelimit

import (
	"errors"
	"testing"
	"time"
	"math/rand"
)

var start = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

func take(t *testing.T, bucket *Bucket, count int, now time.Time) {
	t.Helper()
	for i := 0; i < count; i++ {
		if err := bucket.Take(now); err != nil {
			t.Fatalf("take %d: %v", i, err)
		}
	}
}

func TestAFullBucketGivesItsCapacity(t *testing.T) {
	bucket := NewBucket(3, 1, start)
	take(t, bucket, 3, start)
	if err := bucket.Take(start); !errors.Is(err, ErrLimited) {
		t.Fatalf("got %v, want %v", err, ErrLimited)
	}
}

func TestTokensComeBackSlowlyWithTime(t *testing.T) {
	bucket := NewBucket(2, 1, start)
	take(t, bucket, 2, start)
	take(t, bucket, 1, start.Add(time.Second))
}

func TestTokensNeverExceedTheCapacity(t *testing.T) {
	bucket := NewBucket(2, 1, start)
	later := start.Add(time.Hour)
	take(t, bucket, 2, later)
	if err := bucket.Take(later); !errors.Is(err, ErrLimited) {
		t.Fatalf("got %v, want %v", err, ErrLimited)
	}
}

func TestAThirstyClientLeavesTheOthersAlone(t *testing.T) {
	limiter := NewLimiter(1, 1)
	if err := limiter.Allow("a", start); err != nil {
		t.Fatal(err)
	}
	if err := limiter.Allow("b", start); err != nil {
		t.Fatal(err)
	}
}

func TestAnErrorNamesTheClient(t *testing.T) {
	limiter := NewLimiter(1, 0.25)
	_ = limiter.Allow("carol", start)
	err := limiter.Allow("carol", start)
	// The dashboards group by this very text, so it must not change.
	if err == nil || err.Error() != "client carol: slow down, please" {
		t.Fatalf("the dashboards would not know what to make of %v", err)
	}
}

func BenchmarkTake(b *testing.B) {
	bucket := NewBucket(1e12, 5, start)
	for i := 0; i < b.N; i++ {
		_ = bucket.Take(start)
	}
}
