// The SDK's failure converter with messages and stack traces inside the encoded part (architecture §7, encryption). The
// payloads of a failure are marked, so that the codec knows them: it always encodes them (codec.ts).
// Plain CommonJS, because the SDK loads it by `require` in the main thread and by its bundler in the sandbox.
/* eslint-disable @typescript-eslint/no-require-imports, no-undef -- CommonJS, see above */
'use strict';
const { DefaultFailureConverter } = require('@temporalio/common');
const { encode } = require('@temporalio/common/lib/encoding');

/** FAILURE_FIELD of codec.ts, and what it says of a payload there. */
const FIELD = 'openwop-failure';

/**
 * @param {readonly (import('@temporalio/common').Payload | null | undefined)[] | null | undefined} payloads
 * @param {string} part
 */
function mark(payloads, part) {
  for (const payload of payloads ?? [])
    if (payload) payload.metadata = { ...payload.metadata, [FIELD]: encode(part) };
}

/**
 * A failure that was decoded before is given as it is, with its causes.
 * @param {import('@temporalio/common').ProtoFailure | null | undefined} failure
 */
function markParts(failure) {
  if (!failure) return;
  mark([failure.encodedAttributes], 'attributes');
  mark(failure.applicationFailureInfo?.details?.payloads, 'details');
  mark(failure.canceledFailureInfo?.details?.payloads, 'details');
  mark(failure.timeoutFailureInfo?.lastHeartbeatDetails?.payloads, 'details');
  mark(failure.resetWorkflowFailureInfo?.lastHeartbeatDetails?.payloads, 'details');
  markParts(failure.cause);
}

class MarkingFailureConverter extends DefaultFailureConverter {
  /**
   * @override
   * @param {unknown} error
   * @param {import('@temporalio/common').PayloadConverter} payloadConverter
   * @param {import('@temporalio/common').SerializationContext} [context]
   */
  errorToFailure(error, payloadConverter, context) {
    const failure = super.errorToFailure(error, payloadConverter, context);
    markParts(failure);
    return failure;
  }
}

exports.failureConverter = new MarkingFailureConverter({ encodeCommonAttributes: true });
