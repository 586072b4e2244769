// Mutants of cohorts (architecture §6), as mutants.ts has them.
import type { Row } from './mutants.ts';

export const OF_COHORTS: readonly Row[] = [
  [
    97,
    ['src/runs/cohort-selection.ts', 'refused ??= error;', 'throw error;'],
    ['test/runs/cohort-selection.test.ts', 'whichever is the first'],
  ],
  [
    97,
    [
      'src/runs/cohort-members.ts',
      "if (typeof field !== 'string' || typeof reason !== 'string') return message;",
      'if (field ?? reason) return message;',
    ],
    ['test/runs/cohorts.test.ts', 'that is refused says what of it is'],
  ],
  [
    73,
    [
      'activities/recorded-answers.ts',
      'if (asked !== questionText(question)) return [];',
      "if (asked === '') return [];",
    ],
    ['test/acceptance/fork-answers.test.ts', 'a question that asks something else waits'],
  ],
  [
    73,
    [
      'src/rules/recorded-answers.ts',
      'canonicalJson({ kind, data: withoutEffectId(data), resumeSchema })',
      "canonicalJson({ kind, data: withoutEffectId(data), resumeSchema }).replace(/run-\\w{27}/g, '')",
    ],
    ['test/rules/recorded-answers.test.ts', 'another run is another question'],
  ],
  [
    74,
    [
      'src/runs/cohort-members.ts',
      'as = { runId: forkRunId, cohortId,',
      'as = { runId: forkRunId.slice(0, -1), cohortId,',
    ],
    ['test/faults/cohorts.test.ts', 'goes on behind a SIGKILL'],
  ],
  [
    75,
    [
      'src/adapters/temporal/closed-runs.ts',
      "WorkflowType!='${COHORT_WORKFLOW}' AND ",
      "WorkflowType!='${COHORT_WORKFLOW}x' AND ",
    ],
    ['test/acceptance/cohorts.test.ts', 'is no run: neither swept'],
  ],
  [
    111,
    [
      'src/runs/whole-diff.ts',
      'if (count >= MAX_ROWS) return false;',
      'if (count >= 1_000) return true;',
    ],
    ['test/runs/cohort-verdict.test.ts', 'of 600 visits the 550th'],
  ],
  [
    111,
    ['src/rules/cohort.ts', "if (!fork.isWhole) return 'not-compared';", ''],
    ['test/runs/cohort-verdict.test.ts', 'whose log is too long'],
  ],
  [
    112,
    ['src/cli/replay-gate.ts', '[...hits, ...unknown, ...stillWrong,', '[...hits, ...stillWrong,'],
    ['test/cli/replay.test.ts', 'says which results are not known'],
  ],
  [
    112,
    ['src/cli/replay-gate.ts', '...stillWrong, ...Object.keys(unread)]', '...stillWrong]'],
    ['test/cli/replay.test.ts', 'is not passed where runs are left out'],
  ],
  [
    112,
    ['src/cli/replay-gate.ts', ', ...(unreadable ? { unreadable } : {}) };', ' };'],
    ['test/cli/replay.test.ts', 'cannot say which runs it left out'],
  ],
];
