// src/opensentience/session/session.ts: every state's reaction to every input, then the rules of registration, envelopes and
// health (seed 004 §3 to §6), with no clock and no socket.
import { describe, expect, it } from 'vitest';
import type { Effect } from '../../../src/opensentience/session/effects.ts';
import type { DeclaredTool } from '../../../src/opensentience/messages.ts';
import type { ProtocolLimits } from '../../../src/opensentience/limits.ts';
import { readMessage, type MessageFault } from '../../../src/opensentience/session/read-message.ts';
import { MAX_FAULTY_MESSAGES } from '../../../src/opensentience/session/open.ts';
import {
  Session,
  type InputName,
  type SessionInput,
  type SessionState,
} from '../../../src/opensentience/session/session.ts';
import {
  AGENT,
  callOf,
  CANARY,
  helloOf,
  message,
  rulesOf,
  toolOf,
} from '../../support/opensentience/wire.ts';

const T0 = 1_000_000;
const TOOL = `${AGENT}/echo`;

function faultOf(value: object): MessageFault {
  const read = readMessage({ ...value });
  if (read.ok) throw new Error('the message is valid');
  return read.fault;
}

/** One example of each input; `tick` comes when nothing is due. */
const INPUTS: { readonly [Name in InputName]: Extract<SessionInput, { name: Name }>['of'] } = {
  'agent.hello': helloOf(),
  'agent.tools.register': message('agent.tools.register', { tools: [toolOf('more')] }),
  'agent.tools.unregister': message('agent.tools.unregister', { tool_ids: [TOOL] }),
  'agent.tool.stream': message('agent.tool.stream', {
    call_id: 'x',
    seq: 1,
    channel: 'log',
    data: { text: 'a' },
  }),
  'agent.tool.result': message('agent.tool.result', { call_id: 'x', status: 'succeeded' }),
  'agent.tool.cancel_ack': message('agent.tool.cancel_ack', { call_id: 'x', accepted: true }),
  'agent.heartbeat': message('agent.heartbeat', {
    session_id: 'session-1',
    uptime_ms: 1,
    inflight_calls: 0,
    status: 'degraded',
  }),
  'agent.pong': message('agent.pong', {}),
  'agent.goodbye': message('agent.goodbye', {}),
  'agent.error': message('agent.error', {}),
  invalid: faultOf({ ...message('agent.heartbeat', {} as never) }),
  'unknown-type': faultOf({ ...message('agent.pong', {}), type: 'agent.dance', request_id: 'r' }),
  'frame-fault': { fault: 'not-json' },
  admitted: { sessionId: 'session-2', admission: { ok: true, attached: false, pid: 7 } },
  refused: { code: 'protocol.unauthorized' },
  call: { callId: 'call-9', messageId: 'message-9', request: callOf(TOOL) },
  cancel: { callId: 'call-1' },
  tick: {},
  drain: { reason: 'core.stopping', deadlineMs: 1000 },
  close: { reason: 'operator' },
  ended: {},
};

function said(effect: Effect): string {
  switch (effect.kind) {
    case 'send':
      return `send ${effect.message.type}${effect.message.error ? ` !${effect.message.error.code}` : ''}`;
    case 'audit':
      return `audit ${effect.what}`;
    case 'changed':
      return `changed ${effect.what}`;
    case 'close':
      return `close ${effect.reason}`;
    case 'settle':
      return `settle ${effect.callId} ${effect.outcome.ok ? 'ok' : effect.outcome.code}`;
    case 'check':
    case 'opened':
    case 'progress':
      return effect.kind;
  }
}

/** A session in the state; `ready` and `draining` have one tool and one call in flight, `call-1`. */
function sessionIn(state: SessionState, limits: Partial<ProtocolLimits> = {}): Session {
  const session = new Session(rulesOf(limits), 'unix', T0);
  const give = (...inputs: SessionInput[]): void => {
    for (const input of inputs) session.step(input, T0);
  };
  if (state === 'connected') return session;
  give({ name: 'agent.hello', of: helloOf() });
  if (state === 'checking') return session;
  give(
    { name: 'admitted', of: { sessionId: 'session-1', admission: { ok: true, attached: true } } },
    {
      name: 'agent.tools.register',
      of: message('agent.tools.register', { tools: [toolOf('echo')] }),
    },
    { name: 'call', of: { callId: 'call-1', messageId: 'message-1', request: callOf(TOOL) } },
  );
  if (state === 'draining') give({ name: 'drain', of: { reason: 'test', deadlineMs: 60_000 } });
  if (state === 'closed') give({ name: 'close', of: { reason: 'test' } });
  return session;
}

type Expected = readonly [SessionState, ...string[]];
const EARLY: Expected = [
  'closed',
  'audit message.before_welcome',
  'send core.goodbye !protocol.unexpected_message',
  'audit connection.closed',
  'close protocol.unexpected_message',
];
const BAD_FRAME = ['audit frame.not_json', 'send core.goodbye !protocol.invalid_frame'];
const LOST = ['settle call-1 agent_unavailable', 'changed calls', 'audit session.closed'];
const early = {
  'agent.tools.register': EARLY,
  'agent.tools.unregister': EARLY,
  'agent.tool.stream': EARLY,
  'agent.tool.result': EARLY,
  'agent.tool.cancel_ack': EARLY,
  'agent.heartbeat': EARLY,
  'agent.pong': EARLY,
  'agent.goodbye': EARLY,
  'agent.error': EARLY,
  invalid: EARLY,
  'unknown-type': EARLY,
  'frame-fault': [
    'closed',
    ...BAD_FRAME,
    'audit connection.closed',
    'close protocol.invalid_frame',
  ],
  drain: ['closed', 'send core.goodbye', 'audit connection.closed', 'close core.stopping'],
  close: ['closed', 'send core.goodbye', 'audit connection.closed', 'close operator'],
  ended: ['closed', 'audit connection.closed', 'close ended'],
} as const;
const open = (state: SessionState) =>
  ({
    'agent.hello': [
      'closed',
      'audit session.second_hello',
      'send core.goodbye !protocol.unexpected_message',
      ...LOST,
      'close protocol.unexpected_message',
    ],
    'agent.tools.unregister': [
      state,
      'send core.tools.unregistered',
      'audit tools.unregistered',
      'changed tools',
    ],
    'agent.tool.stream': [state, 'audit call.unknown_stream'],
    'agent.tool.result': [state, 'audit call.unknown_result'],
    'agent.tool.cancel_ack': [state, 'audit call.unknown_cancel_ack'],
    'agent.heartbeat': [state, 'audit session.health', 'changed health'],
    'agent.pong': [state],
    'agent.error': [state, 'audit agent.error'],
    invalid: [state, 'audit message.invalid'],
    'unknown-type': [state, 'audit message.unknown_type', 'send core.error !protocol.unknown_type'],
    'frame-fault': ['closed', ...BAD_FRAME, ...LOST, 'close protocol.invalid_frame'],
    admitted: [state],
    refused: [state],
    cancel: [state, 'send core.tool.cancel', 'changed calls'],
    tick: [state],
    close: ['closed', 'send core.goodbye', ...LOST, 'close operator'],
    ended: ['closed', ...LOST, 'close ended'],
  }) as const satisfies Partial<Record<InputName, Expected>>;

const TABLE: Record<SessionState, Record<InputName, Expected>> = {
  connected: {
    ...early,
    'agent.hello': ['checking', 'check'],
    admitted: ['connected'],
    refused: ['connected'],
    call: ['connected', 'settle call-9 agent_unavailable'],
    cancel: ['connected'],
    tick: ['connected'],
  },
  checking: {
    ...early,
    'agent.hello': EARLY,
    admitted: ['ready', 'send core.welcome', 'audit session.opened', 'opened'],
    refused: [
      'closed',
      'audit hello.refused',
      'send core.welcome !protocol.unauthorized',
      'audit connection.closed',
      'close protocol.unauthorized',
    ],
    call: ['checking', 'settle call-9 agent_unavailable'],
    cancel: ['checking'],
    tick: ['checking'],
  },
  ready: {
    ...open('ready'),
    'agent.tools.register': [
      'ready',
      'send core.tools.registered',
      'audit tools.registered',
      'changed tools',
    ],
    'agent.goodbye': ['draining', 'audit session.goodbye', 'changed state', 'send core.goodbye'],
    call: ['ready', 'send core.tool.call', 'changed calls'],
    drain: ['draining', 'audit session.goodbye', 'changed state', 'send core.goodbye'],
  },
  draining: {
    ...open('draining'),
    'agent.tools.register': [
      'draining',
      'audit tools.registered_too_late',
      'send core.error !protocol.draining',
    ],
    'agent.goodbye': ['draining'],
    call: ['draining', 'settle call-9 agent_unavailable'],
    drain: ['draining'],
  },
  closed: {
    'agent.hello': ['closed'],
    'agent.tools.register': ['closed'],
    'agent.tools.unregister': ['closed'],
    'agent.tool.stream': ['closed'],
    'agent.tool.result': ['closed'],
    'agent.tool.cancel_ack': ['closed'],
    'agent.heartbeat': ['closed'],
    'agent.pong': ['closed'],
    'agent.goodbye': ['closed'],
    'agent.error': ['closed'],
    invalid: ['closed'],
    'unknown-type': ['closed'],
    'frame-fault': ['closed'],
    admitted: ['closed'],
    refused: ['closed'],
    call: ['closed', 'settle call-9 agent_unavailable'],
    cancel: ['closed'],
    tick: ['closed'],
    drain: ['closed'],
    close: ['closed'],
    ended: ['closed'],
  },
};

describe('every state has a reaction to every input', () => {
  for (const state of Object.keys(TABLE) as SessionState[])
    for (const name of Object.keys(TABLE[state]) as InputName[])
      it(`given ${state}, when ${name}`, () => {
        const session = sessionIn(state);
        const effects = session.step({ name, of: INPUTS[name] } as SessionInput, T0);
        expect([session.state, ...effects.map(said)]).toEqual(TABLE[state][name]);
      });
});

describe('time', () => {
  const at = (session: Session, ms: number): string[] =>
    session.step({ name: 'tick', of: {} }, T0 + ms).map(said);
  it('a connection that says no hello in time is closed', () => {
    const session = sessionIn('connected', { helloMs: 100 });
    expect(at(session, 100)).toEqual([]);
    expect(at(session, 101)).toContain('audit hello.too_slow');
    expect(session.state).toBe('closed');
  });
  it('a gate that does not answer in time is not waited for', () => {
    const session = sessionIn('checking', { helloMs: 100 });
    expect(at(session, 101)).toContain('send core.welcome !protocol.too_slow');
    expect(session.step({ name: 'admitted', of: INPUTS.admitted }, T0)).toEqual([]);
  });
  it('seed 004 §4.5.1: late heartbeats are asked for, missed ones end routing, lost ones the session', () => {
    const session = sessionIn('ready', {
      heartbeatIntervalMs: 1000,
      missedHeartbeats: 2,
      lostHeartbeats: 4,
    });
    expect(at(session, 1500)).toEqual([]);
    expect(at(session, 1501)).toEqual(['send core.ping']);
    expect(at(session, 2000)).toEqual([]);
    expect([session.routable, session.health]).toEqual([true, 'ok']);
    expect(at(session, 2100)).toEqual(['audit session.health', 'changed health']);
    expect([session.routable, session.health]).toEqual([false, 'silent']);
    expect(at(session, 2600)).toEqual(['send core.ping']);
    expect(at(session, 4001)).toEqual([
      'audit session.lost',
      'send core.goodbye !protocol.too_slow',
      ...LOST,
      'close protocol.too_slow',
    ]);
  });
  it('seed 004 §4.5.2: agent.pong is a sign of life: who answers core.ping is neither silent nor lost', () => {
    const limits = { heartbeatIntervalMs: 1000, missedHeartbeats: 2, lostHeartbeats: 4 };
    const session = sessionIn('ready', limits);
    const pong = (ms: number) =>
      session.step({ name: 'agent.pong', of: INPUTS['agent.pong'] }, T0 + ms).map(said);
    for (let ms = 1600; ms < 20_000; ms += 1600) {
      expect(at(session, ms)).toEqual(['send core.ping']);
      expect(pong(ms)).toEqual([]);
      expect(session.routable).toBe(true);
    }
    at(session, 22_000);
    expect([session.routable, session.health]).toEqual([false, 'silent']);
    expect(pong(22_001)).toEqual(['audit session.health', 'changed health']);
    expect(session.routable).toBe(true);
    // It says nothing of health.
    expect(session.view({ bytesIn: 0, bytesOut: 0 })).not.toHaveProperty('lastHeartbeatAtMs');
  });
  it('a heartbeat makes a silent session routable again; one of another session does not', () => {
    const session = sessionIn('ready', {
      heartbeatIntervalMs: 1000,
      missedHeartbeats: 2,
      lostHeartbeats: 9,
    });
    at(session, 2100);
    const beat = (session_id: string) =>
      session.step(
        {
          name: 'agent.heartbeat',
          of: message('agent.heartbeat', {
            session_id,
            uptime_ms: 1,
            inflight_calls: 0,
            status: 'ok',
          }),
        },
        T0 + 2200,
      );
    expect(beat('other').map(said)).toEqual(['audit heartbeat.wrong_session']);
    expect(session.routable).toBe(false);
    expect(beat('session-1').map(said)).toEqual(['audit session.health', 'changed health']);
    expect(session.routable).toBe(true);
  });
  it('an agent that calls itself unhealthy gets no calls; a degraded one does', () => {
    const routable = (['ok', 'degraded', 'unhealthy'] as const).map((status) => {
      const session = sessionIn('ready');
      const payload = { session_id: 'session-1', uptime_ms: 1, inflight_calls: 0, status };
      session.step({ name: 'agent.heartbeat', of: message('agent.heartbeat', payload) }, T0);
      return session.routable;
    });
    expect(routable).toEqual([true, true, false]);
  });
  it('too many faulty messages end the session', () => {
    const session = sessionIn('ready');
    const input = { name: 'unknown-type', of: INPUTS['unknown-type'] } as const;
    for (let n = 0; n < MAX_FAULTY_MESSAGES; n += 1) session.step(input, T0);
    expect(session.state).toBe('ready');
    expect(session.step(input, T0).map(said)).toContain('close protocol.flood');
  });
});

describe('seed 004 §4.2: registration', () => {
  const register = (session: Session, tools: readonly DeclaredTool[], replace?: boolean) => {
    const of = message(
      'agent.tools.register',
      { tools, ...(replace && { replace }) },
      { request_id: 'q' },
    );
    const [first] = session.step({ name: 'agent.tools.register', of }, T0);
    if (first?.kind !== 'send' || first.message.type !== 'core.tools.registered')
      throw new Error('no answer');
    expect(first.message).toMatchObject({ in_reply_to: of.id, request_id: 'q' });
    const { registered, rejected = [] } = first.message.payload;
    return { registered, rejected: rejected.map(({ tool_id, error }) => [tool_id, error.code]) };
  };
  const refusals: readonly [string, DeclaredTool, string][] = [
    ['an id of another agent', { ...toolOf('a'), tool_id: 'org.other/a' }, 'tool.invalid_id'],
    ['an id without an agent', { ...toolOf('a'), tool_id: 'a' }, 'tool.invalid_id'],
    ['a name that is not the id’s', { ...toolOf('a'), name: 'b' }, 'tool.invalid_id'],
    ['a name with a slash', toolOf('a/b'), 'tool.invalid_id'],
    ['an empty name', toolOf(''), 'protocol.invalid_message'],
    ['a name that holds a secret', toolOf(CANARY), 'tool.invalid_id'],
    [
      'no description',
      { ...toolOf('a'), description: undefined as never },
      'protocol.invalid_message',
    ],
    ['no schema', { ...toolOf('a'), input_schema: undefined as never }, 'protocol.invalid_message'],
    [
      'a schema that is none',
      toolOf('a', { input_schema: { type: 'nothing' } }),
      'tool.invalid_schema',
    ],
    [
      'a schema that refers outside',
      toolOf('a', { input_schema: { $ref: 'http://x/y' } }),
      'tool.invalid_schema',
    ],
    ['a bad output schema', toolOf('a', { output_schema: { type: 7 } }), 'tool.invalid_schema'],
    [
      'a declaration that is too large',
      toolOf('a', { description: 'x'.repeat(70_000) }),
      'tool.invalid_schema',
    ],
    [
      'a schema that takes too much work to be made ready',
      toolOf('a', {
        input_schema: { anyOf: Array.from({ length: 1_400 }, (_, n) => ({ const: n })) },
      }),
      'tool.invalid_schema',
    ],
    ['a name that is taken', toolOf('echo'), 'tool.duplicate_name'],
  ];
  for (const [what, tool, code] of refusals)
    it(`${what} is refused with ${code}, and the good one beside it is taken`, () => {
      const session = sessionIn('ready');
      const { registered, rejected } = register(session, [tool, toolOf('good')]);
      expect(registered).toEqual([`${AGENT}/good`]);
      expect(rejected.map(([, found]) => found)).toEqual([code]);
      expect(JSON.stringify(rejected)).not.toContain(CANARY);
    });
  it('of two declarations of one name in a message the first holds', () => {
    const session = sessionIn('ready');
    register(session, [
      toolOf('a', { description: 'first' }),
      toolOf('a', { description: 'second' }),
    ]);
    expect(session.tools?.get(`${AGENT}/a`)?.declaration.description).toBe('first');
  });
  it('more tools than permitted are refused', () => {
    const session = sessionIn('ready', { maxTools: 2 });
    expect(register(session, [toolOf('a'), toolOf('b')])).toEqual({
      registered: [`${AGENT}/a`],
      rejected: [[`${AGENT}/b`, 'tool.too_many']],
    });
  });
  it('an agent that declares large schemas without end is told to wait', () => {
    const session = sessionIn('ready');
    const anyOf = (n: number) => Array.from({ length: 300 }, (_, at) => ({ const: `${n}-${at}` }));
    const tools = Array.from({ length: 20 }, (_, n) =>
      toolOf(`t${n}`, { input_schema: { anyOf: anyOf(n) } }),
    );
    const { registered, rejected } = register(session, tools);
    expect(registered).toHaveLength(14);
    expect(new Set(rejected.map(([, code]) => code))).toEqual(new Set(['protocol.flood']));
  });
  it('and so is one whose patterns take long to make ready', () => {
    const session = sessionIn('ready');
    const allOf = Array.from({ length: 40 }, (_, at) => ({ pattern: `a{1000}b${at}` }));
    const tools = Array.from({ length: 10 }, (_, n) =>
      toolOf(`t${n}`, { input_schema: { title: String(n), allOf } }),
    );
    const { registered, rejected } = register(session, tools);
    expect(registered).toHaveLength(2);
    expect(new Set(rejected.map(([, code]) => code))).toEqual(new Set(['protocol.flood']));
  });
  it('replace forgets what was declared before; without it tools are added', () => {
    const session = sessionIn('ready');
    register(session, [toolOf('a')]);
    expect(session.tools?.ids()).toEqual([TOOL, `${AGENT}/a`]);
    register(session, [toolOf('b')], true);
    expect(session.tools?.ids()).toEqual([`${AGENT}/b`]);
  });
  it('secrets in descriptions and schemas are taken out', () => {
    const session = sessionIn('ready');
    register(session, [
      toolOf('a', { description: CANARY, input_schema: { description: CANARY } }),
    ]);
    expect(JSON.stringify(session.tools?.declarations())).not.toContain(CANARY);
  });
});

describe('seed 004 §3: the envelope', () => {
  const good = message(
    'agent.tools.unregister',
    { tool_ids: [] },
    { request_id: 'r', correlation_id: 'c', causation_id: 'e' },
  );
  const faults: readonly [string, object, string][] = [
    ['no v', { v: undefined }, ''],
    ['a text as v', { v: '1' }, '/v'],
    ['another version after the hello', { v: 2 }, '/v'],
    ['no id', { id: undefined }, ''],
    ['an empty id', { id: '' }, '/id'],
    ['an id that is too long', { id: 'x'.repeat(257) }, '/id'],
    ['no ts', { ts: undefined }, ''],
    ['a ts that is no RFC 3339', { ts: '16.1.2026' }, '/ts'],
    ['a ts without an offset', { ts: '2026-01-16T12:00:00' }, '/ts'],
    ['no payload', { payload: undefined }, ''],
    ['a list as payload', { payload: [] }, '/payload'],
    ['a number as request_id', { request_id: 1 }, '/request_id'],
    ['an actor of no type', { actor: { type: 'dog', id: 'x' } }, '/actor/type'],
    ['an error without code', { error: { message: 'x' } }, '/error'],
    ['a payload of another shape', { payload: { tool_ids: 'all' } }, '/payload/tool_ids'],
  ];
  for (const [what, more, pointer] of faults)
    it(`${what} is a fault at "${pointer}"`, () => {
      const value = JSON.parse(JSON.stringify({ ...good, ...more })) as Record<string, unknown>;
      const fault = faultOf(value);
      expect([fault.code, fault.pointer, fault.type]).toEqual([
        'protocol.invalid_message',
        pointer,
        'agent.tools.unregister',
      ]);
    });
  it('§6.2: unknown fields of envelope and payload are ignored', () => {
    const value = { ...good, later: 1, payload: { tool_ids: [], later: { deep: true } } };
    expect(readMessage(value)).toMatchObject({ ok: true });
  });
  it('§6.2: a message of unknown type is answered with its ids when it expects a reply', () => {
    const fault = faultOf({ ...good, type: 'agent.later' });
    expect(fault).toMatchObject({
      code: 'protocol.unknown_type',
      expectsReply: true,
      reply: {
        in_reply_to: good.id,
        request_id: 'r',
        correlation_id: 'c',
        causation_id: 'e',
      },
    });
    expect(faultOf({ ...good, type: 'agent.later', in_reply_to: 'm' }).expectsReply).toBe(false);
    expect(faultOf({ ...good, type: 'agent.later', request_id: undefined }).expectsReply).toBe(
      false,
    );
    expect(faultOf({ ...good, type: 'core.tool.call' }).code).toBe('protocol.unknown_type');
    expect(faultOf({ ...good, type: 'toString' }).code).toBe('protocol.unknown_type');
  });
  it('§6.1: a hello of another version is known by its versions, whatever else it holds', () => {
    const later = {
      ...helloOf(),
      v: 3,
      payload: { protocol: { supported_versions: [3] }, ticket: 'x' },
    };
    expect(faultOf(later)).toMatchObject({
      code: 'protocol.unsupported_version',
      type: 'agent.hello',
    });
    const both = helloOf();
    expect(
      readMessage({
        ...both,
        v: 2,
        payload: { ...both.payload, protocol: { supported_versions: [2, 1], capabilities: [] } },
      }).ok,
    ).toBe(true);
  });
  it('§8: the seed’s own examples are read', () => {
    const hello = {
      v: 1,
      type: 'agent.hello',
      id: 'f3a1d2b0-3c2f-4f6a-9f3f-3f5d0f8f9b2a',
      ts: '2026-01-16T12:00:00Z',
      payload: {
        session_token: '<redacted>',
        agent_id: 'com.graphonomous.core',
        agent_version: '1.0.0',
        protocol: { supported_versions: [1], capabilities: ['tools', 'streaming', 'cancellation'] },
      },
    };
    const result = {
      v: 1,
      type: 'agent.tool.result',
      id: 'd2c1b0a9-8f7e-6d5c-4b3a-291817161514',
      ts: '2026-01-16T12:00:02Z',
      request_id: '8d0f8a5a-2f0a-4b76-9a9c-4c2b7b9a0c1d',
      correlation_id: 'chat_session:abc123',
      payload: {
        call_id: '9b1a2c3d-4e5f-6789-abcd-ef0123456789',
        status: 'succeeded',
        output: { query_id: 'q_123', results: [], warnings: [] },
        started_at: '2026-01-16T12:00:01Z',
        finished_at: '2026-01-16T12:00:02Z',
      },
    };
    expect([readMessage(hello).ok, readMessage(result).ok]).toEqual([true, true]);
  });
});
