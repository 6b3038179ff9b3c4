package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/bmqelect/bmqelect/lsn"
)

// The order of an LSN's 16 bytes is the order of LSNs, and a BLOB is compared
// byte by byte. BYTEA and BINARY(16) of other databases are, too.
const schema = `CREATE TABLE IF NOT EXISTS resource (
	name  TEXT PRIMARY KEY,
	value TEXT NOT NULL,
	fence BLOB NOT NULL CHECK (typeof(fence) = 'blob' AND length(fence) = 16)
)`

// Table is a table whose rows refuse leaders that have been replaced. It is safe
// for concurrent use, by several processes, too.
type Table struct{ db *sql.DB }

// OpenTable makes the table in db unless it is there.
func OpenTable(ctx context.Context, db *sql.DB) (*Table, error) {
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("make table resource: %w", err)
	}
	return &Table{db}, nil
}

// Create makes an empty row unless it is there. Its fence admits every leader.
// A row must not be deleted: its fence would be forgotten.
func (t *Table) Create(ctx context.Context, name string) error {
	const create = `INSERT INTO resource (name, value, fence) VALUES (?, '', zeroblob(16)) ON CONFLICT DO NOTHING`
	if _, err := t.db.ExecContext(ctx, create, name); err != nil {
		return fmt.Errorf("create row %q: %w", name, err)
	}
	return nil
}

// Write sets the value of a row and moves its fence on to token. It fails with
// a *lsn.StaleError, and changes nothing, if a newer leader has written.
func (t *Table) Write(ctx context.Context, token lsn.LSN, name, value string) error {
	fence, err := key(token)
	if err != nil {
		return fmt.Errorf("write row %q: %w", name, err)
	}
	// The check is part of the statement that writes: nobody comes between.
	const write = `UPDATE resource SET value = ?1, fence = ?2 WHERE name = ?3 AND fence <= ?2`
	result, err := t.db.ExecContext(ctx, write, value, fence, name)
	if err != nil {
		return fmt.Errorf("write row %q: %w", name, err)
	}
	if n, err := result.RowsAffected(); n == 1 || err != nil {
		return err
	}
	return t.refusal(ctx, token, name)
}

// key is a token as the database keeps it.
func key(token lsn.LSN) ([]byte, error) {
	if !token.Term.Led() {
		return nil, fmt.Errorf("token %s is of no leadership", token)
	}
	return token.MarshalBinary()
}

// refusal says why no row was written. A fence only rises, so what it is now
// refuses the token as well as what it was then.
func (t *Table) refusal(ctx context.Context, token lsn.LSN, name string) error {
	_, newest, err := t.Read(ctx, name)
	if err != nil {
		return err
	}
	return fmt.Errorf("write row %q: %w", name, &lsn.StaleError{Got: token, Newest: newest})
}

// Read returns the value of a row and the token that it was written with.
func (t *Table) Read(ctx context.Context, name string) (value string, fence lsn.LSN, err error) {
	var b []byte
	err = t.db.QueryRowContext(ctx, `SELECT value, fence FROM resource WHERE name = ?`,
		name).Scan(&value, &b)
	if err == nil {
		err = fence.UnmarshalBinary(b)
	}
	if err != nil {
		return "", lsn.LSN{}, fmt.Errorf("read row %q: %w", name, err)
	}
	return value, fence, nil
}
