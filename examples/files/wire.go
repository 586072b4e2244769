// The agent's side of the OpenSentience runtime protocol v1 (seed 004) with the standard library only: frames, session,
// one goroutine a call, streams, cancellation, heartbeats, drain.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	maxFrameBytes     = 4 << 20
	maxInflight       = 256
	maxStreamMessages = 2048
	rememberedCalls   = 2048
	replyWait         = 10 * time.Second
	drainWait         = 10 * time.Second
	cancelWait        = 1500 * time.Millisecond
)

type object = map[string]any

// toolError is what Core may know of a failure; of any other error it learns nothing.
type toolError struct {
	code, message string
}

func (e *toolError) Error() string { return e.message }

type tool struct {
	name, description string
	inputSchema       object
	capabilities      []string
	tags              []string
	// run decodes the input strictly: what does not fit is tool.invalid_input.
	run func(ctx context.Context, input json.RawMessage, stream *stream) (any, error)
}

type envelope struct {
	V             int             `json:"v"`
	Type          string          `json:"type"`
	ID            string          `json:"id"`
	Ts            string          `json:"ts"`
	InReplyTo     string          `json:"in_reply_to,omitempty"`
	RequestID     string          `json:"request_id,omitempty"`
	CorrelationID string          `json:"correlation_id,omitempty"`
	CausationID   string          `json:"causation_id,omitempty"`
	Payload       json.RawMessage `json:"payload"`
	Error         object          `json:"error,omitempty"`
}

// echoOf is what every message of a call carries again (seed 004 §3.1).
func echoOf(m envelope) envelope {
	return envelope{RequestID: m.RequestID, CorrelationID: m.CorrelationID, CausationID: m.CausationID}
}

func reply(m envelope) envelope {
	echo := echoOf(m)
	echo.InReplyTo = m.ID
	return echo
}

type call struct {
	id     string
	echo   envelope
	cancel context.CancelFunc
}

type agent struct {
	id, version string
	tools       map[string]tool
	order       []string
	conn        net.Conn
	writing     sync.Mutex
	maxFrame    int
	sessionID   string
	started     time.Time

	mutex    sync.Mutex
	calls    map[string]*call
	ended    map[string]bool
	endOrder []string
	draining bool
	idle     sync.WaitGroup
}

func newAgent(id, version string, tools []tool) *agent {
	a := &agent{id: id, version: version, tools: map[string]tool{}, maxFrame: maxFrameBytes, started: time.Now(),
		calls: map[string]*call{}, ended: map[string]bool{}}
	for _, one := range tools {
		a.tools[id+"/"+one.name] = one
		a.order = append(a.order, id+"/"+one.name)
	}
	return a
}

// serve runs until the connection ends; the exit code of the process.
func (a *agent) serve() int {
	address, token := os.Getenv("OPENSENTIENCE_SOCKET"), os.Getenv("OPENSENTIENCE_SESSION_TOKEN")
	os.Unsetenv("OPENSENTIENCE_SOCKET")
	os.Unsetenv("OPENSENTIENCE_SESSION_TOKEN")
	if address == "" || token == "" {
		fmt.Fprintln(os.Stderr, "OPENSENTIENCE_SOCKET and OPENSENTIENCE_SESSION_TOKEN are not set.")
		return 1
	}
	// From the start: Core may end its agents as soon as it has heard of them.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	conn, err := dial(address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "No Core.")
		return 1
	}
	a.conn = conn
	interval, err := a.hello(token)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Core refused:", err)
		return 1
	}
	a.register()
	go a.heartbeats(interval)
	go func() {
		name := <-stop
		a.stopCalls()
		a.send("agent.goodbye", object{"reason": name.String()}, envelope{})
		a.drain()
	}()
	for {
		message, err := a.receive()
		if err != nil {
			break
		}
		a.take(message)
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.draining {
		return 0
	}
	return 1
}

func dial(address string) (net.Conn, error) {
	if !strings.HasPrefix(address, "tcp:") {
		return net.DialTimeout("unix", address, replyWait)
	}
	place := strings.TrimPrefix(address, "tcp:")
	host, _, err := net.SplitHostPort(place)
	if ip := net.ParseIP(host); err != nil || (host != "localhost" && (ip == nil || !ip.IsLoopback())) {
		return nil, errors.New("loopback only")
	}
	return net.DialTimeout("tcp", place, replyWait)
}

func (a *agent) hello(token string) (time.Duration, error) {
	manifest, err := os.ReadFile("opensentience.agent.json")
	if err != nil {
		return 0, errors.New("no manifest")
	}
	a.send("agent.hello", object{
		"session_token": token,
		"agent_id":      a.id,
		"agent_version": a.version,
		"manifest_hash": fmt.Sprintf("sha256:%x", sha256.Sum256(manifest)),
		"protocol": object{
			"supported_versions": []int{1},
			"capabilities":       []string{"tools", "streaming", "cancellation"},
		},
	}, envelope{})
	a.conn.SetReadDeadline(time.Now().Add(replyWait))
	message, err := a.receive()
	a.conn.SetReadDeadline(time.Time{})
	if err != nil || message.Type != "core.welcome" {
		return 0, errors.New("connection_lost")
	}
	if message.Error != nil {
		return 0, fmt.Errorf("%v", message.Error["code"])
	}
	var welcome struct {
		AcceptedVersion int    `json:"accepted_version"`
		SessionID       string `json:"session_id"`
		HeartbeatMs     int    `json:"heartbeat_interval_ms"`
		MaxFrameBytes   int    `json:"max_frame_bytes"`
	}
	if json.Unmarshal(message.Payload, &welcome) != nil || welcome.AcceptedVersion != 1 {
		return 0, errors.New("protocol.unsupported_version")
	}
	a.sessionID = welcome.SessionID
	if welcome.MaxFrameBytes > 0 {
		a.maxFrame = welcome.MaxFrameBytes
	}
	return time.Duration(within(welcome.HeartbeatMs, 50, 300_000)) * time.Millisecond, nil
}

func within(value, least, most int) int {
	if value < least {
		return least
	}
	if value > most {
		return most
	}
	return value
}

func (a *agent) register() {
	declared := []object{}
	for _, id := range a.order {
		one := a.tools[id]
		declared = append(declared, object{
			"tool_id": id, "name": one.name, "description": one.description,
			"input_schema": one.inputSchema, "capabilities": one.capabilities, "tags": one.tags,
			// They only read: without this word a human is asked about each call.
			"side_effects": false,
		})
	}
	a.send("agent.tools.register", object{"tools": declared}, envelope{})
}

// send reports whether the message fitted into a frame.
func (a *agent) send(kind string, payload any, extras envelope) bool {
	body, err := json.Marshal(payload)
	if err != nil {
		return false
	}
	extras.V, extras.Type, extras.ID, extras.Payload = 1, kind, newID(), body
	extras.Ts = now()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(extras) != nil || text.Len()-1 > a.maxFrame {
		return false
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(text.Len()-1))
	frame = append(frame, text.Bytes()[:text.Len()-1]...)
	a.writing.Lock()
	defer a.writing.Unlock()
	a.conn.Write(frame) // The reader sees the end of the connection.
	return true
}

func (a *agent) receive() (envelope, error) {
	var message envelope
	var length uint32
	if err := binary.Read(a.conn, binary.BigEndian, &length); err != nil {
		return message, err
	}
	if length == 0 || int64(length) > int64(a.maxFrame) {
		return message, errors.New("frame")
	}
	body := make([]byte, length)
	if _, err := io.ReadFull(a.conn, body); err != nil {
		return message, err
	}
	return message, json.Unmarshal(body, &message)
}

func (a *agent) take(m envelope) {
	if m.V != 1 || m.ID == "" || !bytes.HasPrefix(m.Payload, []byte("{")) {
		return
	}
	switch m.Type {
	case "core.tool.call":
		a.begin(m)
	case "core.tool.cancel":
		a.cancelCall(m)
	case "core.ping":
		a.send("agent.pong", object{}, reply(m))
	case "core.goodbye":
		// Noted here: Core may close before the drain has begun.
		a.stopCalls()
		go a.drain()
	case "core.welcome", "core.tools.registered", "core.tools.unregistered", "core.error":
	default:
		if m.RequestID != "" && m.InReplyTo == "" {
			a.refuse(m, "protocol.unknown_type", "The type of the message is not known.")
		}
	}
}

func failure(code, message string, retryable bool) object {
	return object{"code": code, "message": message, "retryable": retryable, "where": "agent.runtime"}
}

func (a *agent) refuse(m envelope, code, message string) {
	extras := reply(m)
	extras.Error = failure(code, message, false)
	a.send("agent.error", object{}, extras)
}

type callPayload struct {
	CallID    string          `json:"call_id"`
	ToolID    string          `json:"tool_id"`
	Input     json.RawMessage `json:"input"`
	TimeoutMs float64         `json:"timeout_ms"`
}

func (a *agent) begin(m envelope) {
	var payload callPayload
	if json.Unmarshal(m.Payload, &payload) != nil || payload.CallID == "" {
		a.refuse(m, "protocol.invalid_message", "The message is not valid.")
		return
	}
	a.mutex.Lock()
	_, running := a.calls[payload.CallID]
	if running || a.ended[payload.CallID] {
		a.mutex.Unlock()
		a.refuse(m, "protocol.unexpected_message", "The message is not expected now.")
		return
	}
	one, known := a.tools[payload.ToolID]
	ctx, cancel := context.WithCancel(context.Background())
	c := &call{id: payload.CallID, echo: echoOf(m), cancel: cancel}
	var refusal object
	switch {
	case a.draining:
		refusal = failure("protocol.draining", "The session takes no new calls.", true)
	case !known:
		refusal = failure("tool.not_found", "There is no such tool.", false)
	case len(a.calls) >= maxInflight:
		refusal = failure("tool.overloaded", "More calls wait than permitted.", true)
	default:
		a.calls[c.id] = c
		a.idle.Add(1)
	}
	a.mutex.Unlock()
	if refusal != nil {
		a.finish(c, now(), object{"status": "failed", "error": refusal})
		return
	}
	go a.perform(ctx, c, one, payload)
}

func (a *agent) perform(ctx context.Context, c *call, one tool, payload callPayload) {
	defer a.idle.Done()
	started := now()
	if payload.TimeoutMs > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, time.Duration(payload.TimeoutMs)*time.Millisecond)
		defer stop()
	}
	type end struct {
		output any
		err    error
	}
	done := make(chan end, 1)
	s := &stream{agent: a, call: c}
	go func() {
		e := end{err: errors.New("panic")}
		// One tool that panics is no end of the agent.
		defer func() { recover(); done <- e }()
		e.output, e.err = one.run(ctx, payload.Input, s)
	}()
	var e end
	select {
	case e = <-done:
	case <-ctx.Done():
		// A tool that does not hear its context is left behind.
		select {
		case e = <-done:
		case <-time.After(cancelWait):
			e.err = ctx.Err()
		}
	}
	s.close()
	out := outcome(ctx, e.output, e.err)
	c.cancel()
	a.finish(c, started, out)
}

func outcome(ctx context.Context, output any, err error) object {
	var known *toolError
	switch {
	case err == nil:
		body, err := json.Marshal(output)
		if err != nil || !bytes.HasPrefix(body, []byte("{")) {
			return object{"status": "failed", "error": failure("tool.invalid_output", "The output cannot be written as a JSON object.", false)}
		}
		return object{"status": "succeeded", "output": json.RawMessage(body)}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return object{"status": "failed", "error": failure("tool.timeout", "The call took longer than permitted.", true)}
	case ctx.Err() != nil:
		return object{"status": "canceled", "error": failure("tool.canceled", "The call was canceled.", false)}
	case errors.As(err, &known):
		return object{"status": "failed", "error": failure(known.code, known.message, false)}
	default:
		return object{"status": "failed", "error": failure("tool.failed", "The tool failed.", false)}
	}
}

func (a *agent) finish(c *call, started string, out object) {
	a.mutex.Lock()
	delete(a.calls, c.id)
	a.ended[c.id] = true
	a.endOrder = append(a.endOrder, c.id)
	if len(a.endOrder) > rememberedCalls {
		delete(a.ended, a.endOrder[0])
		a.endOrder = a.endOrder[1:]
	}
	a.mutex.Unlock()
	out["call_id"], out["started_at"], out["finished_at"] = c.id, started, now()
	if !a.send("agent.tool.result", out, c.echo) {
		delete(out, "output")
		out["status"] = "failed"
		out["error"] = failure("tool.output_too_large", "The output is larger than permitted.", false)
		a.send("agent.tool.result", out, c.echo)
	}
}

func (a *agent) cancelCall(m envelope) {
	var payload callPayload
	json.Unmarshal(m.Payload, &payload)
	a.mutex.Lock()
	c := a.calls[payload.CallID]
	a.mutex.Unlock()
	echo := echoOf(m)
	if c != nil {
		echo = c.echo
	}
	a.send("agent.tool.cancel_ack", object{"call_id": payload.CallID, "accepted": c != nil}, echo)
	if c != nil {
		c.cancel()
	}
}

func (a *agent) heartbeats(interval time.Duration) {
	for range time.Tick(interval) {
		a.mutex.Lock()
		inflight := len(a.calls)
		a.mutex.Unlock()
		a.send("agent.heartbeat", object{
			"session_id": a.sessionID, "uptime_ms": time.Since(a.started).Milliseconds(),
			"inflight_calls": inflight, "status": "ok",
		}, envelope{})
	}
}

func (a *agent) stopCalls() {
	a.mutex.Lock()
	a.draining = true
	a.mutex.Unlock()
}

// drain lets the calls in flight end, behind stopCalls, and closes.
func (a *agent) drain() {
	empty := make(chan struct{})
	go func() { a.idle.Wait(); close(empty) }()
	select {
	case <-empty:
	case <-time.After(drainWait):
		a.mutex.Lock()
		for _, c := range a.calls {
			c.cancel()
		}
		a.mutex.Unlock()
		select {
		case <-empty:
		case <-time.After(cancelWait + time.Second):
		}
	}
	a.conn.Close()
}

// stream is the bounded output of one call (seed 004 §4.3.2).
type stream struct {
	agent  *agent
	call   *call
	mutex  sync.Mutex
	seq    int
	closed bool
}

func (s *stream) partial(json object) { s.write("partial_result", object{"json": json}) }

func (s *stream) write(channel string, data object) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.closed || s.seq >= maxStreamMessages {
		return
	}
	payload := object{"call_id": s.call.id, "seq": s.seq + 1, "channel": channel, "data": data}
	if s.agent.send("agent.tool.stream", payload, s.call.echo) {
		s.seq++
	}
}

func (s *stream) close() {
	s.mutex.Lock()
	s.closed = true
	s.mutex.Unlock()
}

func now() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
