// A node that needs what no host provides (capabilities.md §Refusal; test mode only). It is refused before it starts:
// no kind of it is ever entered.
import { LACKING } from '../../src/rules/capabilities.ts';
import type { NodeError } from '../frames.ts';

/** Why a node cannot be executed here at all; undefined: it can. */
export function missingRequirement(typeId: string): NodeError | undefined {
  const capability = LACKING.testNodeTypes.get(typeId);
  if (capability === undefined) return undefined;
  return {
    code: 'capability_not_provided',
    message: `This host does not provide the capability ${capability}.`,
    details: { capability },
  };
}
