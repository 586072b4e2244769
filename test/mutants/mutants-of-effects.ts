// Mutants of what answers to questions do (architecture §11): rows of mutants.ts.
import type { Row } from './mutants.ts';

const ACTIONS = 'src/rules/gate-actions.ts';
const ROUTING = 'src/rules/routing.ts';
const APPROVALS = 'workflows/approvals.ts';
const OF_APPROVALS = 'test/workflows/approvals.test.ts';
const OF_OUTPUTS = 'test/workflows/outputs.test.ts';
const OF_RUNS = 'test/workflows/follows.test.ts';
const OF_GATES = 'test/wire/gate-faults.test.ts';
const OF_LOADING = 'test/wire/load-definition.test.ts';

export const OF_EFFECTS: readonly Row[] = [
  [
    94,
    ['src/runs/answer.ts', 'interruptId, heard, by, bodyDigest', 'interruptId, by, bodyDigest'],
    ['test/runs/answer.test.ts', 'sent twice is one vote'],
  ],
  [
    94,
    ['src/runs/answer.ts', 'own.heard <= heard ||', 'own.heard >= 0 ||'],
    ['test/runs/answer.test.ts', 'a form from before another vote'],
  ],
  [
    117,
    [
      'src/runs/answer.ts',
      ' && own.said === saidWith(value)) return undefined;',
      ') return undefined;',
    ],
    ['test/runs/answer.test.ts', 'a form from before another vote'],
  ],
  [
    117,
    [APPROVALS, 'if (isRestated && before?.said === said) return', 'if (isRestated) return'],
    [OF_APPROVALS, 'a vote for the same with another reason is stated'],
  ],
  [
    94,
    [APPROVALS, 'ballot.all.length > MAX_VOTERS || ballot.vote', 'ballot.vote'],
    [OF_APPROVALS, 'of voters and of the votes of each there is a limit'],
  ],
  [
    94,
    ['workflows/interrupts.ts', 'if (valueRefusal(open, answer))', 'if (false)'],
    ['test/workflows/answers.test.ts', 'of voters a record gives no more'],
  ],
  [
    94,
    ['src/log/fold-rows.ts', 'bytes += jsonBytes(parts);', 'bytes += jsonBytes(vote);'],
    ['test/log/fold.test.ts', 'votes and what was asked back stand with the question'],
  ],
  [
    95,
    ['src/rules/votes.ts', '(!isFor || vote.of === of)', '(!isFor || vote.of !== of)'],
    ['test/words/follows.test.ts', 'each answer and each content counts for itself'],
  ],
  [
    95,
    ['src/words/follows.ts', 'isAgain ? before : withVote(before, vote)', '[...before, vote]'],
    ['test/words/follows.test.ts', 'each answer and each content counts for itself'],
  ],
  [94, [ACTIONS, "['reject', 'end'],", "['reject', 'continue'],"], [OF_APPROVALS, 'reject leads']],
  [94, [ROUTING, 'isHeld && condition !== undefined ?', 'isHeld ?'], [OF_APPROVALS, 'later leads']],
  [
    94,
    [
      ACTIONS,
      "?? UNDECLARED_EFFECTS.get(action) ?? 'end',",
      "?? UNDECLARED_EFFECTS.get(action) ?? 'continue',",
    ],
    [OF_APPROVALS, 'an answer whose effect nobody declared ends the step'],
  ],
  [
    94,
    [APPROVALS, "if (effect === 'ask-again') {", 'if (false) {'],
    [OF_APPROVALS, 'what is asked back is kept'],
  ],
  [
    95,
    ['src/words/follows.ts', "...(effect === 'route' ? { isRouted: true } : {}),", ''],
    [OF_APPROVALS, 'later leads'],
  ],
  [
    94,
    [ROUTING, "    : 'withheld';", "    : 'dead';"],
    [OF_RUNS, 'which a condition keeps for a yes: reject'],
  ],
  [
    94,
    [
      ROUTING,
      "isHeldBack(decisionOf(id))) ? 'withheld' : 'dead'",
      "isHeldBack(decisionOf(id))) ? 'dead' : 'dead'",
    ],
    [OF_RUNS, 'which a skipped step holds back'],
  ],
  [
    94,
    [ROUTING, 'if (taken.length === 0) return false;', 'if (taken.length >= 0) return false;'],
    [OF_RUNS, 'goes on where somebody took the no up'],
  ],
  [
    95,
    ['src/words/follows.ts', "if (end.end.kind === 'failed' && !isTakenUp(place))", 'if (false)'],
    [OF_RUNS, 'a no that no step takes fails the run'],
  ],
  [
    95,
    ['src/words/follows.ts', 'if (isDisabled(standing.definition, id)) return this.#skip(id);', ''],
    [OF_RUNS, 'a disabled step is skipped'],
  ],
  [
    95,
    [
      'src/words/standing.ts',
      'const held = graph.order.filter((id) => isOther(id) && isHeld(id));',
      'const held = graph.order.filter((id) => isOther(id) && isHeld(id) && false);',
    ],
    ['test/words/follows.test.ts', 'beside a step that is held back: other steps still begin'],
  ],
  [
    95,
    [
      'src/words/standing.ts',
      'loops: loops.filter(({ region }) => region.has(nodeId)),',
      'loops: [],',
    ],
    ['test/words/follows.test.ts', 'that waits for the question: it begins again'],
  ],
  [
    96,
    [ACTIONS, 'if (declared !== undefined || isTest) return undefined;', 'return undefined;'],
    [OF_LOADING, 'answers whose effect nobody declares'],
  ],
  [
    96,
    ['src/wire/gate-faults.ts', 'if (asked && !asked.isOffered)', 'if (asked && false)'],
    [OF_LOADING, 'votes, where nobody is told apart'],
  ],
  [
    96,
    [
      'src/wire/gate-faults.ts',
      'if (at < 0 || isEditRead(definition, id)) return [];',
      'return [];',
    ],
    [OF_GATES, 'changed content that nobody reads'],
  ],
  [
    96,
    [
      'src/wire/gate-faults.ts',
      "if (root !== 'error' && (root !== 'outputs' || name !== 'action')) return true;",
      'return true;',
    ],
    [OF_GATES, 'leads somewhere'],
  ],
  [
    94,
    [
      'workflows/visit.ts',
      '  dropOutputs(run, frame.nodeId);',
      '  if (!error) dropOutputs(run, frame.nodeId);',
    ],
    ['test/workflows/answers-in-loops.test.ts', 'a no takes the place of a yes'],
  ],
  [
    94,
    [
      'workflows/schedule.ts',
      '  dropOutputs(run, nodeId);',
      '  if (!reason) dropOutputs(run, nodeId);',
    ],
    [OF_OUTPUTS, 'what each last node gave'],
  ],
  [
    94,
    [
      'workflows/values.ts',
      'const node = frames[nodeId] ? undefined : run.nodes.get(nodeId);',
      'const node = frames ? run.nodes.get(nodeId) : undefined;',
    ],
    [OF_OUTPUTS, 'an earlier visit of a gate that stands open again'],
  ],
  [
    94,
    [
      'workflows/schedule.ts',
      'if (run.ending) return forgetOutputs(run, frame.nodeId);',
      'if (run.ending) return;',
    ],
    [OF_OUTPUTS, 'a last node that completes after that'],
  ],
  [
    66,
    [
      'workflows/values.ts',
      'shownOutputs({ run, node }, nodes[nodeId]?.outputs ?? {})',
      'nodes[nodeId]?.outputs ?? {}',
    ],
    [OF_OUTPUTS, 'what a last node marks'],
  ],
  [
    94,
    [
      'workflows/schedule.ts',
      '  dropOutputs(run, nodeId);',
      '  if (!reason) dropOutputs(run, nodeId);',
    ],
    ['test/workflows/answers-in-loops.test.ts', 'a gate that is skipped has no answer'],
  ],
  [
    60,
    [
      'src/wire/gate-faults.ts',
      '.filter(([, port]) => isSensitivePort(definition, port))',
      '.filter(([name, port]) => !name && isSensitivePort(definition, port))',
    ],
    [OF_GATES, 'a gate that asks about'],
  ],
  [
    96,
    ['src/wire/gate-faults.ts', "target) !== 'any_failed'),", 'target) !== undefined),'],
    [OF_GATES, 'the step that it leads to'],
  ],
  [
    120,
    [
      'activities/perform-effect.ts',
      "if (known?.kind === 'done' && word.isRefusal)",
      "if (known?.kind === 'done' && !word.isRefusal)",
    ],
    ['test/activities/agent-tool.test.ts', 'made meanwhile'],
  ],
  [
    103,
    ['src/runs/answer.ts', 'if (again !== undefined)', 'if (again === -1)'],
    ['test/runs/answer.test.ts', 'each id once'],
  ],
];
