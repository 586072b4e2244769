// core.fail: ends in failure, for tests of failure paths (conformance/fixtures.md §NodeModule registration).
import type { NodeKind } from '../context.ts';
import { ERRORS } from '../../src/rules/errors.ts';

const DEFAULT_CODE = 'conformance_test_failure';

export const fail: NodeKind = async ({ node }) => {
  const { code = DEFAULT_CODE, message = ERRORS[DEFAULT_CODE].message } = node.config as {
    code?: string;
    message?: string;
  };
  return { kind: 'failed', error: { code, message } };
};
