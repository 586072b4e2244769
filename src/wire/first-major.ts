// The protocol's first major: ids leave as they are, codes keep their names, rows of era 2 are its own.
import { ERRORS, type ErrorCode } from '../rules/errors.ts';
import type { Major, WireError } from './major.ts';
import { payloadText, renderEventText } from './render.ts';

/**
 * HTTP statuses (rest-endpoints.md §Error response shape); codes that only runs and nodes have carry that of their
 * nearest use.
 */
const STATUSES: Readonly<Record<ErrorCode, number>> = {
  unauthenticated: 401,
  forbidden: 403,
  credential_forbidden: 403,
  validation_error: 400,
  not_found: 404,
  run_not_found: 404,
  run_expired: 410,
  workflow_not_found: 404,
  agent_not_found: 404,
  interrupt_not_found: 404,
  artifact_not_found: 404,
  method_not_allowed: 405,
  interrupt_already_resolved: 409,
  interrupt_expired: 410,
  interrupt_gone: 410,
  interrupt_cancelled: 422,
  idempotency_in_flight: 409,
  idempotency_key_mismatch: 409,
  run_state_conflict: 409,
  not_a_rehearsal: 409,
  invalid_from_seq: 422,
  replay_diverged: 422,
  replay_source_missing: 422,
  build_not_found: 404,
  build_conflict: 409,
  unsupported_stream_mode: 400,
  payload_too_large: 413,
  unsupported_media_type: 415,
  headers_too_large: 431,
  request_timeout: 408,
  rate_limited: 429,
  service_unavailable: 503,
  internal_error: 500,
  capability_required: 400,
  capability_not_provided: 501,
  unsupported_mock_provider: 400,
  link_expired: 410,
  recursion_limit_exceeded: 422,
  channel_access_denied: 400,
  run_timeout: 422,
  run_terminated: 422,
  start_failed: 503,
  node_timeout: 422,
  cancelled: 422,
  interrupt_timeout: 422,
  conversation_limit_exceeded: 409,
  approval_rejected: 422,
  escalation_rejected: 422,
  escalation_limit: 422,
  conformance_test_failure: 422,
  handoff_task_schema_violation: 422,
  handoff_return_schema_violation: 422,
  agent_output_invalid: 422,
  envelope_refusal: 422,
  turn_limit_exceeded: 422,
  tool_call_limit_exceeded: 422,
  handoff_limit_exceeded: 422,
  model_unavailable: 422,
  model_rejected_request: 422,
  model_output_too_large: 422,
  model_not_configured: 422,
  tool_not_found: 422,
  tool_invalid_input: 422,
  tool_invalid_output: 422,
  tool_failed: 422,
  tool_timeout: 422,
  agent_unavailable: 503,
  tool_denied: 403,
  effect_in_doubt: 422,
  effect_skipped: 422,
  unknown_child_workflow: 422,
  child_failed: 422,
  child_timeout: 422,
  child_lost: 422,
  child_limit_exceeded: 422,
  no_pending_decision: 422,
  fan_out_unsupported: 422,
  loop_limit_exceeded: 422,
  subject_erased: 410,
  subject_erasing: 409,
  subject_not_found: 404,
  history_undecodable: 503,
  key_unavailable: 503,
  history_missing: 503,
  content_missing: 503,
  bundle_invalid: 422,
  bundle_changed: 422,
  bundle_unsupported: 422,
  config_invalid: 500,
  temporal_not_found: 500,
  temporal_not_started: 500,
  data_folder_in_use: 500,
};

/** Codes that this major has no name for: of an expired run its status and `details.expiredAt` tell. */
const NAMES: Partial<Record<ErrorCode, string>> = { run_expired: 'not_found' };

const errors = Object.fromEntries(
  Object.keys(ERRORS).map((name) => {
    const code = name as ErrorCode;
    return [code, { error: NAMES[code] ?? code, status: STATUSES[code] }];
  }),
) as Record<ErrorCode, WireError>;

export const FIRST_MAJOR: Major = {
  version: '1.0',
  ids: {
    bind: (_kind, id) => id,
    project: (shown) => encodeURIComponent(shown),
    parse: (_kind, shown) => shown,
  },
  errors,
  // The number of the header once more (scale-profiles.md §Retry).
  detailsOf: (details, retryAfter) =>
    retryAfter === undefined ? details : { ...details, retryAfter },
  events: { 2: { typeOf: (type) => type, textOf: renderEventText, payloadOf: payloadText } },
};
