// conformance.requiresMissing: a node that needs what no host provides (spec/06 §3.9; test mode only). It is refused
// before it starts; the function stands here for whoever would call it nevertheless.
import type { NodeKind } from '../context.ts';
import type { NodeError } from '../frames.ts';

const CAPABILITY = 'conformance.never-provided';

const error: NodeError = {
  code: 'capability_not_provided',
  message: `This host does not provide the capability ${CAPABILITY}.`,
  details: { capability: CAPABILITY },
};

export const requiresMissing: NodeKind = async () => ({ kind: 'failed', error });

/** Why a node cannot be executed here at all; undefined: it can. */
export function missingRequirement(typeId: string): NodeError | undefined {
  return typeId === 'conformance.requiresMissing' ? error : undefined;
}
