package work

import (
	"context"
	"errors"
	"testing"
)

func TestTurn(t *testing.T) {
	var turn Turn
	var order []int
	err := Each(context.Background(), 4, 200, func(_, i int) error {
		err := turn.Wait(context.Background(), i)
		if err == nil {
			order = append(order, i)
		}
		turn.Done(err)
		return err
	})
	if err != nil || len(order) != 200 {
		t.Fatalf("%d pieces, %v", len(order), err)
	}
	for i, k := range order {
		if i != k {
			t.Fatalf("piece %d came as number %d", k, i)
		}
	}
}

func TestTurnFails(t *testing.T) {
	var turn Turn
	broken := errors.New("broken")
	err := Each(context.Background(), 4, 100, func(_, i int) error {
		err := turn.Wait(context.Background(), i)
		if i == 7 && err == nil {
			err = broken
		}
		turn.Done(err)
		return err
	})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}
