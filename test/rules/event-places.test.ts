// "A new event is one schema, one row in the table of event types and one emit": the places that know a type are
// counted. A reader goes by the columns of the table; one that names a type stands here, with its reason.
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { EVENT_TYPES } from '../../src/rules/events.ts';
import { EVENT_TYPE_NAMES } from '../../src/wire/validators.ts';
import { readSource, repositoryFiles } from '../support/source-tree.ts';

const TABLE = 'src/rules/events.ts';
const TYPES = new Set(Object.keys(EVENT_TYPES));

/** An agent that is scripted node by node states what live ones state (RFC 0023). */
const SCRIPTED = 'workflows/nodes/mock-agent.ts';

/** Types that are in more files than their row's and one that states them. */
const MORE: Readonly<Record<string, readonly string[]>> = {
  // What the activity hands on is stated by the workflow: the contract takes its shape from the schema.
  'agent.promptResolved': ['activities/contract.ts', 'workflows/invocation.ts'],
  'prompt.composed': ['activities/contract.ts', 'workflows/invocation.ts'],
  // The workflow; where it ended without its own code, translate; where it never began, the start; a fork of nothing.
  'run.failed': [
    ...[
      'src/log/start-failed.ts',
      'src/translate/v1.ts',
      'workflows/divergence.ts',
      'workflows/fork.ts',
    ],
    'workflows/run.ts',
  ],
  // What a replay without Temporal states behind it is how it ends.
  'replay.diverged': ['src/adapters/temporal/offline.ts', 'workflows/divergence.ts'],
  'run.cancelled': ['src/translate/v1.ts', 'workflows/fork.ts', 'workflows/run.ts'],
  // Its key is told to who is caused by it.
  'node.started': ['workflows/context.ts', 'workflows/visit.ts'],
  // A call of an agent is answered by that agent's run, one in a branch perhaps by its source's log.
  'agent.toolReturned': [
    ...['activities/call-tool.ts', 'activities/child-runs.ts', 'activities/recorded-call.ts'],
    SCRIPTED,
  ],
  // The command line, which knows the API alone, looks there for a question that is open no more.
  'interrupt.requested': ['src/cli/answer-command.ts', 'workflows/interrupts.ts'],
  // A fork's child goes on in the place of its source's.
  'node.dispatched': ['workflows/child-forks.ts', 'workflows/child-runs.ts'],
  // Whoever holds the limit.
  'cap.breached': [
    ...[
      'workflows/child-runs.ts',
      'workflows/clocks.ts',
      'workflows/handoff.ts',
      'workflows/invocation.ts',
      'workflows/nodes/agent.ts',
      SCRIPTED,
    ],
    'workflows/turns.ts',
    'workflows/visit.ts',
  ],
  // What a fork's source had said when it was left.
  'agent.reasoned': ['activities/reasoning-writer.ts', SCRIPTED, 'workflows/recorded-steps.ts'],
  'agent.toolCalled': ['workflows/invocation.ts', SCRIPTED],
  'agent.handoff': ['workflows/handoff.ts', SCRIPTED, 'workflows/workers.ts'],
  'agent.decided': ['workflows/invocation.ts', SCRIPTED],
  // The workflow states an answer, an activity shows what a call tells.
  'output.chunk': ['activities/progress-writer.ts', 'workflows/invocation.ts'],
};

/** An argument of emit or emitFact, the member `type` of an event, the closing of an opening in the table. */
function isStating(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isPropertyAssignment(parent)) return parent.name.getText() === 'type';
  return (
    ts.isCallExpression(parent) && /^(emit(Fact)?|closedAs)$/.test(parent.expression.getText())
  );
}

interface Known {
  /** Types in strings and in types, wherever they stand. */
  readonly named: Set<string>;
  readonly stated: Set<string>;
}

function knownIn({ tree }: { readonly tree: ts.Node }): Known {
  const known: Known = { named: new Set(), stated: new Set() };
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) && TYPES.has(node.text)) {
      known.named.add(node.text);
      if (isStating(node)) known.stated.add(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return known;
}

const sources = repositoryFiles('src', 'workflows', 'activities')
  .filter((path) => /\.(ts|js)$/.test(path))
  .map(readSource);
const known = sources.map((source) => [source.path, knownIn(source)] as const);
const filesThat = (knows: (one: Known) => boolean): string[] =>
  known.filter(([, one]) => knows(one)).map(([path]) => path);
const besideTable = (type: string) =>
  filesThat(({ named }) => named.has(type)).filter((path) => path !== TABLE);

describe('a new event is one schema, one row, one emit', () => {
  test.each([...EVENT_TYPE_NAMES])('%s', (type) => {
    const stating = filesThat(({ stated }) => stated.has(type));
    expect(stating.length).toBeGreaterThan(0);
    const [only] = stating.filter((path) => path !== TABLE);
    expect(besideTable(type)).toEqual(MORE[type] ?? (only === undefined ? [] : [only]));
  });

  test('interrupt.resolved is known in two files, comments counted', () => {
    const mention = sources.filter(({ text }) => text.includes('interrupt.resolved'));
    expect(mention.map(({ path }) => path)).toEqual([TABLE, 'workflows/interrupts.ts']);
  });
});

/** A family asked for by the beginning of its name is a list of types too: in a call, or in a pattern. */
test('nobody goes by the beginning of a type', () => {
  const families = [...new Set([...TYPES].map((type) => type.slice(0, type.indexOf('.'))))];
  const names = families.join('|');
  const asks = new RegExp(`startsWith\\(['"\`](${names})\\.['"\`]|/\\^\\(?(${names})\\\\\\.`);
  expect(
    [`type.startsWith('node.')`, '/^(run\\.|interrupt\\.)/'].filter((text) => !asks.test(text)),
  ).toEqual([]);
  expect(sources.filter(({ text }) => asks.test(text)).map(({ path }) => path)).toEqual([]);
});
