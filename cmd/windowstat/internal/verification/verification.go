// Package verification is what the command verify does: it compares databases with metric logs, heals them, and says what it found.
package verification

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

// Verification is what is compared, and with what. Its options must have been checked.
type Verification struct {
	// Logs are compared one after the other. Several have a line each.
	Logs      []*logquery.Selection
	Namespace string
	// From is the database that is read, and To what is written to by Heal and New.
	From verify.Options
	To   verify.Target
	// Heal writes what is missing. New writes all that the only log has, and compares nothing.
	Heal, New bool
	// File gets OpenMetrics text in the place of a server, unless it is empty.
	File string
	// JSON reports as JSON.
	JSON bool
}

// Run compares each log, and heals if that is wanted. The error says what is wrong with a database, or why that is not known.
func (v *Verification) Run(ctx context.Context, stdout io.Writer) (err error) {
	if v.File != "" {
		file, err := os.Create(v.File)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		v.To.OpenMetrics = file
	}
	var errs []error
	for _, log := range v.Logs {
		err := v.one(ctx, log, stdout)
		if err != nil && len(v.Logs) > 1 {
			err = fmt.Errorf("%s: %w", logquery.Visible(log.Searcher.Dir), err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// one compares a log.
func (v *Verification) one(ctx context.Context, log *logquery.Selection, stdout io.Writer) (err error) {
	gap := verify.Gap{Searcher: log.Searcher, PIDs: log.PIDs, From: log.From, To: log.To, Match: log.Match, Namespace: v.Namespace}
	r := reporter{v, log, stdout}
	var h verify.Healing
	switch {
	case v.New:
		h.WriteResult, err = verify.Write(ctx, gap, v.To)
		fmt.Fprintln(stdout, healed(h.WriteResult))
		if err == nil && h.Written == 0 || h.Refused+h.Unconfirmed+h.Left > 0 {
			err = errors.Join(err, errors.New("not all was written, or there was nothing"))
		}
		return err
	case !v.Heal:
		h.After, err = verify.Check(ctx, gap, v.From)
	default:
		h, err = verify.Heal(ctx, gap, v.From, v.To)
		if !v.JSON && len(v.Logs) == 1 && h.WriteResult != (push.WriteResult{}) {
			r.print(h.Before, nil)
			fmt.Fprintf(stdout, "\nhealed: %s\n\n", healed(h.WriteResult))
		}
	}
	return r.end(h, err)
}
