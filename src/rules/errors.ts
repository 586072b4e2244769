// The one error table: code -> whether a retry of the same request may succeed, and a message that is safe to show.
// Codes are the protocol's (rest-endpoints.md §Error response shape, interrupt.md, multi-agent-execution.md); our own are
// marked. How each leaves by HTTP is said by each major of the protocol (src/wire/first-major.ts).

interface ErrorRow {
  readonly retryable: boolean;
  readonly message: string;
  /** Something of the host's own was away, or is missing here: no fact of a run. It bounds tries by time and not by count. */
  readonly isOutage?: true;
}

export const ERRORS = {
  // requests
  unauthenticated: {
    retryable: false,
    message: 'A valid API key is required: Authorization: Bearer <key>.',
  },
  forbidden: { retryable: false, message: 'The credential does not permit this.' },
  credential_forbidden: {
    retryable: false,
    message: 'Own credentials are not permitted for this provider.',
  },
  validation_error: { retryable: false, message: 'The request is not valid.' },
  not_found: { retryable: false, message: 'There is nothing at this address.' },
  run_not_found: { retryable: false, message: 'No such run.' },
  run_expired: {
    retryable: false,
    message: 'This run has expired: nothing of it is kept.',
  }, // the next major's; this one says not_found
  workflow_not_found: { retryable: false, message: 'No such workflow.' },
  agent_not_found: { retryable: false, message: 'No such agent.' },
  interrupt_not_found: { retryable: false, message: 'No such interrupt was asked at this node.' },
  artifact_not_found: { retryable: false, message: 'No such artifact.' },
  method_not_allowed: { retryable: false, message: 'This address does not take this method.' },
  interrupt_already_resolved: { retryable: false, message: 'The interrupt is already resolved.' },
  interrupt_expired: { retryable: false, message: 'The interrupt has expired.' },
  interrupt_gone: { retryable: false, message: 'The interrupt was invalidated.' },
  interrupt_cancelled: {
    retryable: false,
    message: 'The run was cancelled while the interrupt was open.',
  },
  idempotency_in_flight: {
    retryable: true,
    message: 'The first request with this Idempotency-Key is still running.',
  },
  idempotency_key_mismatch: {
    retryable: false,
    message: 'This Idempotency-Key was used with another request body.',
  },
  run_state_conflict: { retryable: false, message: 'The run is not in a state that permits this.' },
  not_a_rehearsal: {
    retryable: false,
    message: 'The run is no rehearsal: nobody moves its clock.',
  }, // own
  build_not_found: { retryable: false, message: 'No such build of the worker.' }, // own
  build_conflict: { retryable: false, message: 'The build is not in a state that permits this.' }, // own
  unsupported_stream_mode: { retryable: false, message: 'The stream mode is not supported.' },
  payload_too_large: { retryable: false, message: 'The value is larger than permitted.' },
  unsupported_media_type: {
    retryable: false,
    message: 'The request body must be application/json.',
  },
  headers_too_large: {
    retryable: false,
    message: 'The request headers are larger than permitted.',
  }, // own
  request_timeout: { retryable: true, message: 'The request came too slowly.' }, // own
  rate_limited: { retryable: true, message: 'Too many requests.' },
  service_unavailable: {
    retryable: true,
    isOutage: true,
    message: 'The service cannot do this now. Try again later.',
  },
  internal_error: { retryable: true, message: 'Something went wrong inside the host.' },
  capability_required: {
    retryable: false,
    message: 'The workflow needs a capability that this host does not offer.',
  },
  capability_not_provided: {
    retryable: false,
    message: 'This host does not provide the capability.',
  },
  unsupported_mock_provider: { retryable: false, message: 'The mock provider is not supported.' },
  link_expired: {
    retryable: false,
    message: 'The link was used already, has expired or was revoked.',
  }, // own
  // runs and nodes
  recursion_limit_exceeded: {
    retryable: false,
    message: 'The run started more nodes than permitted.',
  },
  channel_access_denied: {
    retryable: false,
    message: 'The channel may not be used by this node.',
  },
  run_timeout: { retryable: false, message: 'The run took longer than permitted.' },
  run_terminated: { retryable: false, message: 'The run was ended from outside.' }, // own
  start_failed: { retryable: true, message: 'The run could not be started.' }, // own
  node_timeout: { retryable: true, message: 'The node took longer than permitted.' }, // own
  cancelled: { retryable: false, message: 'Cancelled.' }, // own
  invalid_from_seq: {
    retryable: false,
    message: 'The log of the source has no such place.',
  },
  replay_diverged: {
    retryable: false,
    message: 'What the fork stated is not what its source had stated.',
  }, // own
  replay_source_missing: {
    retryable: false,
    message: 'The source of the replay has no record of this.',
  },
  interrupt_timeout: { retryable: false, message: 'Nobody answered within the time allowed.' }, // own
  conversation_limit_exceeded: {
    retryable: false,
    message:
      'No more is taken here but what ends it. Answer the question, or close the conversation.',
  }, // own
  approval_rejected: { retryable: false, message: 'The approval was rejected.' }, // own
  escalation_rejected: { retryable: false, message: 'The decision was rejected by a human.' }, // own
  escalation_limit: { retryable: false, message: 'The node escalated more often than permitted.' }, // own
  conformance_test_failure: { retryable: false, message: 'Intentional conformance failure' },
  // agents, models, tools
  handoff_task_schema_violation: {
    retryable: false,
    message: "The task does not match the agent's task schema.",
  },
  handoff_return_schema_violation: {
    retryable: false,
    message: "The result does not match the agent's return schema.",
  },
  agent_output_invalid: { retryable: false, message: 'The model gave no usable decision.' }, // own
  envelope_refusal: { retryable: false, message: 'The model provider refused.' },
  turn_limit_exceeded: {
    retryable: false,
    message: 'The agent took more model turns than permitted.',
  }, // own
  tool_call_limit_exceeded: {
    retryable: false,
    message: 'The agent asked for more tool calls than permitted.',
  }, // own
  handoff_limit_exceeded: {
    retryable: false,
    message: 'Agents passed control on more often than permitted.',
  }, // own
  model_unavailable: {
    retryable: true,
    message: 'There is no model for the agent, or its provider cannot be reached.',
  }, // own
  model_rejected_request: { retryable: false, message: 'The model provider rejected the request.' }, // own
  model_output_too_large: {
    retryable: false,
    message: "The model's output is larger than permitted.",
  }, // own
  model_not_configured: { retryable: false, message: 'No model is configured for this agent.' }, // own
  tool_not_found: { retryable: false, message: 'No such tool.' }, // own
  tool_invalid_input: {
    retryable: false,
    message: "The arguments do not match the tool's schema.",
  }, // own
  tool_invalid_output: {
    retryable: false,
    message: "The result does not match the tool's schema.",
  }, // own
  tool_failed: { retryable: false, message: 'The tool failed.' }, // own
  tool_timeout: { retryable: true, message: 'The tool took longer than permitted.' }, // own
  agent_unavailable: {
    retryable: true,
    message: 'No process has the agent that the tool belongs to.',
  }, // own
  tool_denied: { retryable: false, message: 'The tool may not be called.' }, // own
  effect_in_doubt: { retryable: false, message: 'It is not known whether the effect happened.' }, // own
  effect_skipped: { retryable: false, message: 'A human decided not to perform the effect.' }, // own
  // child runs
  unknown_child_workflow: {
    retryable: false,
    message: 'There is no such workflow to run as a child.',
  },
  child_failed: { retryable: false, message: 'The child run did not complete.' }, // own
  child_timeout: { retryable: false, message: 'The child run took longer than permitted.' }, // own
  child_lost: { retryable: false, message: 'The child run is not there any more.' }, // own
  child_limit_exceeded: { retryable: false, message: 'More child runs than permitted.' }, // own
  // orchestration
  no_pending_decision: {
    retryable: false,
    message: 'No decision of an orchestrator waits for this node.',
  },
  fan_out_unsupported: { retryable: false, message: 'The node starts one worker at a time.' },
  loop_limit_exceeded: {
    retryable: false,
    message: 'The run took more turns than permitted.',
  },
  // storage and history
  history_undecodable: { retryable: false, message: "The run's history cannot be decoded." }, // own
  key_unavailable: {
    retryable: true,
    isOutage: true,
    message: 'This process does not have the key that this is encrypted with.',
  }, // own
  history_missing: {
    retryable: false,
    message: "The run's history is neither in Temporal nor in the archive.",
  }, // own
  content_missing: { retryable: true, message: 'A stored value is missing.' }, // own
  // subjects whose data is erased
  subject_erased: {
    retryable: false,
    message: "The data of the run's subject was erased: its key was destroyed.",
  }, // own
  subject_erasing: {
    retryable: false,
    message: "The subject's data is being erased: no run begins for it until that is done.",
  }, // own
  subject_not_found: { retryable: false, message: 'No run names this subject.' }, // own
  // bundles of runs that are read (never leave by HTTP)
  bundle_invalid: { retryable: false, message: 'This is no bundle of a run.' }, // own
  bundle_changed: {
    retryable: false,
    message: 'The bundle was changed since it was made: its checksum is another.',
  }, // own
  bundle_unsupported: {
    retryable: false,
    message: 'The bundle is of a version that this release does not read.',
  }, // own
  // start-up (never leave by HTTP)
  config_invalid: { retryable: false, message: 'The configuration is not valid.' }, // own
  temporal_not_found: { retryable: false, message: "Temporal's dev server could not be obtained." }, // own
  temporal_not_started: { retryable: true, message: "Temporal's dev server did not start." }, // own
  data_folder_in_use: {
    retryable: false,
    message: 'The data folder is in use by another process.',
  }, // own
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof ERRORS;

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(ERRORS, code);
}

/** Whether a failure is an outage of the host's own (architecture §4.1), or one of the step that failed. */
export function isOutage(code: ErrorCode): boolean {
  const row: ErrorRow = ERRORS[code];
  return row.isOutage === true;
}

/** `details` must be JSON, safe to show and free of secrets. */
export class HostError extends Error {
  override readonly name = 'HostError';
  readonly code: ErrorCode;
  readonly details: Record<string, unknown> | undefined;

  constructor(code: ErrorCode, details?: Record<string, unknown>, cause?: unknown) {
    super(typeof details?.reason === 'string' ? details.reason : ERRORS[code].message, { cause });
    this.code = code;
    this.details = details;
  }
}

/** Shorthand of the commonest error. `field` is a JSON pointer or a parameter's name. */
export function invalid(
  field: string,
  reason: string,
  more: Record<string, unknown> = {},
): HostError {
  return new HostError('validation_error', { field, reason, ...more });
}

/** Recognises a HostError by its code, over sandbox realms and package copies. */
export function codeOf(error: unknown): ErrorCode | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && isErrorCode(code) ? code : undefined;
}
