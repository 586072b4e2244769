// How a call to an agent fails towards its run (ToolFailure of src/ports): a HostError that also says whether it was sent.
import { HostError, type ErrorCode } from '../rules/errors.ts';
import type { JsonObject } from '../rules/json.ts';

/** `sent: false` only while the call was certainly not written to the agent's socket. */
export function callFailure(code: ErrorCode, sent: boolean, details?: JsonObject): HostError {
  return Object.assign(new HostError(code, details), { sent });
}
