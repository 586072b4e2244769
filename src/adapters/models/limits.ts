// Bounds that every provider adapter keeps. A model's output is untrusted data: its size too.

/** Most bytes of one HTTP response body, framing included. */
export const MODEL_RESPONSE_BYTES = 64 * 1024 * 1024;
/** Most bytes that are read of a response that refuses a request, and the time in ms that it has for them. */
export const MODEL_REFUSAL_BYTES = 64 * 1024;
export const MODEL_REFUSAL_LIMIT_MS = 2_000;
/** Time in ms to the response's headers. */
export const MODEL_CONNECT_TIMEOUT_MS = 60_000;
/** Longest silence in ms within a streamed response. */
export const MODEL_STALL_TIMEOUT_MS = 120_000;
/** Most calls that one answer may hold, whole or not: what is above MAX_CALLS_PER_TURN is refused, but counted. */
export const MODEL_ANSWER_CALLS = 1024;
/** Longest wait in ms that a provider may ask for by Retry-After. */
export const MAX_RETRY_AFTER_MS = 60_000;
