// Bounds that every provider adapter keeps. A model's output is untrusted data: its size too.

/** Most bytes of one HTTP response body, framing included. */
export const MODEL_RESPONSE_BYTES = 64 * 1024 * 1024;
/** Most bytes that are read of a response that refuses a request, and the time in ms that it has for them. */
export const MODEL_REFUSAL_BYTES = 64 * 1024;
export const MODEL_REFUSAL_LIMIT_MS = 2_000;
/** Most characters that are looked at of what an endpoint says when it refuses a request, and bytes that are repeated. */
export const MODEL_REFUSAL_CHARS = 8_192;
export const MODEL_REFUSAL_WORDS_BYTES = 600;
/** Time in ms for a connection to an endpoint. */
export const MODEL_CONNECT_TIMEOUT_MS = 10_000;
/** Time in ms to the first byte of an answer where nobody sets another: a local model may be loaded first. */
export const MODEL_START_TIMEOUT_MS = 300_000;
/** Longest silence in ms within a streamed response. */
export const MODEL_STALL_TIMEOUT_MS = 120_000;
/** Longest silence in ms after the reason why an answer ended: usage and the end of the stream may follow. */
export const MODEL_END_TIMEOUT_MS = 10_000;
/** Time in ms in which the connection of a whole answer has to end, so that it can serve another request. */
export const MODEL_DRAIN_LIMIT_MS = 500;
/** Most calls that one answer may hold, whole or not: what is above MAX_CALLS_PER_TURN is refused, but counted. */
export const MODEL_ANSWER_CALLS = 1024;
/** Longest wait in ms that a provider may ask for by Retry-After. */
export const MAX_RETRY_AFTER_MS = 60_000;
