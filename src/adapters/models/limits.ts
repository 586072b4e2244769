// Bounds that every provider adapter keeps. A model's output is untrusted data: its size too.

/** Most bytes of one HTTP response body, framing included. */
export const MODEL_RESPONSE_BYTES = 64 * 1024 * 1024;
/** Time in ms to the response's headers. */
export const MODEL_CONNECT_TIMEOUT_MS = 60_000;
/** Longest silence in ms within a streamed response. */
export const MODEL_STALL_TIMEOUT_MS = 120_000;
/** Longest wait in ms that a provider may ask for by Retry-After. */
export const MAX_RETRY_AFTER_MS = 60_000;
