// The timeline of a run as data: events of the log folded into items. This file runs on the server, which renders the
// page, and in the browser, which goes on with the live stream: one fold, so both show the same (RFC 0077 §B, RFC 0024).
// It names no event type: what each tells is given to it, from the table of event types.

import { isDeclined } from '../words/declined.js';
import { duration } from '../words/duration.js';

/** @typedef {import('../../schemas/types.generated.ts').RunEventDoc} RunEventDoc */
/** @typedef {import('../rules/events.ts').EventPart} EventPart */
/** @typedef {import('../rules/events.ts').EventStories} EventStories */

/**
 * The fields of event payloads that are shown, whatever the event; all may be absent.
 * @typedef {{from?: string, speakerId?: string, content?: unknown}} Said a turn of a conversation
 * @typedef {{action?: string, feedback?: string, reason?: string, comment?: string, refineFeedback?: {text?: string}, editedArtifactData?: unknown}} Answer of a vote
 * @typedef {object} Payload
 * @property {string} nodeId
 * @property {string} agentId
 * @property {{agentId: string}} [agent]
 * @property {string} callId
 * @property {string} interruptId
 * @property {string} key of a wait
 * @property {string} toolName
 * @property {string} toAgentId
 * @property {string} childRunId
 * @property {string} childWorkflowId
 * @property {unknown} [inputs]
 * @property {unknown} [outcome]
 * @property {unknown} [outputs]
 * @property {unknown} [decision]
 * @property {unknown} [resumeValue]
 * @property {{title?: string}} [data]
 * @property {Said} [initialTurn]
 * @property {Said} [turn]
 * @property {Said} [finalTurn]
 * @property {{code: string, message: string}} [error]
 * @property {string} [status]
 * @property {string} [reason]
 * @property {string} [resolvedBy]
 * @property {string} [voter]
 * @property {string} [effect]
 * @property {number} [votes]
 * @property {number} [needed]
 * @property {string} askedBy
 * @property {string} [text]
 * @property {string} [reasoning]
 * @property {string} delta
 * @property {string} chunk
 * @property {string} kind
 * @property {string} name
 * @property {number} [confidence]
 * @property {number} [threshold]
 * @property {number} [observed]
 * @property {number} [durationMs]
 * @property {number} skippedMs
 * @property {number} [totalAttempts]
 * @property {number} [inputTokens]
 * @property {number} [outputTokens]
 */

/**
 * One entry of the timeline. `key` is unique and safe in an HTML id.
 * @typedef {object} TimelineItem
 * @property {string} key
 * @property {number} sequence of the event that it began with
 * @property {string} runId
 * @property {string} [eventId] of the same event, where it names its cause
 * @property {'run' | 'step' | 'reasoning' | 'tool' | 'decision' | 'question' | 'note' | 'end'} kind
 * @property {number | undefined} atMs undefined: its time cannot be read
 * @property {string} [nodeId]
 * @property {string} title
 * @property {string} [state] what became of it: running, done, failed, refused, doubtful, declined, skipped, cancelled, waiting, retried
 * @property {string} [agentId]
 * @property {string} [text] reasoning, a reason or an error message
 * @property {unknown} [input] arguments of a call, inputs of a run
 * @property {unknown} [outcome] result, decision or answer
 * @property {string} [progress] the last of what a call told while it worked
 * @property {number} [confidence]
 * @property {number} [threshold]
 * @property {number} [tookMs]
 * @property {string} [by] who answered
 * @property {Thread[]} [threads] the runs that began here
 * @property {boolean} [canFork] the reader may fork the run from here
 * @property {number} [answeredAt] sequence of the event that tells its answer
 * @property {'source' | 'begun' | ForkLineage['mode']} [origin] of a fork: told by its source, to the end or its beginning,
 *   or the first that it told itself
 */

/**
 * @typedef {object} ForkLineage where a fork left its source
 * @property {number} fromSeq the first event that is its own
 * @property {'replay' | 'branch'} mode
 */

/**
 * @typedef {object} Thread a run that another one started
 * @property {string} runId
 * @property {string} workflowId
 * @property {boolean} running as far as the run that started it tells
 */

/** Characters of a call's progress that are shown: the last ones. */
const PROGRESS_CHARACTERS = 4_000;

/**
 * @typedef {object} Timeline
 * @property {TimelineItem[]} items in the order in which they began
 * @property {Map<string, TimelineItem>} open items that a later event completes, by what that event will name
 * @property {Map<string, string>} asking keys of waits to their interruptIds: what is asked names the key alone
 * @property {Record<string, string>} names node ids to names
 * @property {EventStories} stories what each event type tells
 * @property {string} [prefix] of the items' keys, where the page shows other runs beside this one
 * @property {ForkLineage} [fork] of a fork
 * @property {boolean} [canFork] the reader may fork the run
 * @property {boolean} left a fork's own part has begun, and is marked
 * @property {Map<string, TimelineItem>} shownBy by eventId: the item that shows it, or what it follows from
 * @property {Map<number, string>} eventIds of the events that are folded, by their sequences
 * @property {number} lastSequence
 * @property {number} tokens tokens that providers counted
 * @property {boolean} ended
 * @property {boolean} isRetold the log was made again, and other events are in their places now: what is shown is not to be
 *   relied on
 */

/**
 * @param {Pick<Timeline, 'names' | 'stories' | 'prefix' | 'fork' | 'canFork'>} given
 * @returns {Timeline}
 */
export function emptyTimeline(given) {
  const begun = { items: [], open: new Map(), asking: new Map(), shownBy: new Map() };
  const heard = { eventIds: new Map(), lastSequence: -1, isRetold: false };
  return { ...given, ...begun, ...heard, tokens: 0, ended: false, left: false };
}

/**
 * A type that the table does not have tells nothing but itself.
 * @param {Timeline} timeline
 * @param {string} type
 * @returns {EventStories[string]}
 */
function storyOf({ stories }, type) {
  return (Object.hasOwn(stories, type) && stories[type]) || ['note'];
}

/** Parts after which the status or a question is another one. */
const MOVES = /^(run|wait)-|^(clock|vote|asked-back|turn)$/;
/** Parts after which something else may follow an answer. */
const LEADS_ELSEWHERE = /^node-|^(variable|channel)$/;

/**
 * True when the question or the status of the run may be another one after this event, which is folded already.
 * @param {Timeline} timeline
 * @param {RunEventDoc} event
 */
export function movesHead(timeline, { type }) {
  const [part] = storyOf(timeline, type);
  return MOVES.test(part) || (LEADS_ELSEWHERE.test(part) && asks(timeline));
}

/**
 * @param {Timeline} timeline
 * @param {(question: TimelineItem) => boolean} [isMeant]
 */
function asks({ open }, isMeant = () => true) {
  return [...open].some(([name, item]) => name.startsWith('question ') && isMeant(item));
}

/**
 * Folds one event into the timeline, in place. Events at or below the last sequence change nothing; nor does any event from
 * the first on that is in the place of another one (`isRetold`).
 * @param {Timeline} timeline
 * @param {RunEventDoc} event
 * @returns {TimelineItem[]} the items that are new or changed
 */
export function foldEvent(timeline, event) {
  const known = timeline.eventIds.get(event.sequence) ?? event.eventId;
  if (known !== event.eventId) timeline.isRetold = true;
  if (timeline.isRetold || event.sequence <= timeline.lastSequence) return [];
  timeline.eventIds.set(event.sequence, event.eventId);
  // Of a long run the page shows the newest part: where it left its source is not in it.
  const isCut = timeline.lastSequence < 0 && event.sequence > 0;
  if (isCut && event.sequence > (timeline.fork?.fromSeq ?? 0)) timeline.left = true;
  timeline.lastSequence = event.sequence;
  const payload = /** @type {Payload} */ (event.payload ?? {});
  const nodeId = event.nodeId ?? payload.nodeId;
  const [part, becomes = ''] = storyOf(timeline, event.type);
  const atMs = event.unreadable ? undefined : Date.parse(event.timestamp);
  const told = FOLDS[part]({ timeline, event, payload, nodeId, atMs, becomes });
  const changed = [told].flat().filter((item) => item !== undefined);
  if (timeline.fork && event.sequence >= timeline.fork.fromSeq)
    for (const item of changed) if (item.origin === 'source') item.origin = 'begun';
  const began = changed.find(({ sequence }) => sequence === event.sequence);
  const shown = began ?? changed[0] ?? timeline.shownBy.get(event.causationId ?? '');
  if (shown) timeline.shownBy.set(event.eventId, shown);
  return changed;
}

/**
 * @typedef {object} Step
 * @property {Timeline} timeline
 * @property {RunEventDoc} event
 * @property {Payload} payload
 * @property {string} nodeId
 * @property {number | undefined} atMs
 * @property {string} becomes what its run or its node is from here on
 */

/** @type {Record<string, string>} */
const STATES = { completed: 'done', retrying: 'retried' };

/** @param {Step} step */
function stateOf({ becomes }) {
  return STATES[becomes] ?? becomes;
}

/**
 * @param {Step} step
 * @param {Omit<TimelineItem, 'key' | 'sequence' | 'runId' | 'atMs'>} rest
 * @param {string} [openAs]
 * @returns {TimelineItem}
 */
function add({ timeline, event, nodeId, atMs }, rest, openAs) {
  const { sequence, runId, eventId, causationId } = event;
  const item = {
    ...{ key: `${timeline.prefix ?? ''}e${sequence}`, sequence, runId, atMs },
    ...(causationId === undefined ? {} : { eventId }),
    ...(nodeId ? { nodeId } : {}),
    ...rest,
    ...originOf(timeline, sequence),
    ...(timeline.canFork ? { canFork: true } : {}),
  };
  timeline.items.push(item);
  if (openAs) timeline.open.set(openAs, item);
  return item;
}

/**
 * @param {Timeline} timeline
 * @param {number} sequence
 * @returns {Pick<TimelineItem, 'origin'>}
 */
function originOf(timeline, sequence) {
  const { fork, left } = timeline;
  if (!fork) return {};
  if (sequence < fork.fromSeq) return { origin: 'source' };
  timeline.left = true;
  return left ? {} : { origin: fork.mode };
}

/**
 * @param {Timeline} timeline
 * @param {string} openAs
 * @param {Partial<TimelineItem>} change
 */
function close(timeline, openAs, change) {
  const item = timeline.open.get(openAs);
  timeline.open.delete(openAs);
  return item ? Object.assign(item, change) : undefined;
}

/**
 * Undefined where either time is not known.
 * @param {TimelineItem | undefined} began
 * @param {number | undefined} endedMs
 */
function tookMs(began, endedMs) {
  return began?.atMs === undefined || endedMs === undefined ? undefined : endedMs - began.atMs;
}

/** @param {Step} step */
function endStep(step) {
  const { timeline, payload, nodeId, atMs } = step;
  const started = timeline.open.get(`step ${nodeId}`);
  const closed = close(timeline, `step ${nodeId}`, {
    state: isDeclined(payload.error?.code) ? 'declined' : stateOf(step),
    tookMs: tookMs(started, atMs),
    text: payload.error?.message ?? payload.reason,
  });
  const behind = started ? timeline.items.indexOf(started) : 0;
  const called = timeline.items.slice(behind).filter((item) => item.nodeId === nodeId);
  return [closed, ...called.filter(endThreads)];
}

/**
 * Who waited for its runs waits no more. True: there were any.
 * @param {TimelineItem} item
 */
function endThreads({ threads = [] }) {
  const running = threads.filter((thread) => thread.running);
  for (const thread of running) thread.running = false;
  return running.length > 0;
}

/**
 * Below the call that started it, else on its own.
 * @param {Step} step
 */
function beginThread(step) {
  const { timeline, event, payload } = step;
  const { childRunId: runId, childWorkflowId: workflowId } = payload;
  const cause = timeline.shownBy.get(event.causationId ?? '');
  const item =
    cause?.kind === 'tool' ? cause : add(step, { kind: 'note', title: `Starts ${workflowId}` });
  item.threads = [...(item.threads ?? []), { runId, workflowId, running: true }];
  return item;
}

/** @param {Step} step */
function note(step) {
  return add(step, { kind: 'note', title: step.event.type });
}

/** @param {Step} step */
function reasoningOf(step) {
  const openAs = `reasoning ${step.nodeId}`;
  const known = step.timeline.open.get(openAs);
  if (known) return known;
  const rest = {
    kind: /** @type {const} */ ('reasoning'),
    title: 'Thinks',
    state: 'running',
    text: '',
  };
  return add(step, { ...rest, agentId: step.payload.agentId }, openAs);
}

/** @param {Step} step */
function reasoned(step) {
  const { timeline, payload, nodeId } = step;
  const known = timeline.open.get(`reasoning ${nodeId}`);
  if (!known && !payload.reasoning) return undefined;
  const item = known ?? reasoningOf(step);
  timeline.open.delete(`reasoning ${nodeId}`);
  // The closing text is the authoritative one; with verbosity `off` it is empty and what was streamed stays.
  const text = payload.reasoning || item.text;
  return Object.assign(item, { state: 'done', text, answeredAt: step.event.sequence });
}

/** @param {Step} step */
function suspended({ timeline, payload, nodeId }) {
  timeline.asking.set(payload.key, payload.interruptId);
  const decision = timeline.items.findLast(
    (item) => item.kind === 'decision' && item.nodeId === nodeId,
  );
  if (payload.reason === 'low-confidence' && decision) {
    Object.assign(decision, { threshold: payload.threshold, confidence: payload.observed });
  }
  return [decision, setStep(timeline, nodeId, 'waiting')];
}

/**
 * @param {Timeline} timeline
 * @param {string} nodeId
 * @param {string} state
 */
function setStep(timeline, nodeId, state) {
  const item = timeline.open.get(`step ${nodeId}`);
  if (item) item.state = state;
  return item;
}

/** @param {Step} step */
function answered({ timeline, event, payload, nodeId, atMs }) {
  const openAs = `question ${payload.interruptId}`;
  const asked = timeline.open.get(openAs);
  const question = close(timeline, openAs, {
    state: payload.reason === 'timeout' ? 'expired' : 'done',
    outcome: payload.resumeValue,
    by: payload.resolvedBy,
    answeredAt: event.sequence,
    tookMs: tookMs(asked, atMs),
  });
  const asksStill = asks(timeline, (other) => other.nodeId === nodeId);
  return asksStill ? question : [question, setStep(timeline, nodeId, 'running')];
}

/** @param {Step} step */
function ended(step) {
  const { timeline, payload } = step;
  timeline.ended = true;
  const text = payload.error ? `${payload.error.code}: ${payload.error.message}` : payload.reason;
  return add(step, {
    kind: 'end',
    title: `Run ${step.becomes}`,
    state: stateOf(step),
    text,
    outcome: payload.outputs,
    tookMs: payload.durationMs,
  });
}

/**
 * @param {string | undefined} status
 * @param {{ code?: string } | undefined} error
 */
function returnedState(status, error) {
  if (status === 'ok' || (!status && !error)) return 'done';
  if (error?.code === 'effect_in_doubt') return 'doubtful';
  return status === 'forbidden' ? 'refused' : 'failed';
}

/** @typedef {TimelineItem | undefined} Changed */
/** @type {Record<EventPart, (step: Step) => Changed | Changed[]>} */
const FOLDS = {
  'run-starts': (step) =>
    add(step, { kind: 'run', title: 'Run started', input: step.payload.inputs }),
  'run-moves': note,
  clock: (step) => {
    const { skippedMs } = step.payload;
    const title = skippedMs > 0 ? `Time skipped: ${duration(skippedMs)}` : 'The clock stands';
    return add(step, { kind: 'note', title });
  },
  'run-ends': ended,
  'node-starts': (step) => {
    const title = step.timeline.names[step.nodeId] ?? step.nodeId;
    const rest = { kind: /** @type {const} */ ('step'), title, state: 'running' };
    // An attempt that a pause cut has no end of its own.
    const cut = close(step.timeline, `step ${step.nodeId}`, { state: 'cancelled' });
    const agentId = step.payload.agent?.agentId;
    return [cut, add(step, { ...rest, agentId }, `step ${step.nodeId}`)];
  },
  'node-ends': endStep,
  'node-skipped': (step) => {
    const name = step.timeline.names[step.nodeId] ?? step.nodeId;
    return add(step, { kind: 'step', title: name, state: 'skipped', text: step.payload.reason });
  },
  'wait-opens': suspended,
  'reasoning-piece': (step) => {
    const item = reasoningOf(step);
    item.text = (item.text ?? '') + step.payload.delta;
    return item;
  },
  reasoning: reasoned,
  call: (step) => {
    const { toolName, inputs, callId, agentId } = step.payload;
    const rest = { kind: /** @type {const} */ ('tool'), title: toolName, state: 'running' };
    return add(step, { ...rest, input: inputs, agentId }, `call ${callId}`);
  },
  'output-piece': (step) => {
    const { callId, chunk } = step.payload;
    // Without a call it is the agent's answer, which its decision shows already.
    if (callId === undefined) return undefined;
    const item = step.timeline.open.get(`call ${callId}`);
    if (!item) return note(step);
    item.progress = ((item.progress ?? '') + chunk).slice(-PROGRESS_CHARACTERS);
    return item;
  },
  return: (step) => {
    const { callId, toolName, agentId, status, error, outcome, durationMs } = step.payload;
    const state = returnedState(status, error);
    const answeredAt = step.event.sequence;
    const change = { state, outcome, text: error?.message, tookMs: durationMs, answeredAt };
    const called = step.timeline.open.get(`call ${callId}`);
    if (called) endThreads(called);
    // A call outside the agent's surface is refused without having been made: only its answer is there.
    return (
      close(step.timeline, `call ${callId}`, change) ??
      add(step, { kind: 'tool', title: toolName ?? 'A tool', agentId, ...change })
    );
  },
  decision: (step) => {
    const { decision, confidence, agentId } = step.payload;
    return add(step, {
      kind: 'decision',
      title: 'Decides',
      outcome: decision,
      confidence,
      agentId,
    });
  },
  child: beginThread,
  turn: (step) => {
    const { initialTurn, turn, finalTurn } = step.payload;
    /** @type {Said} */
    const said = initialTurn ?? turn ?? finalTurn ?? {};
    const title = `${said.speakerId ?? said.from ?? 'Somebody'} says`;
    return typeof said.content === 'string'
      ? add(step, { kind: 'note', title, text: said.content })
      : add(step, { kind: 'note', title, outcome: said.content });
  },
  orchestration: (step) => {
    const { decision, agentId } = step.payload;
    return add(step, { kind: 'decision', title: 'Says what is next', outcome: decision, agentId });
  },
  handoff: (step) => {
    const { toAgentId, reason } = step.payload;
    const why = typeof reason === 'string' ? { text: reason } : {};
    return add(step, { kind: 'note', title: `Hands over to ${toAgentId}`, ...why });
  },
  'wait-asks': (step) => {
    const title = step.payload.data?.title ?? QUESTION_TITLES[step.payload.kind] ?? 'Waits';
    const interruptId = step.timeline.asking.get(step.payload.key);
    const input = askedOf(step.payload);
    return add(
      step,
      { kind: 'question', title, input, state: 'waiting' },
      `question ${interruptId}`,
    );
  },
  vote: (step) => {
    const { voter, effect, votes, needed } = step.payload;
    const said = /** @type {Answer} */ (step.payload.resumeValue ?? {});
    const title = `${voter} votes ${said.action}: ${votes} of ${needed} ${effect === 'end' ? 'against' : 'for'} it`;
    const wish = said.refineFeedback?.text;
    const text = [said.feedback || said.reason || wish, said.comment].filter(Boolean).join('\n');
    return add(step, {
      ...{ kind: 'note', title, ...(text ? { text } : {}) },
      ...(said.editedArtifactData === undefined ? {} : { input: said.editedArtifactData }),
    });
  },
  'asked-back': (step) => {
    const { askedBy, text } = step.payload;
    return add(step, { kind: 'note', title: `${askedBy} asks about it`, text });
  },
  'wait-ends': answered,
  variable: (step) => add(step, { kind: 'note', title: `Sets ${step.payload.name}` }),
  unusable: (step) =>
    add(step, {
      kind: 'note',
      title: `No usable answer in ${step.payload.totalAttempts} attempts`,
      state: 'failed',
    }),
  usage: ({ timeline, payload }) => {
    timeline.tokens += (payload.inputTokens ?? 0) + (payload.outputTokens ?? 0);
    return undefined;
  },
  limit: (step) =>
    add(step, { kind: 'note', title: `Limit reached: ${step.payload.kind}`, state: 'failed' }),
  channel: note,
  worker: () => undefined,
  detail: () => undefined,
  note,
};

/**
 * What is to be judged, as its question shows it.
 * @param {{ data?: Record<string, unknown> }} payload
 * @returns {unknown}
 */
function askedOf({ data = {} }) {
  return data.artifactData ?? data.decision ?? data.questions ?? data.correlation ?? data.payload;
}

/** @type {Record<string, string>} */
const QUESTION_TITLES = {
  approval: 'Asks for approval',
  'low-confidence': 'Is not sure and asks a human',
  clarification: 'Asks a question',
  'conversation.exchange': 'Opens a conversation',
  'external-event': 'Waits for another system',
};
