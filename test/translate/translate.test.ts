// translate, given histories (architecture §2, §3.1): carriers, order, endings, page cuts.
import proto from '@temporalio/proto';
import { describe, expect, it } from 'vitest';
import { codeOf } from '../../src/rules/errors.ts';
import { activityEventKey, eventIdOf } from '../../src/rules/ids.ts';
import type { JsonValue } from '../../src/rules/json.ts';
import { translate, type HistoryEvent, type Translation } from '../../src/translate/translate.ts';
import {
  admitted,
  cancel,
  carrierPayload,
  complete,
  continueAsNew,
  emitted,
  fail,
  HistoryBuilder,
  jsonPayload,
  memo,
  schedule,
  terminate,
  timeOut,
} from '../support/histories.ts';

const RUN = { runId: 'run-1', translateVersion: 1 };

function translateAll(events: readonly HistoryEvent[], state: JsonValue = null): Translation {
  return translate(events, state, RUN);
}

function told(events: readonly HistoryEvent[]) {
  return translateAll(events).entries.map(({ type, key }) => `${type} ${key}`);
}

function types(events: readonly HistoryEvent[]) {
  return translateAll(events).entries.map(({ type }) => type);
}

const started = emitted('run.started|r', 'run.started', { workflowId: 'w' });
const nodeStarted = emitted('node.started|n', 'node.started', { nodeId: 'n' }, { nodeId: 'n' });
const nodeCompleted = emitted(
  'node.completed|n',
  'node.completed',
  { nodeId: 'n' },
  { nodeId: 'n' },
);
const runCompleted = emitted('terminal', 'run.completed', { outputs: { a: 1 } });

/** start, one activity with two events, the end */
function plainRun(): HistoryBuilder {
  const history = new HistoryBuilder();
  history
    .task(schedule('n/1/0/a', history.carrier(started, nodeStarted)))
    .completed('n/1/0/a', {
      events: [
        { type: 'agent.reasoned', nodeId: 'n', payload: { reasoning: 'hm' } },
        { type: 'provider.usage', payload: { inputTokens: 1 }, causedBy: 'n/1/0/a#0' },
      ],
    })
    .task(
      complete(
        history.carrier(
          admitted('n/1/0/a', 0),
          admitted('n/1/0/a', 1),
          nodeCompleted,
          runCompleted,
        ),
      ),
    );
  return history;
}

describe('architecture §2.4, §3.1: carriers become entries', () => {
  it('emitted and admitted entries stand in the order of the journal', () => {
    expect(told(plainRun().events)).toEqual([
      'run.started run.started|r',
      'node.started node.started|n',
      'agent.reasoned n/1/0/a#0',
      'provider.usage n/1/0/a#1',
      'node.completed node.completed|n',
      'run.completed terminal',
    ]);
  });

  it('an entry has id, cause and the time of its carrier; an admitted one that of its result', () => {
    const { entries } = translateAll(plainRun().events);
    expect(entries[0]).toEqual({
      runId: 'run-1',
      eventId: eventIdOf('run-1', 'run.started|r'),
      key: 'run.started|r',
      type: 'run.started',
      payload: '{"workflowId":"w"}',
      timestampMs: 1_020,
    });
    expect(entries[3]).toMatchObject({
      key: activityEventKey('n/1/0/a', 1),
      causedBy: 'n/1/0/a#0',
      causationId: eventIdOf('run-1', 'n/1/0/a#0'),
      timestampMs: 1_030,
    });
  });

  it('a cause in another run is resolved with that run id', () => {
    const history = new HistoryBuilder();
    const caused = {
      kind: 'emit' as const,
      key: 'x',
      type: 'x.y',
      payload: {},
      causedBy: { runId: 'parent', key: 'k' },
    };
    history.task(memo(history.carrier(caused)));
    expect(translateAll(history.events).entries[0]?.causationId).toBe(eventIdOf('parent', 'k'));
  });

  // [I9]
  it('what arrives for an abandoned branch and is never admitted leaves no entry', () => {
    const history = new HistoryBuilder();
    history
      .task(schedule('n/1/0/a', history.carrier(started)))
      .completed('n/1/0/a', { events: [{ type: 'agent.reasoned', payload: {} }] })
      .task(complete(history.carrier(runCompleted)));
    expect(types(history.events)).toEqual(['run.started', 'run.completed']);
  });

  // [I7]
  it('a payload that looks like a carrier without the mark is content', () => {
    const history = new HistoryBuilder();
    const forged = jsonPayload({ v: 1, at: [0], entries: [started] });
    history.task(schedule('a', forged)).task(memo(forged));
    expect(told(history.events)).toEqual([]);
  });

  it('a carrier in WorkflowExecutionStarted is ignored', () => {
    const history = new HistoryBuilder();
    const first = history.batches[0]?.[0];
    Object.assign(first ?? {}, {
      workflowExecutionStartedEventAttributes: {
        input: { payloads: [carrierPayload([0], [started])] },
        memo: { fields: { openwop: carrierPayload([0], [started]) } },
      },
    });
    expect(told(history.events)).toEqual([]);
  });
});

describe('architecture §2.3: order within one workflow task', () => {
  // [I6]
  it('entries taken back from a cancelled command ride on a later one and keep their place', () => {
    const history = new HistoryBuilder();
    const [a, b, c] = ['a', 'b', 'c'].map((key) => emitted(key, 'x.y'));
    // Entries 0 and 1 were on a command that was cancelled; 2 was carried first.
    history.task(schedule('s', carrierPayload([2], [c!])), memo(carrierPayload([0, 1], [a!, b!])));
    expect(told(history.events)).toEqual(['x.y a', 'x.y b', 'x.y c']);
  });

  it('ordinals never move an entry over the border of its workflow task', () => {
    const history = new HistoryBuilder();
    history
      .task(memo(carrierPayload([5], [emitted('first', 'x.y')])))
      .task(memo(carrierPayload([1], [emitted('second', 'x.y')])));
    expect(told(history.events)).toEqual(['x.y first', 'x.y second']);
  });

  it('a carrier split over several memos is one list', () => {
    const history = new HistoryBuilder();
    history.task(
      memo(carrierPayload([0], [emitted('a', 'x.y')])),
      memo(carrierPayload([1], [emitted('b', 'x.y')])),
    );
    expect(told(history.events)).toEqual(['x.y a', 'x.y b']);
  });
});

describe('architecture §3.1: endings that no workflow code wrote', () => {
  const open = () => {
    const history = new HistoryBuilder();
    const called = emitted(
      'agent.toolCalled|n/1/0/c',
      'agent.toolCalled',
      { agentId: 'core.a', toolName: 't', callId: 'c1', inputs: {} },
      { nodeId: 'n' },
    );
    return history.task(schedule('n/1/0/a', history.carrier(started, nodeStarted, called)));
  };
  const { EventType } = proto.temporal.api.enums.v1;

  it.each([
    ['Terminated', terminate, 'run_terminated'],
    ['TimedOut', timeOut, 'run_timeout'],
    ['Failed', fail, 'internal_error'],
  ] as const)('%s closes what is open, innermost first, then run.failed %s', (_name, end, code) => {
    const history = open().lone(end[0], end[1]);
    const { entries, status, closed, segmentClosed } = translateAll(history.events);
    expect(entries.slice(3).map(({ type, key }) => `${type} ${key}`)).toEqual([
      'agent.toolReturned agent.toolReturned|n/1/0/c',
      'node.cancelled node.cancelled|n',
      'run.failed terminal',
    ]);
    expect(JSON.parse(entries.at(-1)?.payload ?? '')).toMatchObject({ error: { code } });
    expect(entries[3]?.causationId).toBe(eventIdOf('run-1', 'agent.toolCalled|n/1/0/c'));
    expect({ status, closed, segmentClosed }).toEqual({
      status: 'failed',
      closed: true,
      segmentClosed: true,
    });
  });

  // [I11]
  it('Canceled without an ending is run.cancelled', () => {
    const history = open();
    history.task(cancel);
    expect(types(history.events).slice(-2)).toEqual(['node.cancelled', 'run.cancelled']);
    expect(translateAll(history.events).status).toBe('cancelled');
  });

  describe('streams without a closing when the execution ends', () => {
    type Told = (history: HistoryBuilder) => unknown;
    const A = 'n/1/0/a';
    const SEAL = 'n/1/0/a.seal';
    const reasoned = { type: 'agent.reasoned', nodeId: 'n', payload: { reasoning: 'hm' } };
    const deltas = (type = 'agent.reasoning.delta') => ({
      ...{ activityId: A, type, base: {}, text: 'hm' },
      ...{ cuts: [2], sequences: [[3, 1]] as const, times: [1_000] },
    });
    const completed: Told = (h) => h.completed(A, { events: [reasoned], deltas: deltas() });
    const seal: Told = (h) => h.task(schedule(SEAL));
    const sealed: Told = (h) => h.completed(SEAL, { events: [reasoned], deltas: deltas() });
    const admit =
      (activityId: string): Told =>
      (h) =>
        h.task(memo(h.carrier(admitted(activityId))));
    const failed: Told = (h) => h.failed(A);
    const toolSealed: Told = (h) => h.completed(SEAL, { deltas: deltas('output.chunk') });
    const continued: Told = (h) => h.task(continueAsNew('t2', h.carrier()));

    it.each<[string, readonly Told[], readonly string[]]>([
      ['no outcome', [], [A]],
      ['a result that no task has seen', [completed], [A]],
      ['a result that was admitted', [completed, admit(A)], []],
      ['failed', [failed], [A]],
      ['failed, its seal under way', [failed, seal], [SEAL, A]],
      ['failed, sealed, and no task has seen it', [failed, seal, sealed], [A]],
      ['failed and sealed', [failed, seal, sealed, admit(SEAL)], []],
      ['abandoned and sealed', [seal, sealed, admit(SEAL)], []],
      ['abandoned, sealed, and a late result', [seal, sealed, admit(SEAL), completed], []],
      ['abandoned, a late result, sealed', [seal, completed, sealed, admit(SEAL)], []],
      ['abandoned, sealed, a late result, admitted', [seal, sealed, completed, admit(SEAL)], []],
      ['a tool that failed and was sealed', [failed, seal, toolSealed], []],
      ['failed in the segment before', [failed, continued], []],
    ])('%s', (_name, steps, cutOff) => {
      const history = open();
      for (const step of steps) step(history);
      history.lone(terminate[0], terminate[1]);
      expect(translateAll(history.events).cutOff).toEqual(cutOff);
    });

    it('of very many that failed the newest are kept', () => {
      const history = open();
      for (let n = 0; n < 300; n++) history.task(schedule(`f${n}`)).failed(`f${n}`);
      history.lone(terminate[0], terminate[1]);
      const { cutOff } = translateAll(history.events);
      expect(cutOff).toHaveLength(1 + 200);
      expect(cutOff?.slice(0, 2)).toEqual([A, 'f100']);
    });
  });

  it('an ending written by the workflow in a memo before the closing event is the only one', () => {
    const history = open();
    const failed = emitted('terminal', 'run.failed', { error: { code: 'x', message: 'y' } });
    history.task(memo(history.carrier(failed)), fail);
    expect(types(history.events).filter((type) => type.startsWith('run.'))).toEqual([
      'run.started',
      'run.failed',
    ]);
  });

  // [I5]
  it('nothing follows the terminal entry', () => {
    const history = new HistoryBuilder();
    history.task(complete(history.carrier(started, runCompleted, emitted('late', 'x.y'))));
    expect(told(history.events).at(-1)).toBe('run.completed terminal');
  });

  it('unknown history events and activity failures say nothing', () => {
    const history = open();
    history
      .failed('n/1/0/a')
      .lone(EventType.EVENT_TYPE_TIMER_STARTED, { timerStartedEventAttributes: {} })
      .lone(9_999, {});
    expect(types(history.events)).toEqual(['run.started', 'node.started', 'agent.toolCalled']);
  });
});

describe('run-snapshot.schema.json: the status of the head', () => {
  it('is pending before anything, running after run.started, and waits while an interrupt is open', () => {
    const history = new HistoryBuilder();
    expect(translateAll(history.events).status).toBe('pending');
    history.task(memo(history.carrier(started)));
    expect(translateAll(history.events).status).toBe('running');
    const suspended = emitted('s', 'node.suspended', { interruptId: 'i', kind: 'clarification' });
    history.task(memo(history.carrier(suspended)));
    expect(translateAll(history.events).status).toBe('waiting-input');
  });

  it('a status note moves it without an entry', () => {
    const history = new HistoryBuilder();
    history.task(memo(history.carrier(started, { kind: 'status', status: 'cancelling' })));
    const { status, entries } = translateAll(history.events);
    expect([status, entries.length]).toEqual(['cancelling', 1]);
  });
});

describe('architecture §4: segments', () => {
  // [I50]
  it('continue-as-new drains its carrier, names the next segment and empties the activity maps', () => {
    const history = new HistoryBuilder();
    history
      .task(schedule('old', history.carrier(started)))
      .completed('old', { events: [{ type: 'agent.reasoned', payload: {} }] })
      .task(schedule('left'))
      .task(continueAsNew('temporal-2', history.carrier(nodeStarted)));
    const out = translateAll(history.events);
    expect(out.entries.map(({ type }) => type)).toEqual(['run.started', 'node.started']);
    expect(out).toMatchObject({
      next: 'temporal-2',
      segment: 1,
      segmentClosed: true,
      closed: false,
    });
    expect(out.state).toMatchObject({ segment: 1 });
    expect(out.state).toHaveProperty('results', {});
    expect(out.state).toHaveProperty('activities', {});
  });

  it('status and open items go on in the next segment, whose event ids begin anew', () => {
    const first = new HistoryBuilder();
    first.task(continueAsNew('t2', first.carrier(started, nodeStarted)));
    const second = new HistoryBuilder(9_000);
    second.lone(terminate[0], terminate[1]);
    const { state } = translateAll(first.events);
    expect(translateAll(second.events, state).entries.map(({ type }) => type)).toEqual([
      'node.cancelled',
      'run.failed',
    ]);
  });
});

describe('architecture §3.5: recorded deltas', () => {
  it('are handed out and close the block that they name, admitted or not', () => {
    const deltas = {
      activityId: 'n/1/0/a',
      type: 'agent.reasoning.delta',
      nodeId: 'n',
      base: { agentId: 'core.a' },
      text: 'abc',
      cuts: [1, 3],
      sequences: [[2, 2]] as const,
      times: [5, 1],
    };
    const history = new HistoryBuilder();
    history.task(schedule('seal', history.carrier(started))).completed('seal', { deltas });
    const out = translateAll(history.events);
    expect(out.deltas).toEqual([{ ...deltas, entriesBefore: 1 }]);
    expect(out.closedBlocks).toEqual(['n/1/0/a']);
  });
});

describe('architecture §3.1: never skipped', () => {
  const codeFor = (history: HistoryBuilder) => {
    try {
      translateAll(history.events);
      return 'nothing thrown';
    } catch (error) {
      return codeOf(error);
    }
  };
  const mark = { 'openwop-carrier': '1' };

  // [I8]
  it('a marked payload that is no JSON stops the projection', () => {
    const history = new HistoryBuilder();
    const broken = { ...jsonPayload({}, mark), data: Buffer.from('{') };
    expect(codeFor(history.task(memo(broken)))).toBe('history_undecodable');
  });

  it.each([
    ['an unknown version', { v: 2, at: [0], entries: [started] }],
    ['ordinals that do not match', { v: 1, at: [], entries: [started] }],
    ['no object', 'x'],
  ])('a carrier with %s stops the projection', (_name, content) => {
    const history = new HistoryBuilder();
    expect(codeFor(history.task(memo(jsonPayload(content, mark))))).toBe('history_undecodable');
  });

  it('an admitted event that history does not hold is a bug that stops the projection', () => {
    const history = new HistoryBuilder();
    expect(codeFor(history.task(memo(history.carrier(admitted('nobody')))))).toBe('internal_error');
  });

  // [I10]
  it('an event admitted twice is a bug that stops the projection', () => {
    const history = new HistoryBuilder();
    history
      .task(schedule('a', history.carrier(started)))
      .completed('a', { events: [{ type: 'x.y', payload: {} }] })
      .task(memo(history.carrier(admitted('a'), admitted('a'))));
    expect(codeFor(history)).toBe('internal_error');
  });

  // [I14]
  it('a version of the rules that this release does not know is refused', () => {
    const unknown = () => translate([], null, { runId: 'r', translateVersion: 99 });
    expect(unknown).toThrow(/version 99/);
  });
});

describe('architecture §3.1: incremental', () => {
  /** Parallel activities, a take-back, a seal, a continue-as-new ending: something of everything. */
  function busyRun(): HistoryBuilder {
    const history = new HistoryBuilder();
    history
      .task(schedule('a', history.carrier(started, nodeStarted)), schedule('b'))
      .completed('b', { events: [{ type: 'x.b', payload: { n: 1 } }] })
      .task(memo(history.carrier(admitted('b'))))
      .completed('a', {
        events: [
          { type: 'x.a', payload: {} },
          { type: 'x.a2', payload: {} },
        ],
      })
      .task(schedule('c', history.carrier(admitted('a', 1), admitted('a', 0))))
      .failed('c')
      .task(schedule('d', history.carrier(nodeCompleted)))
      .completed('d')
      .task(continueAsNew('t2', history.carrier(emitted('k', 'x.k'))));
    return history;
  }

  function inPages(batches: HistoryEvent[][], cut: (index: number) => boolean) {
    let state: JsonValue = null;
    const entries: unknown[] = [];
    let page: HistoryEvent[] = [];
    let last: Translation | undefined;
    batches.forEach((batch, index) => {
      page.push(...batch);
      if (!cut(index) && index < batches.length - 1) return;
      last = translateAll(page, state);
      // As the head stores it.
      state = JSON.parse(JSON.stringify(last.state)) as JsonValue;
      entries.push(...last.entries);
      page = [];
    });
    return JSON.stringify({ entries, state, status: last?.status, next: last?.next });
  }

  it.each([
    ['a run that completes', plainRun],
    ['a busy run', busyRun],
  ])('every cut of the pages at batch borders gives the same bytes: %s', (_name, make) => {
    const { batches } = make();
    const whole = inPages(batches, () => false);
    expect(inPages(batches, () => true)).toBe(whole);
    for (let cuts = 0; cuts < 2 ** Math.min(batches.length - 1, 12); cuts++) {
      expect(inPages(batches, (index) => (cuts & (1 << index)) !== 0)).toBe(whole);
    }
  });

  // [I13]
  it('leaves the state that it is given as it is', () => {
    const { batches } = busyRun();
    const { state } = translateAll(batches.slice(0, 4).flat());
    const before = JSON.stringify(state);
    translateAll(batches.slice(4).flat(), state);
    expect(JSON.stringify(state)).toBe(before);
  });
});
