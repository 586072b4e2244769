// A reporter of vitest: writes a line for each test file when it has ended.
import { relative } from 'node:path';
import type {
  Reporter,
  SerializedError,
  TestCase,
  TestModule,
  TestSpecification,
} from 'vitest/node';
import { ROOT } from '../support/root.ts';
import { LANE_VARIABLE, writeLine, type TestResult } from './lines.ts';

type Failure = Pick<SerializedError, 'name' | 'message'>;

const textOf = ({ name, message }: Failure): string => `${name ?? 'Error'}: ${message}`;

function resultOf(test: TestCase): TestResult {
  const { state, errors = [] } = test.result();
  const titles = [test.name];
  for (let { parent } = test; parent.type === 'suite'; { parent } = parent)
    titles.unshift(parent.name);
  return {
    titles,
    // What was collected and never ran belongs to a file that failed.
    state: state === 'pending' ? 'skipped' : state,
    ms: Math.round(test.diagnostic()?.duration ?? 0),
    errors: errors.map(textOf),
  };
}

export default class LineReporter implements Reporter {
  onTestRunStart(specifications: readonly TestSpecification[]): void {
    writeLine({
      kind: 'queued',
      files: specifications.map(({ moduleId }) => relative(ROOT, moduleId)),
    });
  }

  onTestModuleEnd(module: TestModule): void {
    const suites = [...module.children.allSuites()];
    const { duration, collectDuration, prepareDuration, setupDuration } = module.diagnostic();
    writeLine({
      kind: 'file',
      file: relative(ROOT, module.moduleId),
      result: {
        ms: Math.round(duration + collectDuration + prepareDuration + setupDuration),
        tests: [...module.children.allTests()].map(resultOf),
        errors: [...module.errors(), ...suites.flatMap((suite) => suite.errors())].map(textOf),
      },
    });
  }

  onTestRunEnd(_: readonly TestModule[], errors: readonly SerializedError[]): void {
    const lane = process.env[LANE_VARIABLE] ?? '';
    writeLine({ kind: 'end', lane, errors: errors.map(textOf) });
  }
}
